package store

import (
	"context"
	"fmt"
	"time"

	"chorus/internal/database"
	"chorus/internal/journal"
)

// FailedSince returns a bot's things that were given up since a moment, in the order in which
// they were wanted. Whoever should have been told of them may not have been.
func (db *DB) FailedSince(ctx context.Context, platform, bot string, since time.Time) ([]journal.Outgoing, error) {
	out, err := db.outgoing(ctx, `platform = ? AND bot = ? AND state = 'failed' AND changed >= ? ORDER BY channel, seq`, []any{platform, bot, database.Micros(since)})
	if err != nil {
		return nil, fmt.Errorf("what %s:%s has given up: %w", platform, bot, err)
	}
	return out, nil
}
