package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

const (
	behindIn    = `SELECT t.id FROM threads t LEFT JOIN readers r ON r.thread_id = t.id AND r.reader = ? WHERE t.transport = ? AND t.parent = '' AND t.next_seq - 1 > coalesce(r.seq, 0)`
	oldestFirst = ` ORDER BY t.last_active, t.id`
)

// behindSince is behindIn limited to the threads that have changed since a mark, and some others.
func behindSince(says *dialect, listed string) string {
	return behindIn + ` AND t.id IN (` + says.movedSince + ` UNION ALL ` + listed + `)` + oldestFirst
}

// BehindSince lists the threads of a transport in which a reader is behind, among those that
// any process has changed since a mark, and the given others. The least recently active come
// first. It also returns the mark for the next call. It reads what has changed, however many
// threads there are. With mark 0 it reads all threads, and so does the first call on a
// journal that the mark is not from.
func (db *DB) BehindSince(ctx context.Context, reader, transport string, mark int64, others []chat.ThreadID) ([]chat.ThreadID, int64, error) {
	end, err := db.Count(ctx, db.says.journalEnd) // first, so that what is written meanwhile is checked again
	if err != nil {
		return nil, mark, fmt.Errorf("the end of the journal: %w", err)
	}
	query, args := behindIn+oldestFirst, []any{reader, transport}
	if mark > 0 && mark <= end {
		names, err := json.Marshal(append([]chat.ThreadID{}, others...))
		if err != nil {
			return nil, mark, fmt.Errorf("where reader %s is behind: %w", reader, err)
		}
		query, args = behindSince(db.says, db.Listed()), append(args, mark, string(names))
	}
	out, err := database.List[chat.ThreadID](ctx, db.DB, query, args...)
	if err != nil {
		return nil, mark, fmt.Errorf("where reader %s is behind: %w", reader, err)
	}
	return out, end, nil
}

// ThreadsSince returns the threads that any process has changed since a mark, and
// the mark for the next call. With mark 0 it returns those that were active since
// an instant and in which the reader is behind.
func (db *DB) ThreadsSince(ctx context.Context, reader string, mark int64, since time.Time) ([]chat.ThreadID, int64, error) {
	end, err := db.Count(ctx, db.says.journalEnd) // first, so that what is written meanwhile is checked again
	if err != nil {
		return nil, mark, fmt.Errorf("the end of the journal: %w", err)
	}
	query, args := `SELECT DISTINCT thread_id FROM (`+db.says.movedSince+`) AS moved`, []any{mark}
	if mark == 0 || mark > end {
		query = `SELECT t.id FROM threads t LEFT JOIN readers r ON r.thread_id = t.id AND r.reader = ?
			WHERE t.last_active >= ? AND t.next_seq - 1 > coalesce(r.seq, 0) ORDER BY t.last_active, t.id`
		args = []any{reader, database.Micros(since)}
	}
	out, err := database.List[chat.ThreadID](ctx, db.DB, query, args...)
	if err != nil {
		return nil, mark, fmt.Errorf("threads that changed: %w", err)
	}
	return out, end, nil
}

// RunStarted returns how a run of a thread began, or fails with ErrUnknown.
func (db *DB) RunStarted(ctx context.Context, thread chat.ThreadID, run string) (chat.RunStarted, error) {
	var out chat.RunStarted
	found := false
	err := db.Query(ctx, `SELECT body FROM events WHERE thread_id = ? AND kind = 'run_started' AND run_id = ? ORDER BY seq DESC LIMIT 1`, []any{string(thread), run}, func(rows *sql.Rows) error {
		var body string
		if err := rows.Scan(&body); err != nil {
			return err
		}
		decoded, err := chat.DecodeBody(chat.KindRunStarted, []byte(body))
		out, found = decoded.(chat.RunStarted)
		return err
	})
	if err == nil && !found {
		err = journal.ErrUnknown
	}
	if err != nil {
		return chat.RunStarted{}, fmt.Errorf("how run %s of thread %s began: %w", run, thread, err)
	}
	return out, nil
}
