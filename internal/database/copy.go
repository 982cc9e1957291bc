package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
)

// pagesAtOnce is how many pages are copied in one step: a few megabytes.
const pagesAtOnce = 1000

// backuper is implemented by the SQLite driver's connection.
type backuper interface {
	NewBackup(to string) (*sqlite.Backup, error)
}

// CopyFile writes a copy of a whole SQLite database, as it is now, to a file that does not
// exist yet, while others keep reading and writing. progress may be nil.
func (db *DB) CopyFile(ctx context.Context, to string, progress func(done, all int)) error {
	if db.w.isClosed() {
		return ErrClosed
	}
	// Use a separate connection: its snapshot stays the same until the end, whatever is written meanwhile.
	from, err := sql.Open(driverName, dsn(db.path, readerPragmas, onlyExisting))
	if err != nil {
		return Explain(db.path, err)
	}
	defer from.Close()
	conn, err := from.Conn(ctx)
	if err != nil {
		return Explain(db.path, err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return Explain(db.path, err)
	}
	var n int
	if err := conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master`).Scan(&n); err != nil {
		return Explain(db.path, err)
	}
	err = copyPages(ctx, conn, to, progress)
	if _, end := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`); err == nil {
		err = end
	}
	return Explain(to, err)
}

// copyPages copies what a connection sees, in steps.
func copyPages(ctx context.Context, conn *sql.Conn, to string, progress func(done, all int)) error {
	if err := MakeFile(to); err != nil {
		return err
	}
	err := conn.Raw(func(raw any) (err error) {
		from, ok := raw.(backuper)
		if !ok {
			return errors.New("this driver cannot copy a database")
		}
		b, err := from.NewBackup(dsn(to, nil))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Finish()) }()
		for more := true; more; {
			if err := ctx.Err(); err != nil {
				return err
			}
			if more, err = b.Step(pagesAtOnce); err != nil {
				return err
			}
			if progress != nil {
				progress(b.PageCount()-b.Remaining(), b.PageCount())
			}
		}
		return nil
	})
	if err == nil {
		err = SyncFile(to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

// rescueTime is how long a copy of a removed database may take.
const rescueTime = 10 * time.Minute

// rescuePath returns where to save a database whose file was removed while it was open.
func rescuePath(path string, now time.Time) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf("rescued-%s-%s", now.UTC().Format("20060102T150405"), filepath.Base(path)))
}

// rescue saves a database whose file was removed; its bytes exist as long as it is open. This
// is done once, on the writer's own connection, since no new one can be opened. The caller
// holds the turn. The returned error says where the copy is.
func (w *writer) rescue(err error) error {
	if _, gone := os.Stat(w.path); !errors.Is(err, ErrReplaced) || !errors.Is(gone, os.ErrNotExist) {
		return err // the file that is there now may be the one somebody wants
	}
	if !w.tried {
		w.tried = true
		ctx, cancel := context.WithTimeout(context.Background(), rescueTime)
		defer cancel()
		to := rescuePath(w.path, time.Now())
		if copyPages(ctx, w.conn, to, nil) == nil {
			w.rescued = to
		}
	}
	if w.rescued == "" {
		return err
	}
	return &Problem{What: ErrReplaced, Path: w.path, Cause: fmt.Errorf("the file was removed; everything in it was saved in %s, which `chorus doctor --fix` restores", w.rescued)}
}

// SetGuard sets the guard of the database at path to the state of another database
// that is about to be put there, and returns the guard's file.
func SetGuard(ctx context.Context, path, other string, known int) (string, error) {
	db, err := OpenToRead(other)
	if err != nil {
		return "", Explain(other, err)
	}
	defer db.Close()
	version, err := identify(ctx, other, db, known)
	if err != nil {
		return "", err
	}
	g := guardState{Boot: bootID(), Database: unknownDatabase}
	if version >= identified {
		if g.Written, g.Database, err = markOf(ctx, db); err != nil {
			return "", Explain(other, err)
		}
		g.OnDisk = g.Written
	}
	return GuardPath(path), Explain(GuardPath(path), g.write(path))
}
