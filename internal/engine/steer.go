package engine

import (
	"cmp"
	"context"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// SteerOnce is Steer for words that may be sent again because the response to the first
// request was lost. Words with the same platform id are taken once.
func (e *Engine) SteerOnce(ctx context.Context, thread chat.ThreadID, s chat.Steered, platform, platformID string) (Receipt, error) {
	s.Mode = cmp.Or(s.Mode, chat.Interrupt)
	c := e.guest(thread, s.Principal.String(), s)
	if platformID == "" {
		platform, platformID = c.Events[0].Platform, c.Events[0].PlatformID
	}
	c.Events[0].Platform, c.Events[0].PlatformID = platform, platformID
	done, err := e.Journal.Arrive(ctx, journal.Arrival{Platform: platform, What: "steer", PlatformID: platformID, Commits: []journal.Commit{c}})
	if err != nil {
		return Receipt{}, fmt.Errorf("steer: %w", err)
	}
	if done.Again {
		return Receipt{Again: true}, nil
	}
	e.moved(thread, done.Commits[0].Events)
	return Receipt{Seq: done.Commits[0].Events[0].Seq, Waiting: done.Commits[0].Waiting}, nil
}

// Awake reports whether the thread has an actor now, that is, whether it runs or did lately.
func (e *Engine) Awake(thread chat.ThreadID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.actors[thread] != nil
}
