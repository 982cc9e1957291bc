package database

import (
	"context"
	"fmt"
)

// DataVersion is a number that changes when another handle or process has
// written to the file, and stays when this handle has. PostgreSQL's changes with every
// write to its server.
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

// Writes are two numbers that stay while nobody writes to the file: one is moved by this
// handle, one by all others.
func (db *DB) Writes(ctx context.Context) (own, others int64, err error) {
	own = db.Made() // first: what is written meanwhile must show next time
	others, err = db.DataVersion(ctx)
	return own, others, err
}

// Made is how many transactions of this handle came true, or may have.
func (db *DB) Made() int64 {
	if db.pg != nil {
		return db.pg.made.Load()
	}
	return db.w.made.Load()
}

// BreakCommits lets tests break COMMIT: fault is called before it, where an error takes everything back, and after it, where an
// error means that it happened and nobody is told. nil: no more. Nobody may write meanwhile.
func (db *DB) BreakCommits(fault func(after bool) error) {
	if db.pg != nil {
		db.pg.fault = fault
		return
	}
	db.w.fault = fault
}

// Queued is how many callers wait for SQLite's writer.
func (db *DB) Queued() int { return len(db.w.queue) }
