package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/peernotify"
	"chorus/internal/polltest"
)

// A process that is drained lets a tool end, hands the thread over at that step with a notification, and takes nothing new; the other one
// goes on without repeating anything. Afterwards it can run threads again.
func TestDrainHandsThreadsOver(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newRig(t, f)
	r.close()
	peers := peernotify.In(t.TempDir())
	t.Cleanup(peers.Close)
	r.config = func(c *engine.Config) { c.Peers = peers }
	r.open()
	other := r.second(true)
	r.say("!call act {}\n!---\n!say {{last}}")
	<-began
	r.engine.Drain(time.Minute)
	release <- struct{}{} // the tool ends by itself
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var said string
	for item, err := range other.Watch(ctx, thread, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			continue
		}
		if s, ok := item.Event.Body.(chat.Said); ok {
			said = s.Blocks.Text()
		}
		if is[chat.RunEnded](*item.Event) {
			break
		}
	}
	if !strings.HasPrefix(said, "held") || len(began) != 0 {
		t.Errorf("the new owner said %q", said)
	}
	if n := r.engine.Fenced(); n != 0 {
		t.Errorf("%d threads were lost instead of handed over", n)
	}
	if err := other.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	r.say("!say two")
	// It may look at what was said, and then leaves it to others.
	polltest.Until(t, "the drained process has let the thread go", func() bool { return !r.engine.Awake(thread) })
	if all := r.events(thread); !is[chat.Received](all[len(all)-1]) {
		t.Errorf("a drained process runs a thread: %T", all[len(all)-1].Body)
	}
	r.engine.Resume()
	if got := lastText(r.untilEnds(2)); got != "two" {
		t.Error(got)
	}
}
