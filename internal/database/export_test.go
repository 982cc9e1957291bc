package database

import (
	"context"
	"time"
)

// Mark is how far a database has come.
type Mark = mark

// ReadGuard reads the guard of a database.
func ReadGuard(path string) (*guardState, error) { return readGuard(path) }

// WriteGuard writes it.
func WriteGuard(path string, g *guardState) error { return g.write(path) }

// MarkOf is how far a database has come.
func MarkOf(ctx context.Context, db *DB) (Mark, string, error) {
	return markOf(ctx, db.readers.first.pool)
}

// Before reports whether one of two marks is the older one.
func Before(m, other Mark) bool { return m.before(other) }

// ForgetProbe lets the next Ready try a write.
func ForgetProbe(db *DB) { db.health.probed = time.Time{} }

// Saw lets a database know of an error.
func Saw(db *DB, err error) { db.health.saw(err) }

// Readers is how many reading connections are open.
func Readers(db *DB) int {
	return db.readers.first.pool.Stats().OpenConnections + db.readers.second.pool.Stats().OpenConnections
}

// AnswersAt sets the clock by which answers to questions age.
func AnswersAt(db *DB, now func() time.Time) { db.answers.now = now }

// TableWritten returns the table that a statement writes to.
func TableWritten(query string) string { return tableWritten(query) }
