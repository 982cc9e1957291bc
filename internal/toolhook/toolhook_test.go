//go:build unix

package toolhook

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command       string
		input, denied string
	}{
		"lets it pass":        {`exit 0`, `{"command":"ls"}`, ""},
		"says allow":          {`echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'`, `{"command":"ls"}`, ""},
		"denies by code":      {`echo "no $(cat | grep -o ls)" >&2; exit 2`, "", "the hook h denies it: no ls"},
		"denies by JSON":      {`echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"not today"}}'`, "", "the hook h denies it: not today"},
		"denies as of old":    {`echo '{"decision":"block","reason":"not today"}'`, "", "not today"},
		"wants it asked":      {`echo '{"hookSpecificOutput":{"permissionDecision":"ask"}}'`, "", "denies it"},
		"rewrites":            {`echo '{"hookSpecificOutput":{"updatedInput":{"command":"ls -a"}}}'`, `{"command":"ls -a"}`, ""},
		"is broken":           {`exit 1`, "", "ended with the code 1, so the call is not made"},
		"is not there":        {`/no/such/program`, "", "so the call is not made"},
		"answers nonsense":    {`echo '{"decision":'`, "", "is no JSON"},
		"answers plain words": {`echo fine`, `{"command":"ls"}`, ""},
		"hangs":               {`sleep 60`, "", "did not answer within"},
		"floods":              {`head -c 2000000 /dev/zero`, "", "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Runner{Hooks: []Hook{{Name: "h", Event: Before, Tools: "write|bash", Command: c.command, Timeout: 2 * time.Second}, {Name: "other", Event: Before, Tools: "read", Command: "exit 2"}}, Dir: t.TempDir(), Environ: os.Environ()}
			input, denied := r.Before(t.Context(), Call{Session: "s", Tool: "bash", Input: []byte(`{"command":"ls"}`)})
			if string(input) != c.input || !strings.Contains(denied, c.denied) || (denied == "") != (c.denied == "") {
				t.Errorf("%s, %q", input, denied)
			}
		})
	}
}

// Each hook sees what the one before it made of the call.
func TestSeveral(t *testing.T) {
	t.Parallel()
	r := Runner{Hooks: []Hook{{Name: "a", Event: Before, Command: `echo '{"hookSpecificOutput":{"updatedInput":{"n":2}}}'`}, {Name: "b", Event: Before, Command: `grep -q '"n":2' || exit 2`}}, Dir: t.TempDir(), Environ: os.Environ()}
	if input, denied := r.Before(t.Context(), Call{Tool: "x", Input: []byte(`{"n":1}`)}); denied != "" || string(input) != `{"n":2}` {
		t.Errorf("%s %q", input, denied)
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		`exit 0`:                                "",
		`grep -o '"text":"[a-z]*"' >&2; exit 2`: `says: "text":"out"`,
		`echo '{"hookSpecificOutput":{"additionalContext":"run the linter"}}'`: "says: run the linter",
		`exit 7`:   "ended with the code 7",
		`sleep 60`: "failed after the call",
	} {
		r := Runner{Hooks: []Hook{{Name: "h", Event: After, Command: command, Timeout: 300 * time.Millisecond}}, Dir: t.TempDir(), Environ: os.Environ()}
		if more := r.After(t.Context(), Call{Tool: "bash", Input: []byte(`{}`), Response: &Response{Text: "out"}}); !strings.Contains(more, want) || (more == "") != (want == "") {
			t.Errorf("%s: %q", command, more)
		}
	}
}
