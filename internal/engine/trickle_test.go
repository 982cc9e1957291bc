package engine_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/demo"
	"chorus/internal/store/storetest"
)

// drip is a model that never stops, and does not listen.
type drip struct {
	model.Model
	on      *atomic.Bool
	release chan struct{}
}

func (m drip) Stream(ctx context.Context, p model.Prepared) iter.Seq2[model.Chunk, error] {
	if !m.on.Load() {
		return m.Model.Stream(ctx, p)
	}
	return func(yield func(model.Chunk, error) bool) {
		for {
			select {
			case <-m.release:
				return
			case <-time.After(10 * time.Second):
			}
			if !yield(model.TextDelta{Text: "a"}, nil) {
				return
			}
		}
	}
}

// A model that trickles for ever is stopped by the bound of a whole answer, and one that
// does not listen to an abort holds the thread for no longer than its grace.
func TestATrickleEnds(t *testing.T) {
	t.Parallel()
	if _, err := storetest.Empty(); err != nil {
		t.Fatal(err)
	}
	bounds := deadline.Defaults()
	for name, c := range map[string]struct {
		abort  bool
		within time.Duration
		reason chat.Reason
		want   string
	}{
		"left alone": {false, bounds.Answer + 3*bounds.Grace, chat.EndFailed, "waited 1h0m0s for the model demo/script without success"},
		"aborted":    {true, 3 * bounds.Grace, chat.EndAborted, "Stopped."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := &hang{count: map[string]int{}, blind: map[string]bool{}}
				s := newScene(t, h)
				on, release := &atomic.Bool{}, make(chan struct{})
				on.Store(true)
				s.provider = drip{demo.New(), on, release}
				s.restart()
				begun := time.Now()
				s.say("!say never")
				synctest.Wait()
				if c.abort {
					s.tell(ignore(s.engine.Abort(context.Background(), thread, "ada", false)))
				}
				for !s.ended() && time.Since(begun) < 2*c.within {
					time.Sleep(time.Second)
				}
				if took := time.Since(begun); took > c.within {
					t.Errorf("it took %s", took)
				}
				on.Store(false)
				s.say("!say and now")
				if !s.until(quiet) {
					t.Error("the next message was not answered")
				}
				events, err := s.db.Events(context.Background(), thread, 0, 1000)
				if err != nil {
					t.Fatal(err)
				}
				ends := bodies[chat.RunEnded](events)
				if len(ends) != 2 || ends[0].Reason != c.reason || !strings.Contains(ends[0].Text, c.want) || lastText(events) != "and now" {
					t.Errorf("%+v\n%s", ends, kinds(events))
				}
				close(release)
				synctest.Wait()
			})
		})
	}
}

// ended reports that the thread has nothing to do.
func (s *scene) ended() bool {
	row, err := s.db.Thread(context.Background(), thread)
	return err == nil && quiet(row)
}
