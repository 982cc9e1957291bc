package permit

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/theme"
)

func writeRules(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func check(w io.Writer, rules, action string, who Who, asJSON bool) error {
	p, err := Load(rules)
	if err != nil {
		return err
	}
	return p.WriteCheck(w, action, who, asJSON)
}

func explain(w io.Writer, rules, command string, who Who, asJSON, color bool) error {
	look := theme.Theme{}
	if color {
		look = theme.Of(theme.Terminal, theme.Unknown, false)
	}
	p, err := Load(rules)
	if err != nil {
		return err
	}
	return p.WriteExplained(w, command, who, asJSON, look)
}

func TestCheckCommand(t *testing.T) {
	t.Parallel()
	asJSON := writeRules(t, `{"allow":["tool:bash:ls.*"],"ask":[],"deny":["tool:bash:rm.*"]}`)
	asYAML := writeRules(t, "# mine\nallow:\n  - 'tool:bash:ls.*'\ndeny:\n  - tool:bash:rm.*\n")
	for _, c := range []struct{ rules, action, want string }{
		{asJSON, "tool:bash:ls -l", "allow\n"},
		{asYAML, "tool:bash:ls -l", "allow\n"},
		{asJSON, "tool:bash:rm x", "deny\n"},
		{asYAML, "tool:bash:ls; rm x", "deny\n"},
		{"standard", "tool:bash:ls", "ask\n"},
		{"", "tool:bash:ls", "ask\n"},
		{"open", "tool:bash:ls", "allow\n"},
		{"open", "tool:bash:rm -rf / && ls", "deny\n"},
	} {
		var b strings.Builder
		if err := check(&b, c.rules, c.action, Who{}, false); err != nil || b.String() != c.want {
			t.Errorf("%s %s: %q, %v", c.rules, c.action, b.String(), err)
		}
	}
	var b strings.Builder
	if err := check(&b, asJSON, "tool:bash:rm x", Who{}, true); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got["verdict"] != "deny" || got["rule"] != "tool:bash:rm.*" || got["list"] != "deny" || got["action"] != "tool:bash:rm x" {
		t.Errorf("%v", got)
	}
}

func TestExplainJSON(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := explain(&b, "guarded", "ls 'a b' && $X | git push", Who{}, true, false); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Verdict string
		Parts   []struct {
			Argv    []string
			Verdict string
			Rule    string
			Opaque  bool
			Why     string
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Verdict != "deny" || len(got.Parts) != 4 || !strings.Contains(got.Parts[0].Why, "computed") {
		t.Fatalf("%s", b.String())
	}
	ls, x, push := got.Parts[1], got.Parts[2], got.Parts[3]
	if ls.Verdict != "allow" || ls.Rule != ".*" || ls.Opaque || len(ls.Argv) != 2 || ls.Argv[1] != "a b" {
		t.Errorf("ls: %+v", ls)
	}
	if x.Verdict != "ask" || !x.Opaque {
		t.Errorf("$X: %+v", x)
	}
	if push.Verdict != "deny" || !strings.Contains(push.Rule, "push") {
		t.Errorf("push: %+v", push)
	}
}

func TestExplainTree(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := explain(&b, "guarded", "timeout 5 git push | tee log\nrm -rf / > \x1b[31m", Who{}, false, false); err != nil {
		t.Fatal(err)
	}
	want := `deny under guarded
├─ ask    timeout 5 git push | tee log rm -rf / > �[31m  (no rule; it contains the control character U+001B; write it as $'\…' in quotes, or leave it out)
├─ allow  timeout 5 git push  (allow .*)
│  └─ deny   git push  (deny tool:git:(?:push|merge_request)(?: .*)?)
├─ allow  tee log  (allow .*)
│  └─ allow  write log  (allow .*)
├─ deny   rm -rf /  (refused under every profile: removing /)
└─ ask    write � [31m  (allow .*; depending on what its words expand to, it is denied by x)
`
	got := b.String()
	// The last line only has to be free of control characters.
	wantHead, gotHead := want[:strings.LastIndex(want, "└")], got[:strings.LastIndex(got, "└")]
	if gotHead != wantHead {
		t.Errorf("got\n%s\nwant\n%s", gotHead, wantHead)
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("control characters: %q", got)
	}
	b.Reset()
	if err := explain(&b, "guarded", "ls", Who{}, false, true); err != nil || !strings.Contains(b.String(), "\x1b[32m") {
		t.Errorf("%q, %v: no colour", b.String(), err)
	}
}

func TestBrokenRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n  \"allow\": [\"a\",]\n}":         "line 2, column",
		"{\n\"allow\": \"a\"}":                "must be a list",
		`{"alow":[]}`:                         "alow",
		`{"allow":[]} x`:                      "after the rules",
		`{"allow":["[x"]}`:                    `allow pattern 1 "[x" at position 1`,
		"allow:\n  - 'a'\n bad: [\n":          "3",
		"alow:\n  - a\n":                      "alow",
		"allow: 5\n":                          "1",
		"":                                    "empty",
		"allow:\n  - 'tool:git:(?!push).*'\n": "lookaround",
		`{"deny":["(?<!x)y"]}`:                "put the exception into deny",
	} {
		var b strings.Builder
		err := check(&b, writeRules(t, text), "tool:bash:ls", Who{}, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
		if b.Len() > 0 {
			t.Errorf("%q: wrote %q", text, b.String())
		}
	}
	err := explain(&strings.Builder{}, "nowhere.json", "ls", Who{}, false, false)
	if err == nil || !strings.Contains(err.Error(), "standard") {
		t.Errorf("missing file: %v", err)
	}
}

func TestExplainForSomebody(t *testing.T) {
	t.Parallel()
	rules := writeRules(t, `{"allow":["tool:bash:ls",{"rule":"tool:bash:make.*","roles":["dev"],"channels":["ops"]}],"deny":[{"rule":"tool:bash:ls","agents":["scout"]}]}`)
	for _, c := range []struct {
		who  Who
		want string
	}{
		{Who{}, `deny under NAME
├─ allow  ls  (allow tool:bash:ls)
└─ deny   make  (no rule)
for others: deny tool:bash:ls (agents scout)
for others: allow tool:bash:make.* (roles dev; channels ops)
`},
		{Who{Roles: []string{"dev"}, Channel: "ops", Agent: "scout"}, `deny under NAME
├─ deny   ls  (deny tool:bash:ls for agents scout)
└─ allow  make  (allow tool:bash:make.* for roles dev; channels ops)
`},
	} {
		var b strings.Builder
		if err := explain(&b, rules, "ls; make", c.who, false, false); err != nil {
			t.Fatal(err)
		}
		// A denial of the command as a whole is not shown here.
		if got := strings.ReplaceAll(b.String(), rules, "NAME"); got != c.want {
			t.Errorf("%+v:\n%s\nwant\n%s", c.who, got, c.want)
		}
	}
	var b strings.Builder
	if err := explain(&b, rules, "ls", Who{Agent: "scout"}, true, false); err != nil || !strings.Contains(b.String(), `"scope":"agents scout"`) {
		t.Errorf("%s, %v", b.String(), err)
	}
}
