package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/await"
)

const (
	// maxGroup limits one transaction, so that the first of a crowd does not wait for all of it.
	maxGroup = 64
	// maxQueued is how long an owner's commit may wait in the queue. It is longer than
	// SQLite's own limit, so that the real reason is reported first.
	maxQueued = 30 * time.Second
	// meeting is how long processes that create the same file wait for each other.
	meeting = 20 * time.Second
)

// writer has the only connection that may write. Whoever holds the turn uses it. A caller
// that finds the turn free runs its own work at once, without waking anybody. Callers that
// find it taken queue up, and a goroutine commits them together.
type writer struct {
	path   string
	schema Schema
	pool   *sql.DB
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	acts   map[string]driver.StmtExecContext // statements without an answer
	args   []driver.NamedValue               // buffer for the arguments of one
	tx     transaction                       // what jobs are given
	made   atomic.Int64                      // transactions that were committed, or may have been
	turn   chan struct{}                     // holds a value while somebody has the turn
	queue  chan *job
	wake   chan struct{} // signals that the queue is not empty; buffer of one

	files   openFiles
	tried   bool   // whether saving a removed file was tried
	rescued string // where everything was saved after the file was removed, or ""
	guard   guard
	health  *health

	stop    chan struct{} // closed by close; nothing more is accepted
	done    chan struct{} // closed when the goroutine has ended
	once    sync.Once
	closing error // valid after done

	// fault lets tests break a COMMIT: before it (the group is rolled back)
	// or after it (it happened, but nobody is told).
	fault func(after bool) error
}

// job is one caller's part of a transaction. work may run more than once, each time from the
// same starting state, so it must set its results and not add to them.
type job struct {
	work  func(*transaction) error
	plain bool // use of the writing connection outside of any transaction
	// hurried ends the job with its context even when its turn has come;
	// then it is not known whether it was committed.
	hurried bool
	// order and happened are set for a job that may run with others on
	// PostgreSQL: see Together. happened is nil for all others.
	order    string
	happened func(*transaction) (bool, error)
	state    atomic.Int32
	done     chan struct{}
	err      error
	// lost is set when COMMIT itself failed; then only reading tells what happened.
	lost bool
}

const (
	jobWaits int32 = iota
	jobRuns
	jobDropped
)

func openWriter(ctx context.Context, path string, o Options) (*writer, error) {
	pragmas := append([]string{syncPragma(o.Durability), busyPragma}, writerPragmas...)
	if o.MaxWait > 0 {
		pragmas[1] = fmt.Sprintf("busy_timeout(%d)", max(1, o.MaxWait.Milliseconds()))
	}
	pool, err := sql.Open(driverName, dsn(path, pragmas))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	w := &writer{path: path, schema: o.Schema, pool: pool, stmts: make(map[string]*sql.Stmt), acts: make(map[string]driver.StmtExecContext), queue: make(chan *job, maxGroup),
		turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		files: openFiles{path: path}, guard: guard{path: path}, health: &health{notify: o.Notify}}
	w.tx = transaction{w: w, memory: o.Schema.memory()}
	if err := w.connect(ctx); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	err = w.guard.verify(ctx, w.conn)
	if errors.Is(err, ErrRewound) && o.AcceptRewound {
		err = w.guard.stored.write(path)
	}
	if err == nil {
		err = w.files.opened()
	}
	if err != nil {
		return nil, errors.Join(err, w.conn.Close(), pool.Close())
	}
	go w.loop()
	return w, nil
}

// connect opens the connection and checks the file behind it.
func (w *writer) connect(ctx context.Context) error {
	return Meet(ctx, func() error { return w.ready(ctx) })
}

// Meet opens a file that may be new. Processes that create one at the same time wait
// for each other here: while one of them changes the journal mode, SQLite refuses
// the others at once, whatever their busy timeout.
func Meet(ctx context.Context, open func() error) error {
	end := time.Now().Add(meeting)
	for {
		err := open()
		if code := resultCode(err) & 0xff; code != codeBusy && code != codeLocked || time.Now().After(end) {
			return err
		}
		if !await.For(ctx, time.Duration(5+rand.IntN(20))*time.Millisecond) {
			return err
		}
	}
}

// ready checks that the file is ours, migrates it, and keeps the connection.
func (w *writer) ready(ctx context.Context) error {
	conn, err := w.pool.Conn(ctx)
	if err != nil {
		return err
	}
	version, err := identify(ctx, w.path, conn, w.schema.Version)
	if err == nil && version == w.schema.Version && w.schema.Unfinished != "" && conn.QueryRowContext(ctx, w.schema.Unfinished).Scan(new(string)) == nil {
		version-- // the process that migrated it was killed before the end
	}
	if err == nil && version < w.schema.Version {
		if _, err = conn.ExecContext(ctx, setJournalMode); err == nil {
			err = MigrateTo(ctx, w.path, w.schema, w.schema.Version)
		}
	}
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	w.conn = conn
	return nil
}

func (w *writer) isClosed() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

func (w *writer) close() error {
	w.once.Do(func() { close(w.stop) })
	<-w.done
	return w.closing
}

func (w *writer) loop() {
	defer close(w.done)
	w.warm()
	group := make([]*job, 0, maxGroup)
	for {
		select {
		case <-w.wake:
			w.turn <- struct{}{}
			if group = w.gather(group[:0]); len(group) > 0 {
				w.run(group)
			}
			<-w.turn
			if len(w.queue) > 0 {
				w.notify()
			}
		case <-w.stop:
			w.turn <- struct{}{} // and never returned
			w.shutDown(group)
			return
		}
	}
}

// warm prepares what every turn will need while the program is still
// starting. It stops as soon as there is something to do.
func (w *writer) warm() {
	for _, query := range append(slices.Clone(w.schema.Warm), beginWrite, "COMMIT") {
		w.turn <- struct{}{}
		if !w.isClosed() {
			_, _ = w.act(query) // an error appears again at use
		}
		<-w.turn
		if len(w.queue) > 0 || w.isClosed() {
			return
		}
	}
}

func (w *writer) notify() { await.Notify(w.wake) }

// gather adds jobs that already wait; it does not wait itself.
func (w *writer) gather(group []*job) []*job {
	for len(group) < maxGroup {
		select {
		case j := <-w.queue:
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}

// shutDown commits what was queued before the stop and closes the file.
func (w *writer) shutDown(group []*job) {
	for {
		group = w.gather(group[:0])
		if len(group) == 0 {
			break
		}
		w.run(group)
	}
	w.guard.close(w)
	var err error
	for _, st := range w.stmts {
		err = errors.Join(err, st.Close())
	}
	for _, st := range w.acts {
		err = errors.Join(err, w.raw(func() error { return st.(driver.Stmt).Close() }))
	}
	w.closing = errors.Join(err, w.conn.Close(), w.pool.Close())
	if w.files.check() == nil {
		w.guard.settled()
	}
}

// run commits a group and tells everybody.
func (w *writer) run(group []*job) {
	live := group[:0]
	for _, j := range group {
		if j.state.CompareAndSwap(jobWaits, jobRuns) {
			live = append(live, j)
		} else {
			close(j.done)
		}
	}
	w.perform(live)
	for _, j := range live {
		j.err = Explain(w.path, j.err)
		w.health.saw(j.err)
		close(j.done)
	}
}

// perform does the work of a group, unless the open files were replaced.
func (w *writer) perform(group []*job) {
	if err := w.files.check(); err != nil {
		err = w.rescue(err)
		for _, j := range group {
			j.err = err
		}
		return
	}
	writes := group[:0:0]
	for _, j := range group {
		if j.plain {
			j.err = j.work(&w.tx)
		} else {
			writes = append(writes, j)
		}
	}
	if len(writes) == 0 {
		return
	}
	if err := w.health.damaged(); err != nil {
		for _, j := range writes {
			j.err = err
		}
		return
	}
	w.transact(writes)
}

// transact runs the jobs in one transaction. A single job needs no savepoint.
func (w *writer) transact(jobs []*job) {
	if err := w.exec(beginWrite); err != nil {
		for _, j := range jobs {
			j.err = fmt.Errorf("begin: %w", err)
		}
		return
	}
	if len(jobs) == 1 {
		j := jobs[0]
		if j.err = j.work(&w.tx); j.err != nil {
			w.rollback()
			return
		}
		w.commit(jobs)
		return
	}
	for _, j := range jobs {
		if !w.step(j) {
			// The error ended the whole transaction (disk full, I/O). Nothing of this group
			// was written; each job gets a transaction of its own.
			w.rollback()
			for _, j := range jobs {
				w.transact([]*job{j})
			}
			return
		}
	}
	w.commit(jobs)
}

// step runs a job in its savepoint. It returns false if the transaction is gone.
func (w *writer) step(j *job) bool {
	if j.err = w.exec("SAVEPOINT j"); j.err != nil {
		return false
	}
	if j.err = j.work(&w.tx); j.err != nil {
		w.tx.forget()
		return w.exec("ROLLBACK TO j") == nil && w.exec("RELEASE j") == nil
	}
	j.err = w.exec("RELEASE j")
	return j.err == nil
}

// commit commits the group. If COMMIT fails, those whose work had succeeded
// are told so and must read back what became of it.
func (w *writer) commit(jobs []*job) {
	w.made.Add(1)
	err := w.faulty(false)
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err == nil {
		err = w.faulty(true)
	}
	if err == nil {
		w.files.committed()
		w.guard.committed(w)
		w.health.wrote()
		return
	}
	w.rollback()
	for _, j := range jobs {
		if j.err == nil {
			j.err, j.lost = fmt.Errorf("commit: %w", err), true
		}
	}
}

func (w *writer) faulty(after bool) error {
	if w.fault == nil {
		return nil
	}
	return w.fault(after)
}

// rollback makes sure that no transaction is open. SQLite may have
// rolled back by itself, so an error means nothing.
func (w *writer) rollback() {
	w.tx.forget()
	_ = w.exec("ROLLBACK")
}

// do runs work and waits for its end. A caller that gives up before its turn has written nothing;
// after that, do waits for the outcome. Owners' commits have a context that is never cancelled.
func (w *writer) do(ctx context.Context, j *job) error {
	if w.isClosed() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j.done = make(chan struct{})
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
		if w.isClosed() {
			return ErrClosed
		}
		w.run([]*job{j})
		return j.err
	default:
		return w.wait(ctx, j)
	}
}

// wait queues work and waits for its end.
func (w *writer) wait(ctx context.Context, j *job) error {
	limit := time.NewTimer(maxQueued)
	defer limit.Stop()
	select {
	case w.queue <- j:
		w.notify()
	case <-w.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return &Problem{What: ErrBusy, Path: w.path}
	}
	var why error
	select {
	case <-j.done:
		return j.err
	case <-w.done:
		// Queued at the very moment of closing.
		select {
		case <-j.done:
			return j.err
		default:
			return ErrClosed
		}
	case <-ctx.Done():
		why = ctx.Err()
	case <-limit.C:
		why = &Problem{What: ErrBusy, Path: w.path}
	}
	if j.state.CompareAndSwap(jobWaits, jobDropped) {
		return why
	}
	select {
	case <-j.done:
	case <-w.done:
	}
	return j.err
}

// stmt returns the prepared statement for a query. Only the writer's goroutine calls it.
func (w *writer) stmt(query string) (*sql.Stmt, error) {
	if st, ok := w.stmts[query]; ok {
		return st, nil
	}
	st, err := w.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	w.stmts[query] = st
	return st, nil
}

// act returns the driver's prepared statement for a query without an answer. A commit
// runs a dozen of them, and what database/sql does around each (locks, retries, checking
// every argument twice) would be a tenth of its time.
func (w *writer) act(query string) (driver.StmtExecContext, error) {
	if st, ok := w.acts[query]; ok {
		return st, nil
	}
	var st driver.StmtExecContext
	err := w.conn.Raw(func(conn any) error {
		made, err := conn.(driver.ConnPrepareContext).PrepareContext(context.Background(), query)
		if err == nil {
			st = made.(driver.StmtExecContext)
		}
		return err
	})
	if err == nil {
		w.acts[query] = st
	}
	return st, err
}

// raw calls f with exclusive use of the driver's connection.
func (w *writer) raw(f func() error) error { return w.conn.Raw(func(any) error { return f() }) }

func (w *writer) exec(query string, args ...any) error {
	_, err := w.result(query, args)
	return err
}

func (w *writer) result(query string, args []any) (res driver.Result, err error) {
	st, err := w.act(query)
	if err != nil {
		return nil, err
	}
	w.args = w.args[:0]
	for i, a := range args {
		v, err := asValue(a)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		w.args = append(w.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	err = w.raw(func() error {
		res, err = st.ExecContext(context.Background(), w.args)
		return err
	})
	return res, err
}

// asValue converts an argument for the driver.
func asValue(a any) (driver.Value, error) {
	switch v := a.(type) {
	case nil, int64, string, []byte, bool:
		return v, nil
	case int:
		return int64(v), nil
	}
	return driver.DefaultParameterConverter.ConvertValue(a)
}

// row reads one row, or fails with sql.ErrNoRows.
func (w *writer) row(query string, args []any, into ...any) error {
	st, err := w.stmt(query)
	if err != nil {
		return err
	}
	return st.QueryRowContext(context.Background(), args...).Scan(into...)
}
