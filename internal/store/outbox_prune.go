package store

import (
	"context"
	"fmt"
	"time"

	"chorus/internal/database"
	"chorus/internal/journal"
)

// maxPruned limits one transaction; callers repeat the call.
const maxPruned = 500

// PruneOutbox removes rows of a bot that nobody can need again: final, settled, older than a
// moment, and passed by the reader that wanted them. Which thread a message belongs to is stored
// elsewhere and remains. It returns how many rows were removed.
func (db *DB) PruneOutbox(ctx context.Context, platform, bot, reader string, before time.Time) (int64, error) {
	var n int64
	err := db.Write(ctx, func(tx database.Tx) (err error) {
		n, err = tx.Change(`DELETE FROM outbox WHERE (platform, bot, channel, key) IN (
			SELECT o.platform, o.bot, o.channel, o.key FROM outbox o JOIN readers r ON r.reader = ? AND r.thread_id = o.thread_id AND r.seq >= o.event
			WHERE o.platform = ? AND o.bot = ? AND o.final = 1 AND o.changed < ? AND o.state IN (?, ?, ?) LIMIT ?+0)`,
			reader, platform, bot, database.Micros(before), string(journal.Sent), string(journal.Superseded), string(journal.Failed), maxPruned)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("prune the outbox of %s:%s: %w", platform, bot, err)
	}
	return n, nil
}
