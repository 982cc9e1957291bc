package agent_test

import (
	"context"
	"strings"
	"testing"

	"chorus/internal/agent"
	"chorus/internal/agent/toolcall"
	"chorus/internal/approval"
	"chorus/internal/chat"
)

// What a hook rewrites is what is judged, asked for and run, and both the person and the model are told.
func TestARewrittenCallIsJudgedAndShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict approval.Verdict
		ran     string
		told    string
	}{
		"allowed": {approval.Allow, `{"n":7}`, "[a hook changed the arguments of this call to {\"n\":7}]\nok"},
		"denied":  {approval.Deny, "", "[a hook changed the arguments of this call to {\"n\":7}]\npermission denied: no"},
		"asked":   {approval.Pending, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &act{}
			made := newAgent(t, a, call(1), chat.TextBlocks("done"))
			made.Before = func(context.Context, string, []byte) toolcall.HookVerdict {
				return toolcall.HookVerdict{Args: []byte(`{"n":7}`), Ask: "it is Friday"}
			}
			var judged agent.ProposedCall
			h := &host{judge: func(q agent.ProposedCall) approval.Ruling {
				judged = q
				return approval.Ruling{Verdict: c.verdict, Reason: "no", Ask: &approval.Approval{ID: "a1"}}
			}}
			h.guest(prompt())
			if _, err := made.Run(context.Background(), fold(t, h), h); err != nil {
				t.Fatal(err)
			}
			if string(judged.Args) != `{"n":7}` || string(judged.Call.Args) != `{"n":7}` || judged.Ask != "it is Friday" {
				t.Errorf("judged %+v", judged)
			}
			if got := strings.Join(a.ran, " "); got != c.ran {
				t.Errorf("ran %q", got)
			}
			told := ""
			for _, ev := range h.journal {
				switch b := ev.Body.(type) {
				case chat.ToolRan:
					told = b.Blocks.Text()
				case chat.ApprovalAsked:
					if string(b.Args) != `{"n":7}` || b.Why != "it is Friday" {
						t.Errorf("asked %+v", b)
					}
				}
			}
			if told != c.told {
				t.Errorf("told %q", told)
			}
		})
	}
}

// A hook that makes arguments which the tool does not take denies the call.
func TestAHookThatWritesNonsenseDenies(t *testing.T) {
	t.Parallel()
	a := &act{}
	made := newAgent(t, a, call(1), chat.TextBlocks("done"))
	made.Before = func(context.Context, string, []byte) toolcall.HookVerdict {
		return toolcall.HookVerdict{Args: []byte(`[1]`)}
	}
	h := &host{}
	h.guest(prompt())
	if _, err := made.Run(context.Background(), fold(t, h), h); err != nil {
		t.Fatal(err)
	}
	if len(a.ran) > 0 || !strings.Contains(h.kinds(), "tool_ran") {
		t.Errorf("ran %v: %s", a.ran, h.kinds())
	}
}
