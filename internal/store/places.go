package store

import (
	"context"
	"database/sql"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// Places returns the threads that a message on a platform belongs to:
// those that heard it, or the one that said it.
func (db *DB) Places(ctx context.Context, platform, messageID string) ([]journal.Place, error) {
	var out []journal.Place
	if messageID == "" {
		return nil, nil
	}
	err := db.Query(ctx, `SELECT thread_id, seq, part, bot, channel, key, 1 FROM message_places WHERE platform = ? AND message_id = ?
		UNION ALL SELECT thread_id, seq, 0, '', '', '', 0 FROM events
		WHERE platform = ? AND platform_id = ? AND kind = 'received' AND platform_id <> '' ORDER BY 1, 2`,
		[]any{platform, messageID, platform, messageID}, database.Fill(&out, func(rows *sql.Rows, p *journal.Place) error {
			err := rows.Scan(&p.Thread, &p.Seq, &p.Part, &p.Lane.Bot, &p.Lane.Channel, &p.Key, &p.Ours)
			if p.Ours {
				p.Lane.Platform = platform
			}
			return err
		}))
	if err != nil {
		return nil, fmt.Errorf("where message %s belongs: %w", messageID, err)
	}
	return out, nil
}

// ShownIn returns our messages in a channel that belong to a thread.
func (db *DB) ShownIn(ctx context.Context, platform, channel string, thread chat.ThreadID) ([]string, error) {
	out, err := database.List[string](ctx, db.DB, `SELECT message_id FROM message_places WHERE platform = ? AND thread_id = ? AND channel = ? ORDER BY seq, part`, platform, string(thread), channel)
	if err != nil {
		return nil, fmt.Errorf("what of thread %s is shown in channel %s: %w", thread, channel, err)
	}
	return out, nil
}

// Cursor returns the id of the message up to which a channel's history
// was read, or "" if the channel was never seen.
func (db *DB) Cursor(ctx context.Context, lane journal.Lane) (string, error) {
	var id string
	err := db.Query(ctx, `SELECT message_id FROM cursors WHERE `+ofLane, laneArgs(lane), func(rows *sql.Rows) error { return rows.Scan(&id) })
	if err != nil {
		return "", fmt.Errorf("cursor of lane %s: %w", lane, err)
	}
	return id, nil
}

// Cursors returns the cursor of every channel that a bot has seen.
func (db *DB) Cursors(ctx context.Context, platform, bot string) (map[string]string, error) {
	out := map[string]string{}
	err := db.Query(ctx, `SELECT channel, message_id FROM cursors WHERE platform = ? AND bot = ?`, []any{platform, bot}, database.Pairs(out))
	if err != nil {
		return nil, fmt.Errorf("cursors of %s:%s: %w", platform, bot, err)
	}
	return out, nil
}

// MoveCursor records that everything up to a message was read and stored, if the
// cursor is still where the caller saw it ("" for none); otherwise it returns false.
// Only the platform knows which of two messages is newer.
func (db *DB) MoveCursor(ctx context.Context, lane journal.Lane, from, to string) (moved bool, err error) {
	if to == "" {
		return false, fmt.Errorf("move cursor of lane %s: no message given", lane)
	}
	err = db.Write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`INSERT INTO cursors (platform, bot, channel, message_id, at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (platform, bot, channel) DO UPDATE SET message_id = excluded.message_id, at = excluded.at WHERE cursors.message_id = ?`,
			append(laneArgs(lane, to, database.Micros(db.Now())), from)...)
		moved = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("move cursor of lane %s: %w", lane, err)
	}
	return moved, nil
}

// LastArrivals returns the ids of what arrived through a bot, of one kind,
// newest first. Ids of a platform grow with time.
func (db *DB) LastArrivals(ctx context.Context, platform, bot, kind string, limit int) ([]string, error) {
	out, err := database.List[string](ctx, db.DB, `SELECT DISTINCT platform_id FROM arrivals WHERE platform = ? AND bot = ? AND kind = ? ORDER BY platform_id DESC LIMIT ?+0`,
		platform, bot, kind, database.Limit(limit, 100))
	if err != nil {
		return nil, fmt.Errorf("what arrived last at %s:%s: %w", platform, bot, err)
	}
	return out, nil
}
