package engine

import (
	"context"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// Arrive is Deliver for a platform's connector, which has routed what came itself: it is
// written once into every thread that hears it, and whoever must answer is woken. Prompts
// beyond the queue's limit are refused in the same breath.
func (e *Engine) Arrive(ctx context.Context, a journal.Arrival) (journal.Arrived, error) {
	done, tell, err := e.ArriveQuietly(ctx, a)
	tell()
	return done, err
}

// ArriveQuietly is Arrive for one of several that come at once: whoever must answer is
// woken by tell, when all of them are written. Should that never be called, the sweep
// finds them. tell is never nil and may be called once.
func (e *Engine) ArriveQuietly(ctx context.Context, a journal.Arrival) (done journal.Arrived, tell func(), err error) {
	tell = func() {}
	for i := range a.Commits {
		for _, ev := range a.Commits[i].Events {
			if _, ok := ev.Body.(chat.Received); ok && a.Commits[i].MaxWaiting == 0 {
				a.Commits[i].MaxWaiting = e.MaxWaiting
			}
		}
	}
	done, err = e.quick.Arrive(ctx, a)
	if err != nil {
		return done, tell, fmt.Errorf("arrive: %w", err)
	}
	return done, func() {
		for i, c := range done.Commits {
			e.moved(a.Commits[i].Thread, c.Events)
		}
	}, nil
}
