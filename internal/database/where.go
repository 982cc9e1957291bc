package database

import (
	"strings"
	"time"
)

// Where collects the conditions of a list. Those of zero values are left out.
type Where struct {
	terms []string
	args  []any
}

// Add adds a condition with its arguments.
func (w *Where) Add(term string, args ...any) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, args...)
}

// Equal keeps a column to a value.
func (w *Where) Equal(column, value string) {
	if value != "" {
		w.Add(column+" = ?", value)
	}
}

// From keeps a column to an instant and later.
func (w *Where) From(column string, t time.Time) {
	if !t.IsZero() {
		w.Add(column+" >= ?", Micros(t))
	}
}

// Until keeps a column to what is before an instant.
func (w *Where) Until(column string, t time.Time) {
	if !t.IsZero() {
		w.Add(column+" < ?", Micros(t))
	}
}

// Begins keeps a column to texts that begin with prefix.
func (w *Where) Begins(column, prefix string) {
	if prefix != "" {
		w.Add(column+" >= ? AND "+column+" < ?", prefix, prefix+"\U0010FFFF")
	}
}

// On is a query with the conditions, and their arguments.
func (w *Where) On(query string) (string, []any) {
	if len(w.terms) == 0 {
		return query, w.args
	}
	return query + " WHERE " + strings.Join(w.terms, " AND "), w.args
}

// Limit is how many rows are asked for: n, or otherwise where n is none.
func Limit(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}
