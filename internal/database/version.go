package database

import (
	"context"
	"fmt"
)

// DataVersion returns a number that changes when another handle or process has written to the file,
// but not when this handle has. PostgreSQL's changes with every write to its server.
func (db *DB) DataVersion(ctx context.Context) (int64, error) {
	if db.pg != nil {
		return db.pg.version(ctx)
	}
	var v int64
	err := db.WithoutTx(ctx, func(tx Tx) error { return tx.Row(queryVersionTag, nil, &v) })
	if err != nil {
		return 0, fmt.Errorf("data version: %w", err)
	}
	return v, nil
}

// Writes returns two numbers that stay the same while nobody writes to the file: own changes
// with this handle's writes, others with those of all other handles.
func (db *DB) Writes(ctx context.Context) (own, others int64, err error) {
	own = db.Made() // first, so that what is written meanwhile shows next time
	others, err = db.DataVersion(ctx)
	return own, others, err
}

// Made returns how many transactions of this handle were committed, or may have been.
func (db *DB) Made() int64 {
	if db.pg != nil {
		return db.pg.made.Load()
	}
	return db.w.made.Load()
}

// BreakCommits lets tests break COMMIT. fault is called before it, where an error
// rolls everything back, and after it, where an error means that it happened but
// nobody is told. nil ends this. Nobody may write meanwhile.
func (db *DB) BreakCommits(fault func(after bool) error) {
	if db.pg != nil {
		db.pg.fault = fault
		return
	}
	db.w.fault = fault
}

// Queued returns how many callers wait for SQLite's writer.
func (db *DB) Queued() int { return len(db.w.queue) }
