package permit

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestDecisionOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		rules Rules
		want  map[string]Verdict
	}{
		{"prefix", Rules{Allow: []string{`tool:bash:pip install.*`}}, map[string]Verdict{
			"tool:bash:pip install requests": Allow, "tool:bash:pip uninstall requests": Deny,
		}},
		{"allow before ask", Rules{Allow: []string{`tool:x:a`}, Ask: []string{`tool:x:a`}}, map[string]Verdict{"tool:x:a": Allow}},
		{"deny before all", Rules{Allow: []string{`.*`}, Deny: []string{`tool:bash:rm.*`}}, map[string]Verdict{
			"tool:bash:rm x": Deny, "tool:bash:ls": Allow,
		}},
		{"deny and ask", Rules{Ask: []string{`.*`}, Deny: []string{`tool:bash:rm.*`}}, map[string]Verdict{
			"tool:bash:rm x": Deny, "tool:bash:ls": Ask,
		}},
		{"silence", Rules{}, map[string]Verdict{"tool:bash:ls": Deny, "anything": Deny, "": Deny}},
		{"colons in the detail", Rules{Allow: []string{`tool:bash:echo a:b:c`}}, map[string]Verdict{"tool:bash:echo a:b:c": Allow}},
		{"escaped brackets", Rules{Allow: []string{`tool:bash:echo \[test\]`}}, map[string]Verdict{
			"tool:bash:echo [test]": Allow, "tool:bash:echo test": Deny,
		}},
		{"whole string", Rules{Allow: []string{`tool:x:a`, `tool:y:a|b`}}, map[string]Verdict{
			"tool:x:ab": Deny, "xtool:x:a": Deny, "tool:y:ac": Deny, "b": Allow, "tool:x:a\n": Deny,
		}},
		{"case", Rules{Allow: []string{`tool:x:a`}}, map[string]Verdict{"tool:x:A": Deny}},
		{"newlines", Rules{Allow: []string{`tool:x:.*`}}, map[string]Verdict{"tool:x:a\nb": Allow}},
		{"open quotation", Rules{Allow: []string{`tool:x:\Qa.b`}}, map[string]Verdict{"tool:x:a.b": Allow, "tool:x:axb": Deny, "tool:x:a.bc": Deny}},
		{"closed quotation", Rules{Allow: []string{`tool:x:\Qa.\E.`}}, map[string]Verdict{"tool:x:a.b": Allow, "tool:x:axb": Deny}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := mustCompile(t, c.rules)
			for action, want := range c.want {
				if got := p.Check(action); got.Verdict != want {
					t.Errorf("%q: %s by %s %q, want %s", action, got.Verdict, got.List, got.Rule, want)
				}
			}
		})
	}
}

func TestDecisionNamesItsRule(t *testing.T) {
	t.Parallel()
	p := mustCompile(t, Rules{Allow: []string{`tool:x:a`}, Ask: []string{`tool:x:b`}, Deny: []string{`tool:x:c`}})
	for action, want := range map[string]Decision{
		"tool:x:a": {Verdict: Allow, Rule: `tool:x:a`, List: ListAllow, Action: "tool:x:a"},
		"tool:x:b": {Verdict: Ask, Rule: `tool:x:b`, List: ListAsk, Action: "tool:x:b"},
		"tool:x:c": {Verdict: Deny, Rule: `tool:x:c`, List: ListDeny, Action: "tool:x:c"},
		"tool:x:d": {Verdict: Deny, List: ListImplicit, Action: "tool:x:d"},
	} {
		if got := p.Decide(action); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", action, got, want)
		}
	}
}

func TestBadPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list, pattern string
		position      int
		says          string
	}{
		{"allow", `[invalid`, 0, "missing closing ]"},
		{"ask", `tool:(unclosed`, 5, "missing closing )"},
		{"deny", `a)b`, 1, "unexpected )"},
		{"allow", `tool:git:(?!push).*`, 9, "put the exception into deny"},
		{"allow", `(?=x)`, 0, "lookaround"},
		{"ask", `x(?<=y)`, 1, "lookaround"},
		{"deny", `x(?<!y)`, 1, "lookaround"},
		{"deny", `(a)\1`, 3, "backreference"},
		{"allow", `*`, 0, "missing argument to repetition"},
		{"allow", strings.Repeat("a", maxPatternLen+1), maxPatternLen, "longer than"},
	} {
		r := Rules{}
		switch c.list {
		case "allow":
			r.Allow = []string{`fine`, c.pattern}
		case "ask":
			r.Ask = []string{`fine`, c.pattern}
		case "deny":
			r.Deny = []string{`fine`, c.pattern}
		}
		_, err := Compile("mine", r)
		var bad *PatternError
		if !errors.As(err, &bad) {
			t.Errorf("%s %.30q: error %v", c.list, c.pattern, err)
			continue
		}
		if bad.List != c.list || bad.Index != 1 || bad.Position != c.position {
			t.Errorf("%.30q: %s pattern %d at %d, want %s pattern 1 at %d", c.pattern, bad.List, bad.Index, bad.Position, c.list, c.position)
		}
		for _, s := range []string{"mine", c.list, c.says} {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%.30q: %v does not say %q", c.pattern, err, s)
			}
		}
	}
}

func TestRulesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules Rules
		text  string
	}{
		{Rules{}, `{"allow":[],"ask":[]}`},
		{Rules{Allow: []string{"a"}, Ask: []string{"b"}}, `{"allow":["a"],"ask":["b"]}`},
		{Rules{Allow: []string{"a"}, Ask: []string{"b"}, Deny: []string{"c"}}, `{"allow":["a"],"ask":["b"],"deny":["c"]}`},
	} {
		p := mustCompile(t, c.rules)
		got, err := json.Marshal(p)
		if err != nil || string(got) != c.text {
			t.Errorf("%s, %v; want %s", got, err, c.text)
		}
		back, err := ParseRules(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != c.text {
			t.Errorf("back: %s, %v", again, err)
		}
	}
}

func TestProfileKeepsItsRules(t *testing.T) {
	t.Parallel()
	r := Rules{Allow: []string{"tool:x:.*"}}
	p := mustCompile(t, r)
	r.Allow[0] = "changed"
	p.Rules().Allow[0] = "changed too"
	if got := p.Rules().Allow[0]; got != "tool:x:.*" {
		t.Errorf("rule became %q", got)
	}
}

func TestVerdictWords(t *testing.T) {
	t.Parallel()
	if !(Allow < Ask && Ask < Deny) {
		t.Error("strictness is out of order")
	}
	for _, v := range []Verdict{Allow, Ask, Deny} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back Verdict
		if err := json.Unmarshal(text, &back); err != nil || back != v {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
	}
	if _, err := ParseVerdict("maybe"); err == nil {
		t.Error("maybe is a verdict")
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	for action, want := range map[string][]string{
		"tool:edit:p":                      {"tool:str_replace:p", "tool:file:p", "tool:FileEdit:p", "tool:file:str_replace p"},
		"tool:write:p":                     {"tool:create_file:p", "tool:write_file:p", "tool:file:p", "tool:WriteFile:p"},
		"tool:read:p":                      {"tool:view:p", "tool:read_file:p", "tool:file:p", "tool:ReadFile:p", "tool:file:view p"},
		"tool:bash:ls":                     {"tool:run_command:ls", "tool:RunCommand:ls"},
		"tool:git:push origin":             {"tool:git_push:origin", "tool:bash:git push origin", "tool:remote:git push origin"},
		"tool:git:status":                  {"tool:git_status:", "tool:GitStatus:"},
		"tool:self_edit:docs a.md":         {"tool:self_edit_docs:a.md"},
		"tool:send_to_agent:bob":           {"tool:agent_comm:send bob"},
		"tool:create_file:p":               {"tool:write:p"},
		"tool:RunCommand:ls":               {"tool:bash:ls"},
		"tool:read:./a//b":                 {"tool:read:a/b"},
		"tool:run_background:npm start":    {"tool:bash:npm start"},
		"tool:search_files:src":            {"tool:SearchText:src"},
		"tool:agent_comm:send bob":         {"tool:send_to_agent:bob"},
		"tool:list_models:{}":              {"tool:info:{}"},
		"tool:self_edit_model:claude-x":    {"tool:self_edit:model claude-x"},
		"tool:git_commit:-m x":             {"tool:git:commit -m x"},
		"tool:file:view README.md":         {"tool:read:README.md"},
		"tool:file:create src/a.py":        {"tool:write:src/a.py"},
		"tool:apply_patch:a":               {"tool:ApplyPatch:a"},
		"tool:mcp__server__tool:{\"a\":1}": nil,
	} {
		n := namesOf(action, nil)
		got := slices.DeleteFunc(slices.Concat(n.grant, n.stricter, n.denyOnly), func(s string) bool { return s == action })
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %q lacks %s", action, got, w)
			}
		}
		if want == nil && len(got) > 0 {
			t.Errorf("%s: %q, want none", action, got)
		}
	}
}

func TestRuleUnderAnyName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules  Rules
		action string
		want   Verdict
	}{
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:file:secret.*`}}, "tool:read:secret.txt", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:create_file:.*`}}, "tool:write:a", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:str_replace:.*`}}, "tool:edit:a", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:run_command:rm.*`}}, "tool:bash:rm a", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:bash:rm.*`}}, "tool:RunCommand:rm a", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:bash:rm.*`}}, "tool:run_background:rm a", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:bash:git push.*`}}, "tool:git:push origin", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:git:push.*`}}, "tool:bash:git push origin", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:git_push:.*`}}, "tool:git:push origin", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:read:secrets/.*`}}, "tool:read:./a/../secrets/x", Deny},
		{Rules{Allow: []string{`.*`}, Deny: []string{`tool:git_stash:.*`}}, "tool:git:stash pop", Deny},
		{Rules{Allow: []string{`tool:bash:.*`}, Ask: []string{`tool:git:push.*`}}, "tool:bash:git push", Ask},
		{Rules{Allow: []string{`tool:git:.*`}, Ask: []string{`tool:bash:.*`}}, "tool:git:status", Allow},
		{Rules{Allow: []string{`tool:git:.*`}, Ask: []string{`tool:bash:.*`}}, "tool:bash:git status", Ask},
		{Rules{Allow: []string{`tool:view:.*`}}, "tool:read:a", Allow},
		{Rules{Ask: []string{`tool:RunCommand:.*`}}, "tool:bash:ls", Ask},
		// A rule meant for viewing must not allow other access to files whose names begin so.
		{Rules{Allow: []string{`tool:file:view.*`}}, "tool:read:README.md", Allow},
		{Rules{Allow: []string{`tool:file:view.*`}}, "tool:write:view.txt", Deny},
		{Rules{Allow: []string{`tool:file:view.*`}}, "tool:edit:viewer/a.go", Deny},
		{Rules{Allow: []string{`tool:file:view.*`}}, "tool:write:src/a.py", Deny},
		{Rules{Allow: []string{`tool:file:.*`}}, "tool:write:view.txt", Allow},
		{Rules{Allow: []string{`tool:file:src/.*`}}, "tool:edit:src/view.go", Allow},
		{Rules{Allow: []string{`tool:file:src/.*`}}, "tool:edit:src/../x", Deny},
	} {
		p := mustCompile(t, c.rules)
		if got := p.Check(c.action); got.Verdict != c.want {
			t.Errorf("%v: %s is %s by %s %q, want %s", c.rules, c.action, got.Verdict, got.List, got.Rule, c.want)
		}
	}
}

// What git starts is written below .git: that is asked for under every profile that does not allow everything.
func TestWritesBelowGitAreAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile, tool, path string
		want                Verdict
	}{
		{"standard", "write", ".git/config", Ask}, {"standard", "edit", "sub/.git/hooks/x", Ask}, {"guarded", "apply_patch", ".GIT/config", Ask}, {"guarded", "write", ".git", Ask},
		{"open", "write", ".git/config", Allow}, {"guarded", "write", ".github/x", Allow}, {"guarded", "read", ".git/config", Allow},
	} {
		if got := mustPreset(t, c.profile).Judge([]Request{{Tool: c.tool, Detail: c.path}}, JudgeOptions{Workspace: "/w"}).Verdict; got != c.want {
			t.Errorf("%s %s under %s: %s, want %s", c.tool, c.path, c.profile, got, c.want)
		}
	}
}

// Where commands run in a sandbox, a file below .git would lead out of it: it is asked for even where everything is
// allowed. A git directory by another name is one all the same.
func TestGitDirectoriesAreAskedForInASandbox(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile string
		request Request
		host    Verdict // commands run on the host
		sandbox Verdict
	}{
		{"open", Request{Tool: "write", Detail: ".git/config"}, Allow, Ask},
		{"open", Request{Tool: "apply_patch", Detail: "sub/.git/hooks/x"}, Allow, Ask},
		{"open", Request{Tool: "write", Detail: "srv/config", Git: true}, Allow, Ask},
		{"open", Request{Tool: "read", Detail: ".git/config"}, Allow, Allow},
		{"open", Request{Tool: "write", Detail: "a.go"}, Allow, Allow},
		{"guarded", Request{Tool: "write", Detail: "srv/config", Git: true}, Ask, Ask},
		{"standard", Request{Tool: "edit", Detail: "srv/hooks/x", Git: true}, Ask, Ask},
	} {
		p, err := Preset(c.profile)
		if err != nil {
			t.Fatal(err)
		}
		for sandboxed, want := range map[bool]Verdict{false: c.host, true: c.sandbox} {
			if got := p.Judge([]Request{c.request}, JudgeOptions{Sandboxed: sandboxed}); got.Verdict != want {
				t.Errorf("%s %+v, sandboxed %t: %s, want %s", c.profile, c.request, sandboxed, got.Verdict, want)
			}
		}
	}
	own := mustCompile(t, Rules{Allow: []string{`.*`, `tool:write:\.git/info/.*`}})
	if got := own.Judge([]Request{{Tool: "write", Detail: ".git/info/exclude"}}, JudgeOptions{Sandboxed: true}); got.Verdict != Ask {
		t.Errorf("%s by the rule %s", got.Verdict, got.Decision.Rule)
	}
}

// However deep a pattern is nested, it is refused when it is compiled, or its regexp works.
func TestDeepPatterns(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"(a|b%s)*", "(?:%s)", "(a%s)?"} {
		accepted := 0
		for depth := 1; depth < maxPatternLen/len(group); depth++ {
			open, end, _ := strings.Cut(group, "%s")
			r, err := compilePattern(ListAllow, 0, strings.Repeat(open, depth)+"x"+strings.Repeat(end, depth))
			if err != nil {
				break
			}
			r.re() // panics if the regexp cannot be compiled
			accepted = depth
		}
		if accepted < 100 {
			t.Errorf("%q can be nested only %d times", group, accepted)
		}
	}
}
