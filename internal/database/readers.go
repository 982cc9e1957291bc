package database

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

// readers are SQLite's two reading connections, so that a long page does not delay short queries. The
// second one is opened only for somebody who has waited for the first: opening it takes milliseconds,
// because it reads the whole schema, and it keeps memory. Most queries take microseconds.
type readers struct {
	first, second *reader
	opened        chan struct{} // closed when the first one is open or failed to open
	both          chan struct{} // closed when the second one has been used
	begin         sync.Once
}

// reader is one connection, used by one caller at a time.
type reader struct {
	pool  *sql.DB // of one connection, opened at its first use
	free  chan struct{}
	stmts stmtCache
}

// readerPatience is how long a query waits for the first connection before the second one is opened.
const readerPatience = 2 * time.Millisecond

func newReader(path string) (*reader, error) {
	pool, err := sql.Open(driverName, dsn(path, readerPragmas, onlyExisting))
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	r := &reader{pool: pool, free: make(chan struct{}, 1)}
	r.free <- struct{}{}
	return r, nil
}

// openReaders opens the first connection in another goroutine. An error appears again at the first query.
func openReaders(ctx context.Context, path string) (*readers, error) {
	all := readers{opened: make(chan struct{}), both: make(chan struct{})}
	var err error
	if all.first, err = newReader(path); err != nil {
		return nil, err
	}
	if all.second, err = newReader(path); err != nil {
		return nil, errors.Join(err, all.first.pool.Close())
	}
	go func() {
		defer close(all.opened)
		_ = all.first.pool.PingContext(ctx)
	}()
	return &all, nil
}

// take returns a connection for the caller alone, who gives it back.
func (rs *readers) take(ctx context.Context) (*reader, error) {
	select {
	case <-rs.opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-rs.first.free:
		return rs.first, nil
	default:
	}
	patience := time.NewTimer(readerPatience)
	defer patience.Stop()
	select {
	case <-rs.first.free:
		return rs.first, nil
	case <-patience.C:
	case <-rs.both:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-rs.first.free:
		return rs.first, nil
	case <-rs.second.free:
		rs.begin.Do(func() { close(rs.both) })
		return rs.second, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *reader) giveBack() { r.free <- struct{}{} }

// close closes both connections. Queries that run are ended.
func (rs *readers) close() error {
	<-rs.opened
	return errors.Join(rs.first.close(), rs.second.close())
}

func (r *reader) close() error { return errors.Join(r.stmts.close(), r.pool.Close()) }

// query runs a read and passes each row to scan.
func (rs *readers) query(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	r, err := rs.take(ctx)
	if err != nil {
		return err
	}
	defer r.giveBack()
	st, err := r.stmts.get(ctx, query, r.pool.PrepareContext)
	if err != nil {
		return err
	}
	return ScanAll(scan)(st.QueryContext(ctx, args...))
}

// stmtCache keeps a prepared statement per query text.
type stmtCache struct {
	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

func (c *stmtCache) get(ctx context.Context, query string, prepare func(context.Context, string) (*sql.Stmt, error)) (*sql.Stmt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	st, err := prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if c.stmts == nil {
		c.stmts = make(map[string]*sql.Stmt)
	}
	c.stmts[query] = st
	return st, nil
}

func (c *stmtCache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, st := range c.stmts {
		err = errors.Join(err, st.Close())
	}
	c.stmts = nil
	return err
}
