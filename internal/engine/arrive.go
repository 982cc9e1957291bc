package engine

import (
	"context"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// Arrive is Deliver for a platform's connector, which has done the routing itself. It writes the
// message once into every thread that gets it and wakes the actors that must answer. Prompts
// beyond the queue's limit are refused in the same transaction.
func (e *Engine) Arrive(ctx context.Context, a journal.Arrival) (journal.Arrived, error) {
	done, notify, err := e.ArriveQuietly(ctx, a)
	notify()
	return done, err
}

// ArriveQuietly is Arrive for one of several messages that arrive at once. The actors are
// woken by notify, once all messages are written. If notify is never called, the sweep finds
// them. notify is never nil and must be called at most once.
func (e *Engine) ArriveQuietly(ctx context.Context, a journal.Arrival) (done journal.Arrived, notify func(), err error) {
	notify = func() {}
	for i := range a.Commits {
		for _, ev := range a.Commits[i].Events {
			if _, ok := ev.Body.(chat.Received); ok && a.Commits[i].MaxWaiting == 0 {
				a.Commits[i].MaxWaiting = e.MaxWaiting
			}
		}
	}
	done, err = e.timed.Arrive(ctx, a)
	if err != nil {
		return done, notify, fmt.Errorf("arrive: %w", err)
	}
	return done, func() {
		for i, c := range done.Commits {
			e.moved(a.Commits[i].Thread, c.Events)
		}
	}, nil
}
