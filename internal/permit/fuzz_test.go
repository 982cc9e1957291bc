package permit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
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
			return // rules for some say nothing of nobody
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
		for _, r := range []*rule{&p.allow[0], &p.deny[0]} {
			if r.matches(action) && !r.couldMatch([]span{{text: action}}) {
				t.Fatalf("%q matches %q but could not", r.pattern, action)
			}
			if half := len(action) / 2; r.matches(action) && !r.couldMatch([]span{{text: strings.ToValidUTF8(action[:half], "")}, {gap: true}}) && strings.ToValidUTF8(action, "") == action {
				t.Fatalf("%q matches %q but could not with a gap", r.pattern, action)
			}
		}
	})
}

func FuzzShell(f *testing.F) {
	corpus(f, func(_ *Profile, _ Verdict, command, _ string) { f.Add(command) })
	for _, s := range []string{"$((", "`\\``", "${a[$(b)]}", "((a", "[[ a =~ $(b) ]]", "a <<E", "{a,{b,c}}", "$'\\x", "@(a|b)", "a() b", "!", "select x in a; do b; done", "let x=$(a)"} {
		f.Add(s)
	}
	guarded := mustPreset(f, "guarded")
	f.Fuzz(func(t *testing.T, command string) {
		if len(command) > 4096 {
			return
		}
		// A command that is never done would hide itself: nobody would learn which.
		watch := time.AfterFunc(5*time.Second, func() { panic(fmt.Sprintf("not done with %q", command)) })
		defer watch.Stop()
		tree := Shell(command)
		guarded.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{Home: "/home/u/.chorus", Workspace: "/w"})
		seen := map[int]bool{}
		whole := false
		tree.All(func(p *Part, _ int) {
			if p.offset >= 0 {
				seen[p.offset] = true
			}
			whole = whole || p.Kind == KindUnknown
		})
		if whole {
			return
		}
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
		if err != nil {
			t.Fatalf("%q cannot be parsed (%v), and no part says so", command, err)
		}
		syntax.Walk(file, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && !seen[int(c.Pos().Offset())] {
				t.Fatalf("%q: the command at %d is no part", command, c.Pos().Offset())
			}
			return true
		})
	})
}
