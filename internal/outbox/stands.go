package outbox

import (
	"context"

	"chorus/internal/journal"
)

// Stands waits until a thing that was wished for stands on the platform, or never will, and
// gives its row. It is for those who must say what became of it.
func (e *Engine) Stands(ctx context.Context, id journal.Lane, key string) (journal.Outgoing, error) {
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
