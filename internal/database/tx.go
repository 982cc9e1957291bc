package database

import (
	"context"
	"database/sql"
	"time"
)

// transaction is what the work of a commit writes through. Each dialect gives one; what is said through it is the
// same for all. It is good only while the function runs that it was given to.
type transaction struct {
	w  *writer // SQLite's: one for all, as long as the file is open
	pg *pgTx   // PostgreSQL's: one for each; nil with SQLite

	memory Memory // SQLite's: of all transactions so far; PostgreSQL's: of this one
}

// Memory is what whoever writes remembers of transactions, so that it need not be read again. It is used inside of transactions only.
type Memory interface {
	// Forget drops everything: it may not have come true.
	Forget()
}

// noMemory is for a schema without one.
type noMemory struct{}

func (noMemory) Forget() {}

// forget drops what was remembered.
func (tx *transaction) forget() { tx.memory.Forget() }

// exec runs a statement. With PostgreSQL it goes to the server with the next one whose answer is needed, at the latest with
// COMMIT: its error may be that of a later call, and nothing of the transaction comes true.
func (tx *transaction) exec(query string, args ...any) error { return tx.insert(nil, query, args...) }

// insert is exec for a row that may be there already: then the error is taken.
func (tx *transaction) insert(taken error, query string, args ...any) error {
	if tx.pg != nil {
		return tx.pg.later(taken, query, args)
	}
	_, err := tx.w.result(query, args)
	if taken != nil && IsTaken(err) {
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
func (tx *transaction) one(query string, args ...any) Scanner {
	if tx.pg != nil {
		return pgRow{tx.pg, query, args}
	}
	st, err := tx.w.stmt(query)
	if err != nil {
		return noRow{err}
	}
	return st.QueryRowContext(context.Background(), args...)
}

// Scanner is a row.
type Scanner interface{ Scan(...any) error }

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
	return ScanAll(scan)(st.QueryContext(context.Background(), args...))
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

// ScanAll hands each row of an answer to scan, and closes it.
func ScanAll(scan func(*sql.Rows) error) func(*sql.Rows, error) error {
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

// Tx is a transaction. It is good only while the function runs that it was given to.
type Tx struct {
	in  *transaction
	now int64
}

// tx is a transaction as callers have it.
func (db *DB) tx(in *transaction) Tx { return Tx{in, Micros(db.now())} }

// Write runs a function in a transaction. The function may run more than once, each time on a clean slate, so it must set its
// results and not add to them.
func (db *DB) Write(ctx context.Context, work func(Tx) error) error {
	_, err := db.TryWrite(ctx, work)
	return err
}

// TryWrite is Write that tells a transaction that did not come true from one that may have: lost means that COMMIT itself failed, and
// then only reading tells what is true.
func (db *DB) TryWrite(ctx context.Context, work func(Tx) error) (lost bool, err error) {
	j := &job{work: func(tx *transaction) error { return work(db.tx(tx)) }}
	err = db.do(ctx, j)
	return j.lost, err
}

// WriteWithin is Write that waits for nobody else's, and ends with ctx, also in the middle: whether the transaction came true is then not
// known. It is for those who ask again soon, and for whom a late answer is worth less than none.
func (db *DB) WriteWithin(ctx context.Context, work func(Tx) error) error {
	return db.do(ctx, &job{hurried: true, work: func(tx *transaction) error { return work(db.tx(tx)) }})
}

// QueryWithin is Query for the same: it does not wait for the reads of others.
func (db *DB) QueryWithin(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if db.pg != nil {
		return db.pg.readFrom(ctx, db.pg.hurry, query, args, scan)
	}
	return db.Query(ctx, query, args, scan)
}

// WithoutTx lets work use SQLite's writing connection outside of any transaction.
func (db *DB) WithoutTx(ctx context.Context, work func(Tx) error) error {
	return db.do(ctx, &job{plain: true, work: func(tx *transaction) error { return work(db.tx(tx)) }})
}

// Now is the database's time, which its rows have.
func (db *DB) Now() time.Time { return db.now() }

// Now is the time of the transaction.
func (tx Tx) Now() time.Time { return time.UnixMicro(tx.now) }

// OnServer reports whether it is PostgreSQL's.
func (tx Tx) OnServer() bool { return tx.in.pg != nil }

// Memory is what is remembered of earlier transactions of this connection. PostgreSQL's is of this transaction alone.
func (tx Tx) Memory() Memory { return tx.in.memory }

// Exec runs a statement. With PostgreSQL its error may be that of a later call, and then nothing of the transaction comes true.
func (tx Tx) Exec(query string, args ...any) error { return tx.in.exec(query, args...) }

// Insert is Exec for a row that may be there already: then the error is taken.
func (tx Tx) Insert(taken error, query string, args ...any) error {
	return tx.in.insert(taken, query, args...)
}

// Change runs a statement and counts the rows that it changed.
func (tx Tx) Change(query string, args ...any) (int64, error) { return tx.in.change(query, args...) }

// Row reads one row; sql.ErrNoRows if there is none.
func (tx Tx) Row(query string, args []any, into ...any) error { return tx.in.row(query, args, into...) }

// One asks for one row, which the caller scans.
func (tx Tx) One(query string, args ...any) Scanner { return tx.in.one(query, args...) }

// Rows hands each row to scan.
func (tx Tx) Rows(query string, args []any, scan func(*sql.Rows) error) error {
	return tx.in.rows(query, args, scan)
}

// Ask is Row whose answer may come later, with that of the next statement whose answer is needed: read is given it then.
func (tx Tx) Ask(query string, args []any, read func(Scanner) error) error {
	if tx.in.pg != nil {
		return tx.in.pg.ask(query, args, read)
	}
	return read(tx.in.one(query, args...))
}

// Lock holds the rows that a query names until the transaction is over. SQLite has one writer at a time, and needs none.
func (tx Tx) Lock(query string, args ...any) error { return tx.in.lock(query, args...) }

// Alone waits until nobody else, on whatever node, is in a transaction that has asked for the same name, and keeps others from it
// until this one is over. What reads several rows to decide about one asks first.
func (tx Tx) Alone(name string) error { return tx.in.alone(name) }

// Listed is a query for the texts of a JSON list, which is its argument, as rows.
func (db *DB) Listed() string {
	if db.pg != nil {
		return `SELECT value FROM jsonb_array_elements_text(CAST(? AS jsonb)) AS listed (value)`
	}
	return `SELECT value FROM json_each(?)`
}
