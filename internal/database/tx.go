package database

import (
	"context"
	"database/sql"
	"time"
)

// transaction is what the work of a commit writes through, the same for both
// dialects. It is valid only while the function runs that received it.
type transaction struct {
	w  *writer // SQLite's: one for all, as long as the file is open
	pg *pgTx   // PostgreSQL's: one for each; nil with SQLite

	memory Memory // SQLite's: of all transactions so far; PostgreSQL's: of this one
}

// Memory is what writers remember of transactions, so that it need not be
// read again. It is used only inside transactions.
type Memory interface {
	// Forget drops everything, because the transaction may not have been committed.
	Forget()
}

// noMemory is for a schema without Memory.
type noMemory struct{}

func (noMemory) Forget() {}

// forget drops what was remembered.
func (tx *transaction) forget() { tx.memory.Forget() }

// exec runs a statement. With PostgreSQL it is sent with the next statement whose
// answer is needed, at the latest with COMMIT. A later call may therefore return its
// error, and then nothing of the transaction is committed.
func (tx *transaction) exec(query string, args ...any) error { return tx.insert(nil, query, args...) }

// insert is exec for a row that may already exist: the error is then taken.
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

// change is exec that returns the number of rows, and therefore waits for the answer.
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

// row reads one row, or fails with sql.ErrNoRows.
func (tx *transaction) row(query string, args []any, into ...any) error {
	return tx.one(query, args...).Scan(into...)
}

// one requests one row, which the caller scans.
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

// Scanner is a row to scan.
type Scanner interface{ Scan(...any) error }

// noRow is a row that could not be requested.
type noRow struct{ err error }

func (r noRow) Scan(...any) error { return r.err }

// rows passes each row to scan.
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

// lock locks the rows that a query selects until the transaction ends.
// SQLite has one writer at a time and needs no locks.
func (tx *transaction) lock(query string, args ...any) error {
	if tx.pg == nil {
		return nil
	}
	return tx.pg.later(nil, query, args)
}

// alone waits until nobody else, on any node, holds this name, and holds it until the transaction ends.
func (tx *transaction) alone(name string) error { return tx.lock(lockName, name) }

// ScanAll passes each row of an answer to scan, and closes it.
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

// Tx is a transaction. It is valid only while the function runs that received it.
type Tx struct {
	in    *transaction
	now   int64
	wrote *written
}

// job returns a job with the work of a caller, and what it has written to, which is complete when the job is over.
func (db *DB) job(work func(Tx) error) (*job, *written) {
	wrote := &written{answers: db.answers}
	return &job{work: func(tx *transaction) error { return work(db.tx(tx, wrote)) }}, wrote
}

// tx returns a transaction for callers.
func (db *DB) tx(in *transaction, wrote *written) Tx { return Tx{in, Micros(db.now()), wrote} }

// Write runs a function in a transaction. The function may run more than once, each time from
// the same starting state, so it must set its results and not add to them.
func (db *DB) Write(ctx context.Context, work func(Tx) error) error {
	_, err := db.TryWrite(ctx, work)
	return err
}

// TryWrite is Write that distinguishes a transaction that was not committed from one that may have
// been. lost means that COMMIT itself failed; then only reading tells what happened.
func (db *DB) TryWrite(ctx context.Context, work func(Tx) error) (lost bool, err error) {
	j, wrote := db.job(work)
	defer wrote.over()
	err = db.do(ctx, j)
	return j.lost, err
}

// WriteWithin is Write that waits for nobody else and ends with ctx, even in the middle;
// then it is not known whether the transaction was committed. It is for callers that try
// again soon, and for whom a late answer is useless.
func (db *DB) WriteWithin(ctx context.Context, work func(Tx) error) error {
	j, wrote := db.job(work)
	defer wrote.over()
	j.hurried = true
	return db.do(ctx, j)
}

// QueryWithin is Query for the same callers: it does not wait for the reads of others.
func (db *DB) QueryWithin(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if db.pg != nil {
		return db.pg.readFrom(ctx, db.pg.hurry, query, args, scan)
	}
	return db.Query(ctx, query, args, scan)
}

// WithoutTx lets work use SQLite's writing connection outside of any transaction.
func (db *DB) WithoutTx(ctx context.Context, work func(Tx) error) error {
	j, wrote := db.job(work)
	defer wrote.over()
	j.plain = true
	return db.do(ctx, j)
}

// Now returns the database's time, which its rows use.
func (db *DB) Now() time.Time { return db.now() }

// Now returns the time of the transaction.
func (tx Tx) Now() time.Time { return time.UnixMicro(tx.now) }

// OnServer reports whether this is a PostgreSQL transaction.
func (tx Tx) OnServer() bool { return tx.in.pg != nil }

// Memory returns what is remembered from earlier transactions of this
// connection. With PostgreSQL it covers only this transaction.
func (tx Tx) Memory() Memory { return tx.in.memory }

// Exec runs a statement. With PostgreSQL a later call may return its error,
// and then nothing of the transaction is committed.
func (tx Tx) Exec(query string, args ...any) error {
	tx.wrote.note(query)
	return tx.in.exec(query, args...)
}

// Insert is Exec for a row that may already exist: the error is then taken.
func (tx Tx) Insert(taken error, query string, args ...any) error {
	tx.wrote.note(query)
	return tx.in.insert(taken, query, args...)
}

// Change runs a statement and returns the number of rows that it changed.
func (tx Tx) Change(query string, args ...any) (int64, error) {
	tx.wrote.note(query)
	return tx.in.change(query, args...)
}

// Row reads one row, or fails with sql.ErrNoRows.
func (tx Tx) Row(query string, args []any, into ...any) error {
	tx.wrote.note(query)
	return tx.in.row(query, args, into...)
}

// One requests one row, which the caller scans.
func (tx Tx) One(query string, args ...any) Scanner {
	tx.wrote.note(query)
	return tx.in.one(query, args...)
}

// Rows passes each row to scan.
func (tx Tx) Rows(query string, args []any, scan func(*sql.Rows) error) error {
	tx.wrote.note(query)
	return tx.in.rows(query, args, scan)
}

// Ask is Row whose answer may arrive later, with that of the next
// statement whose answer is needed. read receives it then.
func (tx Tx) Ask(query string, args []any, read func(Scanner) error) error {
	tx.wrote.note(query)
	if tx.in.pg != nil {
		return tx.in.pg.ask(query, args, read)
	}
	return read(tx.in.one(query, args...))
}

// Lock locks the rows that a query selects until the transaction ends.
// SQLite has one writer at a time and needs no locks.
func (tx Tx) Lock(query string, args ...any) error { return tx.in.lock(query, args...) }

// Alone waits until no other transaction, on any node, holds the same name, and holds it until this
// one ends. Transactions that read several rows to decide about one call it first.
func (tx Tx) Alone(name string) error { return tx.in.alone(name) }

// Listed returns a query that turns its argument, a JSON list of texts, into rows.
func (db *DB) Listed() string {
	if db.pg != nil {
		return `SELECT value FROM jsonb_array_elements_text(CAST(? AS jsonb)) AS listed (value)`
	}
	return `SELECT value FROM json_each(?)`
}
