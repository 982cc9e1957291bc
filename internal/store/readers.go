package store

import (
	"context"
	"database/sql"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// Reader returns how far a durable reader has read a thread; 0 if it has not begun.
func (db *DB) Reader(ctx context.Context, name string, thread chat.ThreadID) (int64, error) {
	n, err := db.Count(ctx, `SELECT seq FROM readers WHERE reader = ? AND thread_id = ?`, name, string(thread))
	if err != nil {
		return 0, fmt.Errorf("reader %s of thread %s: %w", name, thread, err)
	}
	return n, nil
}

// MoveReader records that the reader is done with everything up to seq. A reader never moves back.
func (db *DB) MoveReader(ctx context.Context, name string, thread chat.ThreadID, seq int64) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		n, err := tx.Change(`INSERT INTO readers (reader, thread_id, seq) SELECT ?, id, ? FROM threads WHERE id = ?
			ON CONFLICT (reader, thread_id) DO UPDATE SET seq = CASE WHEN excluded.seq > readers.seq THEN excluded.seq ELSE readers.seq END`,
			name, seq, string(thread))
		if err == nil && n == 0 {
			err = journal.ErrUnknown
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("move reader %s of thread %s: %w", name, thread, err)
	}
	return nil
}

// Lag describes a thread that a reader has not read to its end.
type Lag struct {
	Thread chat.ThreadID
	Seq    int64 // read up to here
	Next   int64 // the thread's next number
}

// Behind lists threads in which the reader is behind, the last active first.
func (db *DB) Behind(ctx context.Context, reader string, limit int) ([]Lag, error) {
	var out []Lag
	err := db.Query(ctx, `SELECT t.id, coalesce(r.seq, 0), t.next_seq FROM threads t
		LEFT JOIN readers r ON r.thread_id = t.id AND r.reader = ?
		WHERE t.next_seq - 1 > coalesce(r.seq, 0) ORDER BY t.last_active DESC, t.id LIMIT ?+0`,
		[]any{reader, database.Limit(limit, 100)}, database.Fill(&out, func(rows *sql.Rows, l *Lag) error {
			return rows.Scan(&l.Thread, &l.Seq, &l.Next)
		}))
	if err != nil {
		return nil, fmt.Errorf("where reader %s is behind: %w", reader, err)
	}
	return out, nil
}
