package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// checkpointTime is how long writers wait until readers let go of what is about to be overwritten. If they do not, the log is written over
// by what comes later.
const checkpointTime = 200 * time.Millisecond

// Overwriting has SQLite write zeros also over pages that become free, while erase runs, and brings its log into the file afterwards. Otherwise what was removed
// would stay readable there until its place is needed. PostgreSQL does that by its own vacuum.
func (db *DB) Overwriting(ctx context.Context, erase func() error) error {
	if db.pg != nil {
		return erase()
	}
	outside := func(ctx context.Context, work func(*sql.Conn) error) error {
		return db.do(ctx, &job{plain: true, work: func(tx *transaction) error { return work(tx.w.conn) }})
	}
	err := outside(ctx, func(conn *sql.Conn) error { _, err := pragma(ctx, conn, "secure_delete = 1"); return err })
	if err != nil {
		return err
	}
	err = erase()
	ctx = context.WithoutCancel(ctx)
	return errors.Join(err, outside(ctx, func(conn *sql.Conn) error {
		if _, err := pragma(ctx, conn, "secure_delete = fast"); err != nil {
			return err
		}
		// Not cut off, which other processes would take for a loss: what comes next is written over it, and who closes last removes it.
		return Checkpoint(ctx, conn, "RESTART")
	}))
}

// Checkpoint brings everything from the log into the file, unless somebody reads from it for longer than a moment.
func Checkpoint(ctx context.Context, conn *sql.Conn, how string) error {
	timeout, err := pragma(ctx, conn, "busy_timeout")
	if err != nil {
		return err
	}
	_, err = pragma(ctx, conn, fmt.Sprintf("busy_timeout = %d", checkpointTime.Milliseconds()))
	if err == nil {
		_, err = pragma(ctx, conn, "wal_checkpoint("+how+")")
	}
	_, last := pragma(ctx, conn, fmt.Sprintf("busy_timeout = %d", timeout))
	return errors.Join(err, last)
}

// pragma runs one and gives the first number of its answer. It is not kept as others are: some do their work when they are prepared.
func pragma(ctx context.Context, conn *sql.Conn, what string) (first int64, err error) {
	rows, err := conn.QueryContext(ctx, "PRAGMA "+what)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	into := make([]any, len(columns))
	for i := range into {
		into[i] = new(int64)
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return 0, err
		}
		first = *into[0].(*int64)
	}
	return first, rows.Err()
}
