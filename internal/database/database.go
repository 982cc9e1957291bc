// Package database opens a SQLite file that several processes may use at the same time, or a PostgreSQL database that
// several nodes do, and runs statements and transactions on it. Statements are written once, for both: with "?", RETURNING,
// ON CONFLICT with its target, partial indexes, and integers for instants and for yes or no. What is in the tables is its
// callers' business, who bring the schema; it looks at them itself only to tell whether a database is as it was left.
//
// It promises that a transaction is true as a whole or not at all, and that what Write returned without an error is read
// again the same way after a crash of the process. SQLite is written by one goroutine per handle: callers that wait together
// are committed together, each in its own savepoint, so that one caller's error voids only that caller. PostgreSQL is given a
// transaction for each caller, or one for several that need no answer of it: see TryTogether.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options say how to open a database.
type Options struct {
	// Path of the database file; made, with its folder, if it is not there.
	Path string
	// URL of a PostgreSQL database, postgres://…, instead of a file.
	URL string
	// Durability is "normal" (survives the death of the process; the default)
	// or "full" (survives the loss of power too).
	Durability string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// MaxWait is how long a transaction waits for another process that writes, before it
	// fails with ErrBusy; 0 means 10 s, far beyond any.
	MaxWait time.Duration
	// AcceptRewound opens a database that is behind its guard, or another one than was there, and
	// makes it the one that counts.
	AcceptRewound bool
	// Notify is told, by whoever found out, that the files can no longer be written, and with nil
	// that they can be again. It must not call the database. nil: nobody is.
	Notify func(error)
	// Left gives further files that show that there was a database, where there is none; nil: there are none.
	Left func() []string
	// Schema is what is in it.
	Schema Schema
}

// DB is an open database. All methods may be called from any goroutine; after
// Close they answer ErrClosed.
type DB struct {
	path string
	now  func() time.Time

	w       *writer   // SQLite's
	pg      *postgres // PostgreSQL's; one of the two is nil
	health  *health
	readers *sql.DB       // SQLite's
	reading chan struct{} // closed when the first of them is open, or could not be opened
	reads   stmtCache
	closed  sync.Once
}

// Open opens the database, makes it if there is none, and brings an older one up to
// date. On a warm home it runs a handful of pragmas and one query.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.URL != "" {
		return openServer(ctx, o)
	}
	if o.Path == "" {
		return nil, errors.New("open store: no path given")
	}
	if o.Durability != "" && o.Durability != "normal" && o.Durability != "full" {
		return nil, fmt.Errorf("open store: durability is %q; use normal or full", o.Durability)
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := ensureFile(path, o.Left); err != nil {
		return nil, err
	}
	db := &DB{path: path, now: o.Now, reading: make(chan struct{})}
	if db.readers, err = sql.Open(driverName, dsn(path, readerPragmas)); err != nil {
		return nil, Explain(path, err)
	}
	// Two readers: enough that a long page does not hold up a short question, and
	// each open connection costs memory for its page cache.
	db.readers.SetMaxOpenConns(2)
	db.readers.SetMaxIdleConns(2)
	go db.openReader(ctx)
	if db.w, err = openWriter(ctx, path, o); err != nil {
		<-db.reading
		return nil, errors.Join(Explain(path, err), db.readers.Close())
	}
	db.health = db.w.health
	return db, nil
}

// openReader opens the first reader while the writer is opened: each connection reads the whole schema, which takes milliseconds. An error
// shows again at the first query.
func (db *DB) openReader(ctx context.Context) {
	defer close(db.reading)
	_ = db.readers.PingContext(ctx)
}

// openServer is Open for a database on a server.
func openServer(ctx context.Context, o Options) (*DB, error) {
	if !IsPostgres(o.URL) {
		return nil, errors.New("open store: databaseUrl must begin with postgres:// (a file is named by databasePath)")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &health{notify: o.Notify}
	pg, err := openPostgres(ctx, o, h)
	if err != nil {
		return nil, err
	}
	return &DB{path: pg.name, now: o.Now, pg: pg, health: h}, nil
}

// Close commits what is queued and closes the file. It may be called twice.
func (db *DB) Close() (err error) {
	if db.pg != nil {
		return db.pg.close()
	}
	err = db.w.close()
	first := false
	db.closed.Do(func() {
		first = true
		<-db.reading
		err = errors.Join(err, db.reads.close(), db.readers.Close())
	})
	if !first {
		return nil
	}
	return err
}

// OnServer reports whether the database is PostgreSQL's, which other nodes may use too.
func (db *DB) OnServer() bool { return db.pg != nil }

// Path is the database file, or the server's URL without a password.
func (db *DB) Path() string { return db.path }

// ensureFile makes the folder and an empty file that only its owner may read, so
// that the database and the files SQLite puts beside it are never open to others. It refuses
// to where something shows that there was a database.
func ensureFile(path string, left func() []string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	if err := wasThere(path, left); err != nil {
		return err
	}
	return MakeFile(path)
}

// MakeFile makes an empty file and its folder, unless the file is there.
func MakeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return &Problem{What: ErrDenied, Path: filepath.Dir(path), Cause: err}
	}
	// O_EXCL: an existing file must not be opened and closed here, because closing
	// any descriptor of it drops the locks that SQLite holds in this process.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil && isNoSpace(err):
		return &Problem{What: ErrFull, Path: path, Cause: err}
	case err != nil:
		return &Problem{What: ErrDenied, Path: path, Cause: err}
	}
	return f.Close()
}

// wasThere says that there was a database at path, where there is none now, or an empty file.
func wasThere(path string, more func() []string) error {
	left := Leftovers(path)
	if more != nil {
		left = append(left, more()...)
	}
	if len(left) == 0 {
		return nil
	}
	// Looked at last: another process may just have made the database, and then what
	// belongs to it.
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	return &Problem{What: ErrMissing, Path: path, Cause: fmt.Errorf("still there: %s", strings.Join(left, ", "))}
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

// do has a job done and waits for its end.
func (db *DB) do(ctx context.Context, j *job) error {
	if db.pg != nil {
		return db.pg.do(ctx, j)
	}
	return db.w.do(ctx, j)
}

// Query runs a read and hands each row to scan. The statement is closed before
// it returns, so that no reader ever holds back the checkpoint.
func (db *DB) Query(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if db.pg != nil {
		return db.pg.read(ctx, query, args, scan)
	}
	if db.w.isClosed() {
		return ErrClosed
	}
	err := Explain(db.path, db.read(ctx, query, args, scan))
	db.health.saw(err)
	return err
}

func (db *DB) read(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	select {
	case <-db.reading:
	case <-ctx.Done():
		return ctx.Err()
	}
	st, err := db.reads.get(ctx, query, db.readers.PrepareContext)
	if err != nil {
		return err
	}
	return ScanAll(scan)(st.QueryContext(ctx, args...))
}

// Count runs a query that answers with one number.
func (db *DB) Count(ctx context.Context, query string, args ...any) (int64, error) {
	var n int64
	err := db.Query(ctx, query, args, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// List reads one column.
func List[T any](ctx context.Context, db *DB, query string, args ...any) (out []T, err error) {
	err = db.Query(ctx, query, args, Column(&out))
	return out, err
}
