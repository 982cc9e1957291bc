package store

import (
	"context"
	"database/sql"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// transaction is what the work of a commit writes through. Each dialect gives one; what is said through it is the
// same for all. It is good only while the function runs that it was given to.
type transaction struct {
	w  *writer // SQLite's: one for all, as long as the file is open
	pg *pgTx   // PostgreSQL's: one for each; nil with SQLite

	// What is remembered of earlier commits, and forgotten when one is taken back: see known and writeAudit.
	known map[chat.ThreadID]known
	ends  map[chat.ThreadID]auditRow // of chains of the audit log, as far as this writer was the last to add to them
}

// forget drops what was remembered: it may not have come true.
func (tx *transaction) forget() {
	clear(tx.known)
	clear(tx.ends)
}

// exec runs a statement. With PostgreSQL it goes to the server with the next one whose answer is needed, at the latest with
// COMMIT: its error may be that of a later call, and nothing of the transaction comes true.
func (tx *transaction) exec(query string, args ...any) error { return tx.insert(nil, query, args...) }

// insert is exec for a row that may be there already: then the error is taken.
func (tx *transaction) insert(taken error, query string, args ...any) error {
	if tx.pg != nil {
		return tx.pg.later(taken, query, args)
	}
	_, err := tx.w.result(query, args)
	if taken != nil && isTaken(err) {
		return taken
	}
	return err
}

// change is exec that counts the rows, and so waits for them.
func (tx *transaction) change(query string, args ...any) (int64, error) {
	if tx.pg != nil {
		return tx.pg.change(query, args)
	}
	res, err := tx.w.result(query, args)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row reads one row; sql.ErrNoRows if there is none.
func (tx *transaction) row(query string, args []any, into ...any) error {
	return tx.one(query, args...).Scan(into...)
}

// one asks for one row, which the caller scans.
func (tx *transaction) one(query string, args ...any) scanner {
	if tx.pg != nil {
		return pgRow{tx.pg, query, args}
	}
	st, err := tx.w.stmt(query)
	if err != nil {
		return noRow{err}
	}
	return st.QueryRowContext(context.Background(), args...)
}

// noRow is a row that could not be asked for.
type noRow struct{ err error }

func (r noRow) Scan(...any) error { return r.err }

// rows hands each row to scan.
func (tx *transaction) rows(query string, args []any, scan func(*sql.Rows) error) error {
	if tx.pg != nil {
		return tx.pg.rows(query, args, scan)
	}
	st, err := tx.w.stmt(query)
	if err != nil {
		return err
	}
	return scanAll(scan)(st.QueryContext(context.Background(), args...))
}

// lock holds the rows that a query names until the transaction is over. SQLite has one writer at a time, and needs none.
func (tx *transaction) lock(query string, args ...any) error {
	if tx.pg == nil {
		return nil
	}
	return tx.pg.later(nil, query, args)
}

// alone waits until nobody else, on whatever node, does what has this name, and keeps others from it until the transaction is over.
func (tx *transaction) alone(name string) error { return tx.lock(lockName, name) }

// says is how this transaction's database says what differs.
func (tx *transaction) says() *dialect {
	if tx.pg != nil {
		return &postgresSQL
	}
	return &sqliteSQL
}

// scanAll hands each row of an answer to scan, and closes it.
func scanAll(scan func(*sql.Rows) error) func(*sql.Rows, error) error {
	return func(rows *sql.Rows, err error) error {
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

// Tx is a transaction for packages that keep tables of their own in the same database. It is good only while the
// function runs that it was given to.
type Tx struct {
	in  *transaction
	now int64
}

// Write runs a function in a transaction. The function may run more than once, each time on a clean slate, so it must set its
// results and not add to them.
func (db *DB) Write(ctx context.Context, work func(Tx) error) error {
	return db.write(ctx, func(tx *transaction) error { return work(Tx{tx, micros(db.now())}) })
}

// WriteWithin is Write that waits for nobody else's, and ends with ctx, also in the middle: whether the transaction came true is then not
// known. It is for those who ask again soon, and for whom a late answer is worth less than none.
func (db *DB) WriteWithin(ctx context.Context, work func(Tx) error) error {
	return db.do(ctx, &job{hurried: true, work: func(tx *transaction) error { return work(Tx{tx, micros(db.now())}) }})
}

// Query runs a read and hands each row to scan.
func (db *DB) Query(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	return db.query(ctx, query, args, scan)
}

// QueryWithin is Query for the same: it does not wait for the reads of others.
func (db *DB) QueryWithin(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if db.pg != nil {
		return db.pg.readFrom(ctx, db.pg.hurry, query, args, scan)
	}
	return db.query(ctx, query, args, scan)
}

// Now is the store's time, which its rows have.
func (db *DB) Now() time.Time { return db.now() }

// Now is the time of the transaction.
func (tx Tx) Now() time.Time { return time.UnixMicro(tx.now) }

// Exec runs a statement.
func (tx Tx) Exec(query string, args ...any) error { return tx.in.exec(query, args...) }

// Change runs a statement and counts the rows that it changed.
func (tx Tx) Change(query string, args ...any) (int64, error) { return tx.in.change(query, args...) }

// Row reads one row; sql.ErrNoRows if there is none.
func (tx Tx) Row(query string, args []any, into ...any) error { return tx.in.row(query, args, into...) }

// Rows hands each row to scan.
func (tx Tx) Rows(query string, args []any, scan func(*sql.Rows) error) error {
	return tx.in.rows(query, args, scan)
}

// Alone waits until nobody else, on whatever node, is in a transaction that has asked for the same name, and keeps others from it
// until this one is over. What reads several rows to decide about one asks first.
func (tx Tx) Alone(name string) error { return tx.in.alone(name) }

// CreateThread makes a thread unless it is there.
func (tx Tx) CreateThread(id chat.ThreadID, t journal.Thread) error {
	return createThread(tx.in, id, t, tx.now)
}

// SetDir says in which folder a thread's next run works.
func (tx Tx) SetDir(id chat.ThreadID, dir string) error {
	return tx.in.exec(`UPDATE threads SET dir = ? WHERE id = ?`, dir, string(id))
}

// Follower is told of every event of a thread inside the transaction that writes it.
type Follower func(tx Tx, thread chat.ThreadID, e chat.Event) error
