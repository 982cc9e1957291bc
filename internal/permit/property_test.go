package permit

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/permit/shell"
)

var somePatterns = []string{
	`.*`, `tool:.*`, `tool:bash:.*`, `tool:bash:ls.*`, `tool:bash:git .*`, `tool:bash:git push.*`, `tool:git:push.*`, `tool:git:.*`,
	`tool:write:.*`, `tool:write:a/.*`, `tool:file:.*`, `tool:file:view.*`, `tool:view:.*`, `tool:read:.*`, `tool:remote:.*`,
	`tool:bash:(ls|cat).*`, `tool:run_command:.*`, `tool:bash:.*x.*`, `tool:bash:sudo .*`, `x`,
}

var someCommands = []string{
	"ls", "ls > a/b", "cat < a/x", "git push", "git status", "git $X", "sudo ls", "env git push", "bash -c 'ls; git push'", "X=1", "cd a && ls",
	"$X", "ls | xargs cat", "eval \"$X\"", "f() { ls; }; f", "rm -rf /", "if", "", "timeout 5 cat x", "python3 -c 'x'", "curl -X POST u", "ls > $X",
	"find . -exec cat {} +", "X=push; git $X", "echo 'git push' | sh",
}

func someRules(t *rapid.T) Rules {
	list := func(name string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(somePatterns), 0, 4).Draw(t, name)
	}
	return Rules{Allow: list("allow"), Ask: list("ask"), Deny: list("deny")}
}

func someRequest(t *rapid.T) []Request {
	if rapid.Bool().Draw(t, "shell") {
		return []Request{{Tool: "bash", Command: rapid.SampledFrom(someCommands).Draw(t, "command")}}
	}
	return []Request{{
		Tool:   rapid.SampledFrom([]string{"read", "write", "edit", "git", "view", "file", "other"}).Draw(t, "tool"),
		Detail: rapid.SampledFrom([]string{"a/x", "view.txt", "push origin", "status", "../x", "/x", "view a/x", "x"}).Draw(t, "detail"),
	}}
}

func must(t *rapid.T, r Rules) *Profile {
	p, err := Compile("p", r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDenyOnlyTightens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, req := someRules(t), someRequest(t)
		before := must(t, r).Judge(req, JudgeOptions{})
		r.Deny = append(slices.Clone(r.Deny), rapid.SampledFrom(somePatterns).Draw(t, "more"))
		if after := must(t, r).Judge(req, JudgeOptions{}); after.Verdict < before.Verdict {
			t.Fatalf("%v became %s from %s by a deny rule", req, after.Verdict, before.Verdict)
		}
	})
}

func TestAllowNeverOverrulesDeny(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, req := someRules(t), someRequest(t)
		before := must(t, r).Judge(req, JudgeOptions{})
		if before.Decision.List != ListDeny && before.Decision.List != ListCatastrophic {
			return
		}
		r.Allow = append(slices.Clone(r.Allow), rapid.SampledFrom(somePatterns).Draw(t, "more"))
		r.Ask = append(slices.Clone(r.Ask), `.*`)
		if after := must(t, r).Judge(req, JudgeOptions{}); after.Verdict != Deny {
			t.Fatalf("%v became %s by an allow rule", req, after.Verdict)
		}
	})
}

func TestAllowOnlyLoosens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, req := someRules(t), someRequest(t)
		before := must(t, r).Judge(req, JudgeOptions{})
		r.Allow = append(slices.Clone(r.Allow), rapid.SampledFrom(somePatterns).Draw(t, "more"))
		if after := must(t, r).Judge(req, JudgeOptions{}); after.Verdict > before.Verdict {
			t.Fatalf("%v became %s from %s by an allow rule", req, after.Verdict, before.Verdict)
		}
	})
}

func TestOrderInAListIsIrrelevant(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, req := someRules(t), someRequest(t)
		shuffled := Rules{
			Allow: rapid.Permutation(r.Allow).Draw(t, "allow order"),
			Ask:   rapid.Permutation(r.Ask).Draw(t, "ask order"),
			Deny:  rapid.Permutation(r.Deny).Draw(t, "deny order"),
		}
		a, b := must(t, r).Judge(req, JudgeOptions{}), must(t, shuffled).Judge(req, JudgeOptions{})
		if a.Verdict != b.Verdict {
			t.Fatalf("%v is %s or %s depending on order", req, a.Verdict, b.Verdict)
		}
	})
}

// A command that contains another is never judged more leniently than that one alone.
func TestWrappingNeverLoosens(t *testing.T) {
	t.Parallel()
	wraps := []string{
		"true && %", "% | true", "( % )", "{ %; }", "if true; then %; fi", "echo $( % )", "for i in 1; do %; done", "! %", "% &", "true; %",
		"while %; do break; done", "cat <( % )", "env true; %", "f() { %; }; f", "case x in x) %;; esac", "x=$( % )",
	}
	commands := []string{
		"ls", "git push", "git status", "git $X", "sudo ls", "env git push", "bash -c 'ls; git push'", "$X", "eval \"$X\"", "rm -rf /",
		"timeout 5 cat x", "python3 -c 'x'", "curl -X POST u", "find . -exec cat {} +", "touch a", "cat x y",
	}
	rapid.Check(t, func(t *rapid.T) {
		p := must(t, someRules(t))
		inner := rapid.SampledFrom(commands).Draw(t, "command")
		outer := inner
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			w := rapid.SampledFrom(wraps).Draw(t, "wrap")
			before, after, _ := strings.Cut(w, "%")
			outer = before + outer + after
		}
		a, b := judged(p, inner), judged(p, outer)
		if shell.Parse(outer, nil).Err != nil {
			// "{ ls &; }" is no command, and bash would run none of it, so ask is enough.
			a.Verdict = min(a.Verdict, Ask)
		}
		if b.Verdict < a.Verdict {
			t.Fatalf("%q is %s, but %q is %s", inner, a.Verdict, outer, b.Verdict)
		}
	})
}
