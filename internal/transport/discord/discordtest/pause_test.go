package discordtest

import (
	"context"
	"iter"
	"sync"

	"chorus/internal/model"
)

// modelPause stops the offline model in the middle of its answers for as long as a test needs,
// however fast or slow the machine is.
type modelPause struct {
	mu    sync.Mutex
	shut  chan struct{} // closed when it is let go; nil: nothing is stopped
	after int           // how many chunks pass before
}

// pauseModel lets answers that begin from now on stop after that many chunks, until it is let go.
func (g *guildT) pauseModel(after int) (goOn func()) {
	shut := make(chan struct{})
	l := &g.pause
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut, l.after = shut, after
	return func() {
		close(shut)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.shut == shut { // what comes next is not stopped
			l.shut = nil
		}
	}
}

func (l *modelPause) get() (chan struct{}, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shut, l.after
}

// through is a model that can be stopped.
func (l *modelPause) through(m model.Model) model.Model { return pausedModel{m, l} }

type pausedModel struct {
	model.Model
	latch *modelPause
}

func (h pausedModel) Stream(ctx context.Context, p model.Prepared) iter.Seq2[model.Chunk, error] {
	shut, after := h.latch.get()
	if shut == nil {
		return h.Model.Stream(ctx, p)
	}
	return func(yield func(model.Chunk, error) bool) {
		n := 0
		for chunk, err := range h.Model.Stream(ctx, p) {
			if n == after {
				select {
				case <-shut:
				case <-ctx.Done():
					yield(nil, ctx.Err())
					return
				}
			}
			n++
			if !yield(chunk, err) {
				return
			}
		}
	}
}
