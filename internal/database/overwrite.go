package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// checkpointTime is how long writers wait for readers to release what is about to be
// overwritten. If they do not, later writes overwrite the log.
const checkpointTime = 200 * time.Millisecond

// Overwriting makes SQLite overwrite pages with zeros when they become free during erase, and
// then moves its log into the file. Otherwise what was removed would stay readable there until
// its space is reused. PostgreSQL leaves this to its vacuum.
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
		// The log is not truncated, which other processes would take for a loss. Later
		// writes overwrite it, and the last one to close removes it.
		return Checkpoint(ctx, conn, "RESTART")
	}))
}

// Checkpoint moves everything from the log into the file, unless
// somebody reads from it for longer than a moment.
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

// pragma runs a pragma and returns the first number of its answer. It is not cached like other
// statements, because some pragmas take effect when they are prepared.
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
