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
		"stops as of old":     {`echo '{"continue":false,"stopReason":"enough"}'`, "", "the hook h denies it: enough"},
		"decides nonsense":    {`echo '{"hookSpecificOutput":{"permissionDecision":"maybe"}}'`, "", "must be allow, deny or ask"},
		"rewrites":            {`echo '{"hookSpecificOutput":{"updatedInput":{"command":"ls -a"}}}'`, `{"command":"ls -a"}`, ""},
		"is broken":           {`exit 1`, "", "ended with the code 1, so the call is not made"},
		"is not there":        {`/no/such/program`, "", "so the call is not made"},
		"answers nonsense":    {`echo '{"decision":'`, "", "is not valid JSON"},
		"answers plain words": {`echo fine`, `{"command":"ls"}`, ""},
		"hangs":               {`sleep 60`, "", "did not answer within"},
		"floods":              {`head -c 2000000 /dev/zero`, "", "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Runner{Hooks: []Hook{{Name: "h", Event: Before, Tools: "write|bash", Command: c.command, Timeout: 2 * time.Second}, {Name: "other", Event: Before, Tools: "read", Command: "exit 2"}}, Dir: t.TempDir(), Environ: os.Environ()}
			got := r.Before(t.Context(), Call{Session: "s", Tool: "bash", Input: []byte(`{"command":"ls"}`)})
			if string(got.Input) != c.input || !strings.Contains(got.Denied, c.denied) || (got.Denied == "") != (c.denied == "") || got.Ask != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Each hook sees what the one before it made of the call.
func TestSeveral(t *testing.T) {
	t.Parallel()
	r := Runner{Hooks: []Hook{{Name: "a", Event: Before, Command: `echo '{"hookSpecificOutput":{"updatedInput":{"n":2}}}'`}, {Name: "b", Event: Before, Command: `grep -q '"n":2' || exit 2`}}, Dir: t.TempDir(), Environ: os.Environ()}
	if got := r.Before(t.Context(), Call{Tool: "x", Input: []byte(`{"n":1}`)}); got.Denied != "" || string(got.Input) != `{"n":2}` {
		t.Errorf("%+v", got)
	}
}

// A hook that wants a person to be asked neither allows nor denies; a later one may still deny.
func TestAsking(t *testing.T) {
	t.Parallel()
	ask := `echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"it is Friday"}}'`
	for name, c := range map[string]struct{ second, ask, denied string }{
		"asks":             {`exit 0`, "the hook a wants it asked for: it is Friday", ""},
		"both ask":         {`echo '{"hookSpecificOutput":{"permissionDecision":"ask"}}'`, "it is Friday; the hook b wants it asked for: it gives no reason", ""},
		"another allows":   {`echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'`, "it is Friday", ""},
		"another denies":   {`exit 2`, "", "the hook b denies it"},
		"another rewrites": {`echo '{"hookSpecificOutput":{"updatedInput":{"n":2}}}'`, "it is Friday", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Runner{Hooks: []Hook{{Name: "a", Event: Before, Command: ask}, {Name: "b", Event: Before, Command: c.second}}, Dir: t.TempDir(), Environ: os.Environ()}
			got := r.Before(t.Context(), Call{Tool: "x", Input: []byte(`{"n":1}`)})
			if !strings.Contains(got.Ask, c.ask) || (got.Ask == "") != (c.ask == "") || !strings.Contains(got.Denied, c.denied) || (got.Denied == "") != (c.denied == "") {
				t.Errorf("%+v", got)
			}
		})
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
