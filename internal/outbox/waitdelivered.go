package outbox

import (
	"context"

	"chorus/internal/journal"
)

// WaitDelivered waits until something that was wanted is on the platform, or never will be,
// and returns its row. It is for callers that report what became of it.
func (e *Engine) WaitDelivered(ctx context.Context, id journal.Lane, key string) (journal.Outgoing, error) {
	for {
		e.mu.Lock()
		moved := e.moved
		e.mu.Unlock()
		row, err := e.o.Store.Outgoing(ctx, id, key)
		if err != nil {
			return row, err
		}
		switch row.State {
		case journal.Sent, journal.Failed, journal.Superseded:
			return row, nil
		}
		e.Wake(id)
		select {
		case <-moved:
		case <-ctx.Done():
			return row, ctx.Err()
		}
	}
}
