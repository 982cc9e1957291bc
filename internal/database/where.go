package database

import (
	"strings"
	"time"
)

// Where collects the conditions of a list. Conditions with zero values are left out.
type Where struct {
	terms []string
	args  []any
}

// Add adds a condition with its arguments.
func (w *Where) Add(term string, args ...any) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, args...)
}

// Equal restricts a column to a value.
func (w *Where) Equal(column, value string) {
	if value != "" {
		w.Add(column+" = ?", value)
	}
}

// From restricts a column to an instant and later.
func (w *Where) From(column string, t time.Time) {
	if !t.IsZero() {
		w.Add(column+" >= ?", Micros(t))
	}
}

// Until restricts a column to before an instant.
func (w *Where) Until(column string, t time.Time) {
	if !t.IsZero() {
		w.Add(column+" < ?", Micros(t))
	}
}

// Begins restricts a column to texts that begin with prefix.
func (w *Where) Begins(column, prefix string) {
	if prefix != "" {
		w.Add(column+" >= ? AND "+column+" < ?", prefix, prefix+"\U0010FFFF")
	}
}

// On returns a query with the conditions, and their arguments.
func (w *Where) On(query string) (string, []any) {
	if len(w.terms) == 0 {
		return query, w.args
	}
	return query + " WHERE " + strings.Join(w.terms, " AND "), w.args
}

// Limit returns n, or otherwise if n is not positive.
func Limit(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}
