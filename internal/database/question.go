package database

import (
	"context"
	"database/sql"
	"strings"
)

// Question asks whether there are rows: SELECT 1 FROM …, by an index, so that it is answered in no time.
type Question struct {
	Query string
	Args  []any
}

// Any answers questions, all with one look. SQLite's writing connection is asked where nobody uses it: it still has the pages that were
// written last, which a reader would have to read again after each commit.
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

// rowIfFree reads one row on the writing connection, outside of any transaction. It reports false, and has read nothing, if somebody has
// the turn or the files are not those that were opened.
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
