package store

import (
	"context"
	"fmt"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
)

// StopWork makes every current run and every waiting prompt end before any of it is done again. It
// is for a database that was reset to an earlier state: what looks unfinished there may be done. It
// returns the number of threads in which something was stopped.
func (db *DB) StopWork(ctx context.Context, by chat.Principal) (int, error) {
	threads, err := db.threads(ctx, `SELECT `+threadColumns+` FROM threads WHERE wake = 1 OR status IN ('running', 'waiting_for_permission', 'waiting_for_agents') OR waiting > 0`)
	if err != nil {
		return 0, fmt.Errorf("stop what is on: %w", err)
	}
	for _, t := range threads {
		c := journal.Commit{Thread: t.ID}
		if t.Status.On() {
			run, err := db.LastRun(ctx, t.ID)
			if err != nil {
				return 0, fmt.Errorf("stop what is on in %s: %w", t.ID, err)
			}
			c.Events = []chat.Event{{Thread: t.ID, Who: by.String(), Body: chat.AbortAsked{Run: run, By: by.String(), All: true}}}
			c.Approvals = []approval.Change{{CancelRun: run}}
		} else {
			seqs, err := db.PendingPrompts(ctx, t.ID)
			if err != nil {
				return 0, fmt.Errorf("stop what is on in %s: %w", t.ID, err)
			}
			for _, seq := range seqs {
				c.Events = append(c.Events, chat.Event{Thread: t.ID, Who: by.String(), Body: chat.Refused{Seq: seq, Why: "stopped: the database was reset to an earlier state, and this may have been answered already; send it again"}})
			}
		}
		if len(c.Events) == 0 {
			continue
		}
		if _, err := db.Commit(ctx, c); err != nil {
			return 0, fmt.Errorf("stop what is on in %s: %w", t.ID, err)
		}
	}
	return len(threads), nil
}
