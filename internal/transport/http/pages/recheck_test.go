package pages

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// A stream ends at the first heartbeat after its token was revoked.
func TestStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	over := errors.New("the token is over")
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p.Recheck = func(context.Context, operation.Caller) error {
			if asked++; asked > 2 {
				return over
			}
			return nil
		}
		p.Executor = &failsOnce{}
		w := &fakeWriter{header: http.Header{}}
		s := &stream{pages: p, w: w, control: http.NewResponseController(w)}
		if err := s.run(t.Context(), make(chan update), nil); !errors.Is(err, over) {
			t.Errorf("it ended with %v", err)
		}
		if n := strings.Count(w.String(), ": still here"); n != 2 {
			t.Errorf("%d heartbeats, want 2: %q", n, w.String())
		}
	})
}

// failsOnce is an executor whose first call fails.
type failsOnce struct {
	operation.Executor
	asked int
}

func (b *failsOnce) Execute(context.Context, operation.Caller, *operation.Definition, any) (any, error) {
	if b.asked++; b.asked == 1 {
		return operations.Session{}, errors.New("the disk is busy")
	}
	return operations.Session{ID: "s1", Status: "idle"}, nil
}

// The state at the end of a run is sent although it could not be read at first.
func TestStreamRetriesTheState(t *testing.T) {
	t.Parallel()
	p := newPages(t)
	synctest.Test(t, func(t *testing.T) {
		p.Executor = &failsOnce{}
		w := &fakeWriter{header: http.Header{}}
		s := &stream{pages: p, w: w, control: http.NewResponseController(w)}
		items := make(chan update, 1)
		items <- update{item: feed.Completed{Head: feed.Head{Seq: 4, Run: "r", At: noon}, StopReason: "done"}}
		ctx, cancel := context.WithTimeout(t.Context(), heartbeat+time.Second)
		defer cancel()
		if err := s.run(ctx, items, nil); !errors.Is(err, context.DeadlineExceeded) || strings.Count(w.String(), `"status":"idle"`) != 1 {
			t.Errorf("%v: %s", err, w.String())
		}
	})
}
