// Package database opens a SQLite file that several processes may use at the same time, or a
// PostgreSQL database that several nodes share, and runs statements and transactions on it.
// Statements are written once for both. They use "?", RETURNING, ON CONFLICT with its target,
// partial indexes, and integers for instants and booleans. The callers bring the schema and own the
// tables; this package reads them only to find out whether a database is in the state in which it
// was left.
//
// A transaction is committed completely or not at all, and what Write returned without an error is
// read again the same way after a crash of the process. For SQLite, one goroutine per handle
// writes: callers that wait at the same time are committed together, each in its own savepoint, so
// that an error affects only its caller. For PostgreSQL, each caller gets a transaction; several
// that need no answer may share one (see TryTogether).
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
	// Path is the database file. It is created, with its folder, if it does not exist.
	Path string
	// URL is a PostgreSQL database, postgres://…, to use instead of a file.
	URL string
	// Durability is "normal" (survives the death of the process; the default)
	// or "full" (survives the loss of power too).
	Durability string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// MaxWait is how long a transaction waits for another writing process before it fails
	// with ErrBusy. 0 means 10 s, far longer than any transaction takes.
	MaxWait time.Duration
	// AcceptRewound opens a database that is behind its guard, or a
	// different one than before, and makes it the valid one.
	AcceptRewound bool
	// Notify is called when the files can no longer be written and, with nil, when they
	// can be again. It must not call the database. It may be nil.
	Notify func(error)
	// Left returns further files which show that there was a database, if
	// there is none now; nil if there are no such files.
	Left func() []string
	// Schema describes its contents.
	Schema Schema
}

// DB is an open database. All methods may be called from any goroutine. After Close they fail with ErrClosed.
type DB struct {
	path string
	now  func() time.Time

	w       *writer   // SQLite's
	pg      *postgres // PostgreSQL's; one of the two is nil
	health  *health
	answers *answers
	readers *readers // SQLite's
	closed  sync.Once
}

// Open opens the database, creates it if there is none, and migrates an older one.
// On an up-to-date home it runs a few pragmas and one query.
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
	db := &DB{path: path, now: o.Now, answers: newAnswers()}
	// The first reader is opened while the writer is: each connection reads the whole schema, which takes milliseconds.
	if db.readers, err = openReaders(ctx, path); err != nil {
		return nil, Explain(path, err)
	}
	if db.w, err = openWriter(ctx, path, o); err != nil {
		return nil, errors.Join(Explain(path, err), db.readers.close())
	}
	db.health = db.w.health
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
	return &DB{path: pg.name, now: o.Now, pg: pg, health: h, answers: newAnswers()}, nil
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
		err = errors.Join(err, db.readers.close())
	})
	if !first {
		return nil
	}
	return err
}

// OnServer reports whether this is a PostgreSQL database, which other nodes may use too.
func (db *DB) OnServer() bool { return db.pg != nil }

// Path returns the database file, or the server's URL without a password.
func (db *DB) Path() string { return db.path }

// ensureFile creates the folder and an empty file that only its owner may read, so
// that the database and the files SQLite puts next to it are never open to others. It
// refuses if something shows that there was a database.
func ensureFile(path string, left func() []string) error {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	if err := wasThere(path, left); err != nil {
		return err
	}
	return MakeFile(path)
}

// MakeFile creates an empty file and its folder, unless the file exists.
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

// wasThere returns an error if there was a database at path, but there is none now or only an empty file.
func wasThere(path string, more func() []string) error {
	left := Leftovers(path)
	if more != nil {
		left = append(left, more()...)
	}
	if len(left) == 0 {
		return nil
	}
	// Checked last: another process may just have created the database, and then what belongs to it.
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	return &Problem{What: ErrMissing, Path: path, Cause: fmt.Errorf("still there: %s", strings.Join(left, ", "))}
}

// do runs a job and waits for its end.
func (db *DB) do(ctx context.Context, j *job) error {
	if db.pg != nil {
		return db.pg.do(ctx, j)
	}
	return db.w.do(ctx, j)
}

// Query runs a read and passes each row to scan. It closes the statement before
// it returns, so that no reader ever blocks the checkpoint.
func (db *DB) Query(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	if db.pg != nil {
		return db.pg.read(ctx, query, args, scan)
	}
	if db.w.isClosed() {
		return ErrClosed
	}
	err := Explain(db.path, db.readers.query(ctx, query, args, scan))
	db.health.saw(err)
	return err
}

// Count runs a query that returns one number.
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
