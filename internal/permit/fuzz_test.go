package permit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"chorus/internal/permit/shell"
)

func FuzzRules(f *testing.F) {
	for _, p := range somePatterns {
		f.Add(p, `tool:bash:rm.*`, "tool:bash:rm x")
	}
	f.Add(`(?!x)`, `[`, "tool:")
	f.Add(`\Qx`, `(?i)TOOL:.*`, "tool:file:view x")
	f.Add(`.*`, `tool:git:(push|x)+`, "tool:bash:git -C a push")
	f.Fuzz(func(t *testing.T, allow, deny, action string) {
		p, err := Compile("fuzz", Rules{Allow: []string{allow}, Deny: []string{deny}})
		if err != nil {
			if !strings.Contains(err.Error(), "allow") && !strings.Contains(err.Error(), "deny") {
				t.Fatalf("%v names no list", err)
			}
			return
		}
		if len(p.scoped) > 0 {
			return // restricted rules do not apply to the zero Who
		}
		d := p.Decide(action)
		if p.deny[0].matches(action) && d.Verdict != Deny {
			t.Fatalf("%q matches the deny rule %q and is %s", action, deny, d.Verdict)
		}
		if d.Verdict == Ask {
			t.Fatalf("asked without an ask rule")
		}
		c := p.Check(action)
		if p.deny[0].matches(action) && c.Verdict != Deny {
			t.Fatalf("%q matches the deny rule %q and its check is %s", action, deny, c.Verdict)
		}
		var n nfa // both rules run on it, one after the other
		for _, r := range []*rule{&p.allow[0], &p.deny[0]} {
			if r.matches(action) && !r.couldMatch(&n, []shell.Span{{Text: action}}) {
				t.Fatalf("%q matches %q but could not", r.pattern, action)
			}
			if half := len(action) / 2; r.matches(action) && !r.couldMatch(&n, []shell.Span{{Text: strings.ToValidUTF8(action[:half], "")}, {Gap: true}}) && strings.ToValidUTF8(action, "") == action {
				t.Fatalf("%q matches %q but could not with a gap", r.pattern, action)
			}
		}
	})
}

func FuzzJudge(f *testing.F) {
	corpus(f, func(_ *Profile, _ Verdict, command, _ string) { f.Add(command) })
	guarded := mustPreset(f, "guarded")
	f.Fuzz(func(t *testing.T, command string) {
		if len(command) > 4096 {
			return
		}
		// A fuzzer does not report the input that never ends; this does.
		watch := time.AfterFunc(5*time.Second, func() { panic(fmt.Sprintf("not done with %q", command)) })
		defer watch.Stop()
		j := guarded.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{Home: "/home/u/.chorus", Workspace: "/w"})
		for _, d := range j.Decisions {
			if d.Verdict > j.Verdict {
				t.Fatalf("%q is %s, though a part of it is %s", command, j.Verdict, d.Verdict)
			}
		}
	})
}
