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

// pgTx is a transaction on a connection of its own. Statements without an answer wait until one is needed, or until COMMIT, and
// all go to the server together: a commit is two round trips, however many statements it has. One without a connection only finds out what
// would be said: see TryTogether.
type pgTx struct {
	ctx    context.Context
	p      *postgres
	pooled *sql.Conn
	conn   *pgx.Conn // the same one, without what database/sql does around each statement
	empty  int       // how many statements wait at the beginning
	begun  bool      // the server may have heard BEGIN
	number xact      // for whoever asks later whether it happened
	queue  []queued
}

// queued is a statement that waits to be sent.
type queued struct {
	kind  int // which one of the schema's Gathered it is; of no meaning where it is not gathered
	query string
	args  []any
	of    *member             // whose it is; nil: nobody's of a group
	taken error               // what it means that its row is there already; nil: nothing of its own
	read  func(Scanner) error // is given its row; nil: it has none
}

// means is an error of the statement as its caller knows it.
func (q queued) means(err error) error {
	if q.taken != nil && IsTaken(err) {
		err = &taken{q.taken, err}
	}
	if code := pgCode(err); q.of != nil && code != "" && code != pgLockTimeout && !unreachable(err) {
		return &memberError{q.of, err}
	}
	return err
}

// taken is what a row that is there already means, and what the server said of it.
type taken struct{ means, cause error }

func (t *taken) Error() string   { return t.means.Error() }
func (t *taken) Unwrap() []error { return []error{t.means, t.cause} }

// open takes a connection. BEGIN goes with the first statement.
func (p *postgres) open(ctx context.Context, from *sql.DB) (*pgTx, error) {
	pooled, err := from.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &pgTx{ctx: ctx, p: p, pooled: pooled, empty: 1, queue: make([]queued, 1, 8)}
	t.queue[0].query = "BEGIN"
	// Nobody else has the connection until it is given back, so it may be used outside of Raw.
	err = pooled.Raw(func(conn any) error {
		t.conn = conn.(*stdlib.Conn).Conn()
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, pooled.Close())
	}
	return t, nil
}

// askNumber asks for the transaction's number with the first statement.
func (t *pgTx) askNumber() {
	t.queue = append(t.queue, queued{query: "SELECT pg_current_xact_id()::text, " + serverLife, read: func(row Scanner) error { return row.Scan(&t.number.id, &t.number.life) }})
	t.empty++
}

// close gives the connection back. One that is broken, or still in a transaction, is not used again.
func (t *pgTx) close() { _ = t.pooled.Close() }

// rollback takes everything back. A connection that cannot is closed, and the server does it.
func (t *pgTx) rollback() {
	t.queue = nil
	if t.begun && !t.conn.IsClosed() {
		_, _ = t.conn.Exec(t.ctx, "ROLLBACK", pgx.QueryExecModeSimpleProtocol)
	}
}

// commit sends what waits, and COMMIT with it. lost: it may have happened all the same.
func (t *pgTx) commit() (lost bool, err error) {
	if !t.begun && len(t.queue) == t.empty {
		return false, nil // there is nothing to do
	}
	var tag pgconn.CommandTag
	before := true // the error is one of the statements before
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
	// An answer of the server says that it was taken back; without one it may have happened. After an error it passes over
	// whatever was sent with it.
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

// ask queues a statement whose row read is given when it is there.
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

// now sends what waits and a statement behind it, whose answer read is given.
func (t *pgTx) now(query string, args []any, read func(pgx.BatchResults) error) error {
	values, err := postgresArgs(args)
	if err != nil {
		return err
	}
	return t.send(queued{query: t.p.texts.of(query), args: values}, read)
}

// send sends what waits and a last statement, whose answer read is given; the error may be that of any of them.
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

// flush sends what waits, so that its errors are known.
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

// pgRow is a row that is asked for when it is scanned.
type pgRow struct {
	tx    *pgTx
	query string
	args  []any
}

func (r pgRow) Scan(into ...any) error {
	return r.tx.now(r.query, r.args, func(answer pgx.BatchResults) error { return plainRow{answer.QueryRow()}.Scan(into...) })
}

// plainRow is scanned as one of database/sql is.
type plainRow struct{ row pgx.Row }

func (r plainRow) Scan(into ...any) error {
	for i := range into {
		if b, ok := into[i].(*bool); ok {
			into[i] = yesNo{b}
		}
	}
	return r.row.Scan(into...)
}

// yesNo reads yes or no, which columns hold as numbers and comparisons give as what they are.
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

// rows hands each row to scan.
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
