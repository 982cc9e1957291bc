package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/engine"
	"chorus/internal/journal"
)

// Words for a thread whose files are on a machine that is gone are kept, whoever watches is told, and they are answered when it is back.
func TestThreadWaitsForItsFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.close()
	var gone atomic.Bool
	gone.Store(true)
	r.config = func(c *engine.Config) {
		c.Here = func(journal.Thread) error {
			if gone.Load() {
				return errors.New("this conversation waits for node berlin")
			}
			return nil
		}
	}
	r.open()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r.say("!say one")
	var told error
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for item, err := range r.engine.Watch(ctx, thread, 0) {
			if told = err; told != nil {
				return
			}
			if item.Event != nil && item.Event.Seq == 1 { // from here on it listens
				_, _ = r.engine.Steer(ctx, thread, steer("!say two", "queue"))
			}
		}
	}()
	<-watched
	if told == nil || !strings.Contains(told.Error(), "waits for node berlin") {
		t.Errorf("nobody was told: %v", told)
	}
	gone.Store(false)
	r.engine.Wake(thread)
	if events := r.untilEnds(1); lastText(events) == "" {
		t.Errorf("what was said meanwhile was not answered:\n%s", show(events))
	}
}
