package store

import (
	"context"
	"database/sql"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// Tx is a transaction of the one writer, for packages that keep tables of their own in the same file. It is good only while
// the function runs that it was given to.
type Tx struct {
	w   *writer
	now int64
}

// Write runs a function in a transaction. The function may run more than once, each time on a clean slate, so it must set its
// results and not add to them.
func (db *DB) Write(ctx context.Context, work func(Tx) error) error {
	return db.w.write(ctx, func(w *writer) error { return work(Tx{w, micros(db.now())}) })
}

// Query runs a read and hands each row to scan.
func (db *DB) Query(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	return db.query(ctx, query, args, scan)
}

// Now is the store's time, which its rows have.
func (db *DB) Now() time.Time { return db.now() }

// Now is the time of the transaction.
func (tx Tx) Now() time.Time { return time.UnixMicro(tx.now) }

// Exec runs a statement.
func (tx Tx) Exec(query string, args ...any) error { return tx.w.exec(query, args...) }

// Change runs a statement and counts the rows that it changed.
func (tx Tx) Change(query string, args ...any) (int64, error) { return tx.w.change(query, args...) }

// Row reads one row; sql.ErrNoRows if there is none.
func (tx Tx) Row(query string, args []any, into ...any) error { return tx.w.row(query, args, into...) }

// Rows hands each row to scan.
func (tx Tx) Rows(query string, args []any, scan func(*sql.Rows) error) (err error) {
	st, err := tx.w.stmt(query)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer func() {
		if closing := rows.Close(); err == nil {
			err = closing
		}
	}()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// CreateThread makes a thread unless it is there.
func (tx Tx) CreateThread(id chat.ThreadID, t journal.Thread) error {
	return createThread(tx.w, id, t, tx.now)
}

// SetDir says in which folder a thread's next run works.
func (tx Tx) SetDir(id chat.ThreadID, dir string) error {
	return tx.w.exec(`UPDATE threads SET dir = ? WHERE id = ?`, dir, string(id))
}

// Follower is told of every event of a thread inside the transaction that writes it.
type Follower func(tx Tx, thread chat.ThreadID, e chat.Event) error
