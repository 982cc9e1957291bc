package store

import (
	"context"
	"encoding/json"
	"fmt"

	"chorus/internal/chat"
)

const (
	behindIn    = `SELECT t.id FROM threads t LEFT JOIN readers r ON r.thread_id = t.id AND r.reader = ? WHERE t.transport = ? AND t.parent = '' AND t.next_seq - 1 > coalesce(r.seq, 0)`
	oldestFirst = ` ORDER BY t.last_active, t.id`
)

// behindSince is behindIn among the threads that have moved since a mark, and some others.
func behindSince(says *dialect) string {
	return behindIn + ` AND t.id IN (` + says.movedSince + ` UNION ALL ` + says.listed + `)` + oldestFirst
}

// BehindSince lists the threads of a transport in which a reader is behind, among those that
// have changed since a mark, in whatever process, and some others; the longest untouched first. It
// gives the mark for the next look. It reads what has changed, however many threads there
// are; with mark 0 it reads all of them, and so does the first look at a journal that is not
// the one of the mark.
func (db *DB) BehindSince(ctx context.Context, reader, transport string, mark int64, others []chat.ThreadID) ([]chat.ThreadID, int64, error) {
	end, err := db.count(ctx, db.says.journalEnd) // first: what is written meanwhile is looked at again
	if err != nil {
		return nil, mark, fmt.Errorf("the end of the journal: %w", err)
	}
	query, args := behindIn+oldestFirst, []any{reader, transport}
	if mark > 0 && mark <= end {
		names, err := json.Marshal(append([]chat.ThreadID{}, others...))
		if err != nil {
			return nil, mark, fmt.Errorf("where reader %s is behind: %w", reader, err)
		}
		query, args = behindSince(db.says), append(args, mark, string(names))
	}
	out, err := listOf[chat.ThreadID](ctx, db, query, args...)
	if err != nil {
		return nil, mark, fmt.Errorf("where reader %s is behind: %w", reader, err)
	}
	return out, end, nil
}
