package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// pgTx is a transaction on a connection of its own. Statements that need no answer are
// queued until one is needed, or until COMMIT, and are sent together: a commit is two
// round trips, however many statements it has. A pgTx without a connection only finds out
// which statements would be sent: see TryTogether.
type pgTx struct {
	ctx    context.Context
	p      *postgres
	pooled *sql.Conn
	conn   *pgx.Conn // the same connection, without the overhead of database/sql around each statement
	empty  int       // how many statements are queued at the beginning
	begun  bool      // the server may have received BEGIN
	number xact      // to find out later whether it happened
	queue  []queued
}

// queued is a statement waiting to be sent.
type queued struct {
	kind  int // its index in the schema's Gathered; meaningless if it is not gathered
	query string
	args  []any
	of    *member             // the member it belongs to; nil outside of groups
	taken error               // the error to return if its row exists; nil if there is no special one
	read  func(Scanner) error // receives its row; nil if it has none
}

// means translates a statement's error into the one its caller knows.
func (q queued) means(err error) error {
	if q.taken != nil && IsTaken(err) {
		err = &taken{q.taken, err}
	}
	if code := pgCode(err); q.of != nil && code != "" && code != pgLockTimeout && !unreachable(err) {
		return &memberError{q.of, err}
	}
	return err
}

// taken is the error for an existing row, together with the server's error.
type taken struct{ means, cause error }

func (t *taken) Error() string   { return t.means.Error() }
func (t *taken) Unwrap() []error { return []error{t.means, t.cause} }

// open takes a connection. BEGIN is sent with the first statement.
func (p *postgres) open(ctx context.Context, from *sql.DB) (*pgTx, error) {
	pooled, err := from.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &pgTx{ctx: ctx, p: p, pooled: pooled, empty: 1, queue: make([]queued, 1, 8)}
	t.queue[0].query = "BEGIN"
	// Nobody else has the connection until it is returned, so it may be used outside of Raw.
	err = pooled.Raw(func(conn any) error {
		t.conn = conn.(*stdlib.Conn).Conn()
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, pooled.Close())
	}
	return t, nil
}

// askNumber requests the transaction's number with the first statement.
func (t *pgTx) askNumber() {
	t.queue = append(t.queue, queued{query: "SELECT pg_current_xact_id()::text, " + serverLife, read: func(row Scanner) error { return row.Scan(&t.number.id, &t.number.life) }})
	t.empty++
}

// close returns the connection. A broken one, or one still in a transaction, is not used again.
func (t *pgTx) close() { _ = t.pooled.Close() }

// rollback rolls back. If the connection cannot, it is closed, and the server does it.
func (t *pgTx) rollback() {
	t.queue = nil
	if t.begun && !t.conn.IsClosed() {
		_, _ = t.conn.Exec(t.ctx, "ROLLBACK", pgx.QueryExecModeSimpleProtocol)
	}
}

// commit sends what is queued together with COMMIT. lost means that it may have happened in spite of the error.
func (t *pgTx) commit() (lost bool, err error) {
	if !t.begun && len(t.queue) == t.empty {
		return false, nil // there is nothing to do
	}
	var tag pgconn.CommandTag
	before := true // the error is from a statement before COMMIT
	err = t.send(queued{query: "COMMIT"}, func(answer pgx.BatchResults) (err error) {
		before = false
		tag, err = answer.Exec()
		return err
	})
	switch {
	case err == nil && tag.String() == "ROLLBACK":
		return false, errors.New("the server took it back")
	case err == nil:
		return false, nil
	}
	// An answer from the server means that it was rolled back; without one it may have happened.
	// After an error the server skips everything that was sent with it.
	if lost = pgCode(err) == "" || !before && !collided(err); !lost {
		t.rollback()
	}
	return lost, err
}

// later queues a statement.
func (t *pgTx) later(taken error, query string, args []any) error {
	kind := 0
	if t.conn == nil {
		var ok bool
		if kind, ok = t.p.schema.gathered(query); !ok {
			return errAlone
		}
	}
	values, err := postgresArgs(args)
	if err == nil {
		t.queue = append(t.queue, queued{kind: kind, query: t.p.texts.of(query), args: values, taken: taken})
	}
	return err
}

// ask queues a statement. read receives its row when it arrives.
func (t *pgTx) ask(query string, args []any, read func(Scanner) error) error {
	if t.conn == nil {
		return errAlone
	}
	values, err := postgresArgs(args)
	if err == nil {
		t.queue = append(t.queue, queued{query: t.p.texts.of(query), args: values, read: read})
	}
	return err
}

// now sends what is queued and then a statement. read receives the statement's answer.
func (t *pgTx) now(query string, args []any, read func(pgx.BatchResults) error) error {
	values, err := postgresArgs(args)
	if err != nil {
		return err
	}
	return t.send(queued{query: t.p.texts.of(query), args: values}, read)
}

// send sends what is queued and a last statement. read receives its answer. The error may be from any of them.
func (t *pgTx) send(last queued, read func(pgx.BatchResults) error) error {
	if t.conn == nil {
		return errAlone
	}
	batch := &pgx.Batch{}
	for _, q := range t.queue {
		batch.Queue(q.query, q.args...)
	}
	batch.Queue(last.query, last.args...)
	t.begun = true
	answers := t.conn.SendBatch(t.ctx, batch)
	var err error
	for _, q := range t.queue {
		if q.read != nil {
			err = q.read(plainRow{answers.QueryRow()})
		} else {
			_, err = answers.Exec()
		}
		if err != nil {
			err = q.means(err)
			break
		}
	}
	t.queue = t.queue[:0]
	if err == nil {
		err = read(answers)
	}
	end := answers.Close()
	if err == nil {
		err = end
	}
	return err
}

// flush sends what is queued, so that its errors are known.
func (t *pgTx) flush() error {
	n := len(t.queue)
	if n == 0 {
		return nil
	}
	last := t.queue[n-1]
	t.queue = t.queue[:n-1]
	return t.send(last, func(answer pgx.BatchResults) error {
		if last.read != nil {
			return last.read(plainRow{answer.QueryRow()})
		}
		_, err := answer.Exec()
		return last.means(err)
	})
}

// change runs a statement and counts the rows.
func (t *pgTx) change(query string, args []any) (n int64, err error) {
	err = t.now(query, args, func(answer pgx.BatchResults) error {
		tag, err := answer.Exec()
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

// pgRow is a row that is requested when it is scanned.
type pgRow struct {
	tx    *pgTx
	query string
	args  []any
}

func (r pgRow) Scan(into ...any) error {
	return r.tx.now(r.query, r.args, func(answer pgx.BatchResults) error { return plainRow{answer.QueryRow()}.Scan(into...) })
}

// plainRow is scanned like a row of database/sql.
type plainRow struct{ row pgx.Row }

func (r plainRow) Scan(into ...any) error {
	for i := range into {
		if b, ok := into[i].(*bool); ok {
			into[i] = yesNo{b}
		}
	}
	return r.row.Scan(into...)
}

// yesNo reads a boolean, which columns store as a number and comparisons return as a boolean.
type yesNo struct{ into *bool }

func (y yesNo) Scan(value any) error {
	switch v := value.(type) {
	case bool:
		*y.into = v
	case int64:
		*y.into = v != 0
	default:
		return fmt.Errorf("a %T is neither yes nor no", value)
	}
	return nil
}

// rows passes each row to scan.
func (t *pgTx) rows(query string, args []any, scan func(*sql.Rows) error) error {
	if t.conn == nil {
		return errAlone
	}
	values, err := postgresArgs(args)
	if err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	return ScanAll(scan)(t.pooled.QueryContext(t.ctx, t.p.texts.of(query), values...))
}
