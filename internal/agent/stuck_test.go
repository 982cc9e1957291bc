package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/agent"
	"chorus/internal/chat"
	"chorus/internal/tool"
)

// stuck is a tool that does not come back; obedient ones end when they are told to.
type stuck struct {
	obedient bool
	release  chan struct{}
}

func (s *stuck) Spec() tool.Spec {
	return tool.Spec{Name: "act", Schema: json.RawMessage(`{"type":"object"}`)}
}
func (s *stuck) Access([]byte) []tool.Access { return nil }
func (s *stuck) Run(ctx context.Context, _ []byte) (tool.Result, error) {
	if s.obedient {
		<-ctx.Done()
		return tool.Fail("told to stop"), nil
	}
	<-s.release
	return tool.OK("too late"), nil
}

// A call that never ends is ended, or left alone, and the conversation goes on.
func TestNoCallHoldsTheThread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		obedient bool
		within   time.Duration
		want     string
	}{
		"obedient": {true, time.Minute, "told to stop"},
		"deaf":     {false, time.Minute + 10*time.Second, "abandoned after 1m10s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &stuck{obedient: c.obedient, release: make(chan struct{})}
				set, err := tool.NewSet(s)
				if err != nil {
					t.Fatal(err)
				}
				h := &host{}
				h.guest(prompt())
				ag := newAgent(t, &act{}, call(1), chat.TextBlocks("I went on"))
				ag.Tools, ag.Bounds.Tool, ag.Now = set, time.Minute, time.Now
				begun := time.Now()
				state, err := ag.Run(context.Background(), fold(t, h), h)
				if err != nil || state != agent.Finished {
					t.Fatal(state, err)
				}
				if took := time.Since(begun); took != c.within {
					t.Errorf("took %s", took)
				}
				end := h.journal[len(h.journal)-1].Body.(chat.RunEnded)
				if end.Reason != chat.EndDone {
					t.Errorf("%+v", end)
				}
				for _, ev := range h.journal {
					if ran, ok := ev.Body.(chat.ToolRan); ok && (!ran.Failed || !strings.Contains(ran.Blocks.Text(), c.want)) {
						t.Errorf("%+v", ran)
					}
				}
				close(s.release)
			})
		})
	}
}
