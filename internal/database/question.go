package database

import (
	"context"
	"database/sql"
	"strings"
)

// Question asks whether there are rows: SELECT 1 FROM …, using an index, so that it is fast.
type Question struct {
	Query string
	Args  []any
}

// Any answers several questions in one query. If SQLite's writing connection is free, it is used:
// it still has the last written pages, which a reader would have to read again after each commit.
func (db *DB) Any(ctx context.Context, questions ...Question) ([]bool, error) {
	if len(questions) == 0 {
		return nil, nil
	}
	texts, args := make([]string, len(questions)), []any(nil)
	answers, into := make([]bool, len(questions)), make([]any, len(questions))
	for i, q := range questions {
		texts[i], args, into[i] = "EXISTS ("+q.Query+")", append(args, q.Args...), &answers[i]
	}
	query := "SELECT " + strings.Join(texts, ", ")
	if db.pg == nil {
		if done, err := db.w.rowIfFree(query, args, into...); done {
			err = Explain(db.path, err)
			db.health.saw(err)
			return answers, err
		}
	}
	return answers, db.Query(ctx, query, args, func(rows *sql.Rows) error { return rows.Scan(into...) })
}

// rowIfFree reads one row on the writing connection, outside of any transaction. It reads nothing
// and returns false if somebody has the turn or the open files were replaced.
func (w *writer) rowIfFree(query string, args []any, into ...any) (done bool, err error) {
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	default:
		return false, nil
	}
	if w.isClosed() || w.files.check() != nil {
		return false, nil
	}
	return true, w.row(query, args, into...)
}
