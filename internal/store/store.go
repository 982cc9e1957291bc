// Package store keeps the journal: threads, events, approvals, money and bytes, in one
// SQLite file that several processes may use at the same time, or in a PostgreSQL
// database that several nodes do.
//
// It promises that a commit is true as a whole or not at all, that numbers come
// only from the thread's row, that a fenced owner writes nothing, and that what
// Commit returned will be read again the same way after a crash of the process.
// SQLite is written by one goroutine per handle: callers that wait together
// are committed together, each in its own savepoint, so that one caller's error
// voids only that caller. PostgreSQL is given a transaction for each caller.
package store

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

	"chorus/internal/blobstorage"
	"chorus/internal/journal"
	"chorus/internal/owner"
)

// Options say how to open a store.
type Options struct {
	// Path of the database file; made, with its folder, if it is not there.
	Path string
	// URL of a PostgreSQL database, postgres://…, instead of a file.
	URL string
	// Durability is "normal" (survives the death of the process; the default)
	// or "full" (survives the loss of power too).
	Durability string
	// BlobDir holds blobs over 64 KiB; empty means the folder "blobs" beside the file.
	BlobDir string
	// Blobs is where blobs over 64 KiB are kept instead, outside of database and home, for all machines; nil: nowhere. Close
	// closes it.
	Blobs blobstorage.Storage
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Patience is how long a commit waits for another process that writes, before it
	// fails with ErrBusy; 0 means 10 s, far beyond any commit.
	Patience time.Duration
	// AcceptRewound opens a database that is behind its guard, or another one than was there, and
	// makes it the one that counts.
	AcceptRewound bool
	// Notify is told, by whoever found out, that the files can no longer be written, and with nil
	// that they can be again. It must not call the store. nil: nobody is.
	Notify func(error)
	// Owns is asked inside a transaction that only the owner of a thing may make, such as taking a thread; an error undoes it. nil:
	// whoever holds the lock file owns it, and need not be asked.
	Owns func(Tx, owner.Name) error
	// Placement is the label of the machines that have a new thread's files; nil: it may run anywhere.
	Placement func(dir string) string
	// Follow is told of every event inside the transaction that writes it; an error undoes both. nil: nobody is.
	Follow Follower
}

// DB is an open store. All methods may be called from any goroutine; after
// Close they answer ErrClosed.
type DB struct {
	path    string
	blobDir string
	storage blobstorage.Storage // nil: none
	now     func() time.Time
	follow  Follower
	owns    func(Tx, owner.Name) error
	places  func(dir string) string

	w       *writer   // SQLite's
	pg      *postgres // PostgreSQL's; one of the two is nil
	says    *dialect
	health  *health
	readers *sql.DB // SQLite's
	reads   stmtCache

	searchMu sync.Mutex
	search   *index // opened by the first search or indexing
	closed   bool   // under searchMu: no index may be opened any more
}

// Open opens the store, makes it if there is none, and brings an older one up to
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
	if o.BlobDir == "" {
		o.BlobDir = filepath.Join(filepath.Dir(path), "blobs")
	}
	if err := ensureFile(path, o.BlobDir); err != nil {
		return nil, err
	}
	w, err := openWriter(ctx, path, o)
	if err != nil {
		return nil, explain(path, err)
	}
	db := &DB{path: path, blobDir: o.BlobDir, storage: o.Blobs, now: o.Now, follow: o.Follow, owns: o.Owns, places: o.Placement, w: w, says: &sqliteSQL, health: w.health}
	db.readers, err = sql.Open(driverName, dsn(path, readerPragmas))
	if err != nil {
		return nil, errors.Join(explain(path, err), w.close())
	}
	// Two readers: enough that a long page does not hold up a short question, and
	// each open connection costs memory for its page cache.
	db.readers.SetMaxOpenConns(2)
	db.readers.SetMaxIdleConns(2)
	return db, nil
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
	return &DB{path: pg.name, storage: o.Blobs, now: o.Now, follow: o.Follow, owns: o.Owns, places: o.Placement, pg: pg, says: &postgresSQL, health: h}, nil
}

// Close commits what is queued and closes the file. It may be called twice.
func (db *DB) Close() (err error) {
	if db.storage != nil {
		defer func() { err = errors.Join(err, db.storage.Close()) }()
	}
	if db.pg != nil {
		return db.pg.close()
	}
	err = db.w.close()
	db.searchMu.Lock()
	defer db.searchMu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	if db.search != nil {
		err = errors.Join(err, db.search.close())
	}
	return errors.Join(err, db.reads.close(), db.readers.Close())
}

// OnServer reports whether the database is PostgreSQL's, which other nodes may use too.
func (db *DB) OnServer() bool { return db.pg != nil }

// Path is the database file, or the server's URL without a password.
func (db *DB) Path() string { return db.path }

// ensureFile makes the folder and an empty file that only its owner may read, so
// that the database and the files SQLite puts beside it are never open to others. It refuses
// to where something shows that there was a database.
func ensureFile(path, blobDir string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	if err := wasThere(path, blobDir); err != nil {
		return err
	}
	return makeFile(path)
}

// makeFile makes an empty file and its folder, unless the file is there.
func makeFile(path string) error {
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
func wasThere(path, blobDir string) error {
	left := leftovers(path, blobDir)
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

// write is do for everything that needs no second look.
func (db *DB) write(ctx context.Context, work func(*transaction) error) error {
	return db.do(ctx, &job{work: work})
}

// query runs a read and hands each row to scan. The statement is closed before
// it returns, so that no reader ever holds back the checkpoint.
func (db *DB) query(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if db.pg != nil {
		return db.pg.read(ctx, query, args, scan)
	}
	if db.w.isClosed() {
		return ErrClosed
	}
	err := explain(db.path, db.read(ctx, query, args, scan))
	db.health.saw(err)
	return err
}

func (db *DB) read(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	st, err := db.reads.get(ctx, query, db.readers.PrepareContext)
	if err != nil {
		return err
	}
	return scanAll(scan)(st.QueryContext(ctx, args...))
}

// One is the first of what was found; ErrUnknown if there is none.
func One[T any](found []T, err error, what string) (T, error) {
	var none T
	if err == nil && len(found) == 0 {
		err = journal.ErrUnknown
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return found[0], nil
}

// listOf reads one column.
func listOf[T any](ctx context.Context, db *DB, query string, args ...any) (out []T, err error) {
	err = db.query(ctx, query, args, func(rows *sql.Rows) error {
		var value T
		err := rows.Scan(&value)
		out = append(out, value)
		return err
	})
	return out, err
}

// micros is how the store keeps an instant.
func micros(t time.Time) int64 { return t.UnixMicro() }

// instant is what was kept.
func instant(us int64) time.Time { return time.UnixMicro(us).UTC() }

// Instant is what was kept, where 0 is no time.
func Instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return instant(us)
}

// NullMicros keeps the zero time as NULL.
func NullMicros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micros(t)
}
