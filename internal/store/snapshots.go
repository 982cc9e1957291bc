package store

import (
	"context"
	"database/sql"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// Snapshot reads the thread's latest snapshot in this codec, or fails with ErrUnknown.
func (db *DB) Snapshot(ctx context.Context, thread chat.ThreadID, codec string) (journal.Snapshot, error) {
	s := journal.Snapshot{Thread: thread, Codec: codec}
	err := db.Query(ctx, `SELECT seq, state FROM snapshots WHERE thread_id = ? AND codec = ?`,
		[]any{string(thread), codec}, func(rows *sql.Rows) error { return rows.Scan(&s.Seq, &s.State) })
	if err == nil && s.Seq == 0 {
		err = journal.ErrUnknown
	}
	if err != nil {
		return journal.Snapshot{}, fmt.Errorf("snapshot of thread %s: %w", thread, err)
	}
	return s, nil
}

// SaveSnapshot replaces the thread's snapshot in that codec. A
// snapshot older than the stored one changes nothing.
func (db *DB) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	if s.State == nil {
		s.State = []byte{} // nil would be NULL
	}
	err := db.Write(ctx, func(tx database.Tx) error {
		var next int64
		if err := tx.Row(`SELECT coalesce(max(next_seq), 0) FROM threads WHERE id = ?`+unerased, []any{string(s.Thread)}, &next); err != nil {
			return err
		}
		switch {
		case next == 0:
			return journal.ErrUnknown
		case s.Seq < 1 || s.Seq >= next:
			return fmt.Errorf("there is no event %d", s.Seq)
		}
		// A snapshot from before a deletion may contain words that were forgotten.
		var deleted int
		err := tx.Row(`SELECT count(*) FROM events WHERE thread_id = ? AND seq > ? AND kind = 'deleted'`, []any{string(s.Thread), s.Seq}, &deleted)
		if err != nil || deleted > 0 {
			return err
		}
		return tx.Exec(`INSERT INTO snapshots (thread_id, codec, seq, state, at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (thread_id, codec) DO UPDATE SET seq = excluded.seq, state = excluded.state, at = excluded.at
			WHERE excluded.seq >= snapshots.seq`, string(s.Thread), s.Codec, s.Seq, s.State, database.Micros(db.Now()))
	})
	if err != nil {
		return fmt.Errorf("save snapshot of thread %s: %w", s.Thread, err)
	}
	return nil
}
