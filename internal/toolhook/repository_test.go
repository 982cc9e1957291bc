package toolhook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

const example = `{"permissions":{"allow":["Bash"]},"hooks":{
	"PreToolUse":[{"matcher":"Bash|Edit","hooks":[{"type":"command","command":"$CLAUDE_PROJECT_DIR/.claude/hooks/check.sh","timeout":5},{"type":"prompt","prompt":"is it fine?"}]},
		{"hooks":[{"command":"echo all"}]},{"matcher":"(","hooks":[{"command":"x"}]},{"matcher":"mcp__.*","hooks":[{"command":"y","timeout":6000},{"command":" "}]}],
	"PostToolUse":[{"matcher":"Write","hooks":[{"type":"command","command":"make lint"}]}],
	"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}`

func TestParse(t *testing.T) {
	t.Parallel()
	hooks, problems, err := Parse(claudeFile, []byte(example))
	if err != nil || len(hooks) != 4 {
		t.Fatal(hooks, err)
	}
	said := strings.Join(problems, "\n")
	for _, want := range []string{`type is "prompt"`, `the matcher "(" cannot be understood`, "has no command", "hooks for Stop are ignored"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said: %s", want, said)
		}
	}
	means := func(n int, event, tool string) bool { return hooks[n].Means(event, tool) }
	if !means(0, Before, "bash") || !means(0, Before, "edit") || means(0, Before, "write") || means(0, Before, "bash2") || means(0, After, "bash") ||
		!means(1, Before, "anything") || !means(2, Before, "mcp__git__log") || means(2, Before, "bash") || !means(3, After, "write") || means(3, Before, "write") {
		t.Error("they are for other tools than the file says")
	}
	if hooks[0].Timeout != 5*time.Second || hooks[1].Timeout != DefaultTimeout || hooks[2].Timeout != maxTimeout || hooks[0].Name != "check.sh of .claude/settings.json" {
		t.Errorf("%+v", hooks)
	}
	if got := hooks[0].Expand("/w"); got != "/w/.claude/hooks/check.sh" {
		t.Error(got)
	}
	for text, want := range map[string]string{`[]`: "not a JSON object", `{"hooks":[]}`: "not a JSON object", `{"hooks":{"PreToolUse":{}}}`: "must be a list",
		`{"hooks":{"PreToolUse":[{"hooks":[` + strings.Repeat(`{"command":"x"},`, 50) + `{"command":"x"}]}]}}`: "51 hooks"} {
		if _, _, err := Parse(ownFile, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for _, text := range []string{`{}`, `{"permissions":{}}`, `{"hooks":{}}`} {
		if hooks, problems, err := Parse(ownFile, []byte(text)); err != nil || len(hooks)+len(problems) > 0 {
			t.Errorf("%s: %v %v %v", text, hooks, problems, err)
		}
	}
}

// A file that was written for another program gets calls under the names that it knows, and what it rewrites is read so.
func TestForeignNames(t *testing.T) {
	t.Parallel()
	hooks, _, err := Parse(claudeFile, []byte(`{"hooks":{"PreToolUse":[{"matcher":"Write|Bash","hooks":[{"command":"x"}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var given, answer string
	r := Runner{Hooks: hooks, Dir: "/w", Isolated: func(_ context.Context, _ Hook, stdin []byte, _ time.Duration) (Ended, error) {
		given = string(stdin)
		return Ended{Stdout: answer}, nil
	}}
	rewrite := func(input string) string { return `{"hookSpecificOutput":{"updatedInput":` + input + `}}` }
	for _, c := range []struct{ tool, input, given, answer, want string }{
		{"bash", `{"command":"ls"}`, `"tool_name":"Bash","tool_input":{"command":"ls"}`, rewrite(`{"command":"ls -a"}`), `{"command":"ls -a"}`},
		{"write", `{"path":"a.txt","content":"x"}`, `"tool_name":"Write","tool_input":{"content":"x","file_path":"/w/a.txt","path":"a.txt"}`, "", `{"path":"a.txt","content":"x"}`},
		{"write", `{"path":"a.txt","content":"x"}`, `"file_path":"/w/a.txt"`, rewrite(`{"file_path":"/w/a.txt","content":"y"}`), `{"content":"y","path":"a.txt"}`},
		{"write", `{"path":"a.txt","content":"x"}`, `"file_path":"/w/a.txt"`, rewrite(`{"file_path":"/w/b.txt","path":"a.txt","content":"x"}`), `{"content":"x","path":"/w/b.txt"}`},
		{"write", `{"path":"a.txt","content":"x"}`, `"file_path":"/w/a.txt"`, rewrite(`{"path":"c.txt","content":"x"}`), `{"path":"c.txt","content":"x"}`},
	} {
		answer = c.answer
		if got := r.Before(t.Context(), Call{Tool: c.tool, Input: []byte(c.input)}); got.Denied != "" || string(got.Input) != c.want || !strings.Contains(given, c.given) {
			t.Errorf("%s %s: %+v, given %s", c.tool, c.input, got, given)
		}
	}
}

// A repository's hook never runs outside of the sandbox, and one that may not run denies.
func TestARepositorysHookIsIsolated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hooks, _, err := Parse(ownFile, []byte(`{"hooks":{"PreToolUse":[{"hooks":[{"command":"touch ran"}]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	call := Call{Tool: "bash", Input: []byte(`{}`)}
	if got := (Runner{Hooks: hooks, Dir: dir}).Before(t.Context(), call); !strings.Contains(got.Denied, "so the call is not made") {
		t.Errorf("%+v", got)
	}
	changed := Runner{Hooks: hooks, Dir: dir, Isolated: func(context.Context, Hook, []byte, time.Duration) (Ended, error) {
		return Ended{}, errors.New("check.sh changed")
	}}
	if got := changed.Before(t.Context(), call); !strings.Contains(got.Denied, "check.sh changed") {
		t.Errorf("%+v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"hooks":{"PreToolUse":[null,{"hooks":[null]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		hooks, _, err := Parse(claudeFile, data)
		for _, h := range hooks {
			if err != nil || strings.TrimSpace(h.Command) == "" || h.Timeout <= 0 || h.Timeout > maxTimeout || h.File == "" {
				t.Errorf("%+v, %v", h, err)
			}
			_ = h.Means(Before, "bash")
		}
	})
}
