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
	for i := range a.Commits {
		for _, ev := range a.Commits[i].Events {
			if _, ok := ev.Body.(chat.Received); ok && a.Commits[i].MaxWaiting == 0 {
				a.Commits[i].MaxWaiting = e.MaxWaiting
			}
		}
	}
	done, err := e.quick.Arrive(ctx, a)
	if err != nil {
		return done, fmt.Errorf("arrive: %w", err)
	}
	for i, c := range done.Commits {
		e.moved(a.Commits[i].Thread, c.Events)
	}
	return done, nil
}
