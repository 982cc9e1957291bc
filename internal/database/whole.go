package database

import (
	"context"
	"database/sql"
	"errors"
)

// Reader reads one state of a database, whatever is written meanwhile.
type Reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Writer writes in one long transaction.
type Writer interface {
	Reader
	Exec(query string, args ...any) error
}

// ReadAsOfNow lets read see the database as it is at one moment.
func (db *DB) ReadAsOfNow(ctx context.Context, read func(Reader) error) error {
	if db.pg != nil {
		tx, err := db.pg.pool.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
		if err != nil {
			return db.pg.explain(err)
		}
		defer func() { _ = tx.Rollback() }() // it wrote nothing
		if err := unhurried(ctx, tx); err != nil {
			return err
		}
		return db.pg.explain(read(tx))
	}
	r, err := db.readers.take(ctx)
	if err != nil {
		return Explain(db.path, err)
	}
	defer r.giveBack()
	conn, err := r.pool.Conn(ctx)
	if err != nil {
		return Explain(db.path, err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return Explain(db.path, err)
	}
	err = read(conn)
	_, end := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	return Explain(db.path, errors.Join(err, end))
}

// WriteAll lets write fill the database in one transaction, however long that takes.
func (db *DB) WriteAll(ctx context.Context, write func(Writer) error) error {
	if db.pg == nil {
		return db.Write(ctx, func(tx Tx) error { return write(fileWriter{tx}) })
	}
	return db.pg.explain(db.pg.writeAll(ctx, write))
}

func (p *postgres) writeAll(ctx context.Context, write func(Writer) error) error {
	tx, err := p.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, once it is committed
	if err := unhurried(ctx, tx); err != nil {
		return err
	}
	if err := write(serverWriter{ctx, tx}); err != nil {
		return err
	}
	return tx.Commit()
}

// unhurried lifts the limits that keep a node's transactions short.
func unhurried(ctx context.Context, tx *sql.Tx) error {
	for _, limit := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		if _, err := tx.ExecContext(ctx, "SET LOCAL "+limit+" = 0"); err != nil {
			return err
		}
	}
	return nil
}

// fileWriter writes through the file's only writer.
type fileWriter struct{ Tx }

func (w fileWriter) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := w.in.w.stmt(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// serverWriter writes on a connection of its own.
type serverWriter struct {
	ctx context.Context
	tx  *sql.Tx
}

func (w serverWriter) Exec(query string, args ...any) error {
	_, err := w.tx.ExecContext(w.ctx, numberArguments(query), args...)
	return err
}

func (w serverWriter) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return w.tx.QueryContext(ctx, query, args...)
}
