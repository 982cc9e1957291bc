package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"chorus/internal/chat"
)

// pagesAtOnce is how much of a database is copied in one step: a few megabytes.
const pagesAtOnce = 1000

// backuper is what SQLite's own connection can do.
type backuper interface {
	NewBackup(to string) (*sqlite.Backup, error)
}

// CopyTo writes a copy of the whole database, as it is now, to a file that is not there yet, while
// others go on reading and writing. progress, which may be nil, hears how much is done.
func (db *DB) CopyTo(ctx context.Context, to string, progress func(done, all int)) error {
	if db.pg != nil {
		return db.copyServer(ctx, to, progress)
	}
	if db.w.isClosed() {
		return ErrClosed
	}
	// A connection of its own: its snapshot stays the same until the end, whatever is written meanwhile.
	from, err := sql.Open(driverName, dsn(db.path, readerPragmas))
	if err != nil {
		return explain(db.path, err)
	}
	defer from.Close()
	conn, err := from.Conn(ctx)
	if err != nil {
		return explain(db.path, err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN`); err != nil {
		return explain(db.path, err)
	}
	var n int
	if err := conn.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master`).Scan(&n); err != nil {
		return explain(db.path, err)
	}
	err = copyPages(ctx, conn, to, progress)
	if err == nil && db.storage != nil {
		err = ownBytes(ctx, to)
	}
	if _, end := conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`); err == nil {
		err = end
	}
	return explain(to, err)
}

// copyPages copies what a connection sees, step by step.
func copyPages(ctx context.Context, conn *sql.Conn, to string, progress func(done, all int)) error {
	if err := makeFile(to); err != nil {
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
		err = syncFile(to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

// ownBytes makes a copy say that its large blobs lie beside it, as they do in a backup, and that the storage is not its own: where it is
// tried while the one it was copied from goes on, it must not remove anything there.
func ownBytes(ctx context.Context, path string) error {
	db, err := sql.Open(driverName, dsn(path, []string{busyPragma}))
	if err != nil {
		return err
	}
	defer db.Close()
	for _, change := range []string{`UPDATE blobs SET place = '' WHERE place <> ''`, `DELETE FROM memos WHERE kind = '` + leavingBlobs + `' OR kind = 'store' AND key = '` + ownerMemo + `'`} {
		if _, err := db.ExecContext(ctx, change); err != nil {
			return err
		}
	}
	return nil
}

// BytesOutside reads the bytes of a blob that is not in the database: from its file or from the storage; fs.ErrNotExist: they are lost.
func (db *DB) BytesOutside(ctx context.Context, hash string) ([]byte, error) {
	data, err := db.Blob(ctx, hash)
	if errors.Is(err, chat.ErrLost) && !errors.Is(err, ErrBlob) {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return data, err
}

// rescueTime is how long a copy of a removed database may take.
const rescueTime = 10 * time.Minute

// rescuePath is where a database is saved whose file was removed while it was open.
func rescuePath(path string, now time.Time) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf("rescued-%s-%s", now.UTC().Format("20060102T150405"), filepath.Base(path)))
}

// rescue saves a database whose file was removed: as long as it is open, its bytes are there. It
// is done once, by the writer's own connection, since no new one can be opened. The turn is held.
// It gives the error with where that is.
func (w *writer) rescue(err error) error {
	if _, gone := os.Stat(w.path); !errors.Is(err, ErrReplaced) || !errors.Is(gone, os.ErrNotExist) {
		return err // what is there now may be what somebody wants
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
	return &Problem{What: ErrReplaced, Path: w.path, Cause: fmt.Errorf("the file was removed; everything that was in it is saved in %s, which `chorus doctor --fix` puts back", w.rescued)}
}

// Copies knows databases that nobody has open, such as those of backups.
type Copies struct{}

// BlobFiles are the blobs that lie in files of their own, by hash, with their sizes.
func (Copies) BlobFiles(ctx context.Context, path string) (map[string]int64, error) {
	db, err := sql.Open(driverName, dsn(path, inspectPragmas))
	if err != nil {
		return nil, explain(path, err)
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT hash, size FROM blobs WHERE data IS NULL`)
	if err != nil {
		return nil, explain(path, err)
	}
	defer rows.Close()
	out := map[string]int64{}
	for rows.Next() {
		var hash string
		var size int64
		if err := rows.Scan(&hash, &size); err != nil {
			return nil, explain(path, err)
		}
		if len(hash) == hashLength {
			out[hash] = size
		}
	}
	return out, explain(path, rows.Err())
}

// Check reads a whole database and reports damage.
func (Copies) Check(ctx context.Context, path string) error { return CheckFile(ctx, path) }

// Guard makes the guard of the database at path say how far another one has come, which is about to be
// put there, and gives the guard's file.
func (Copies) Guard(ctx context.Context, path, other string) (string, error) {
	db, err := sql.Open(driverName, dsn(other, inspectPragmas))
	if err != nil {
		return "", explain(other, err)
	}
	defer db.Close()
	version, err := identify(ctx, other, db)
	if err != nil {
		return "", err
	}
	g := guardState{Boot: bootID(), Database: unknownDatabase}
	if version >= identified {
		if g.Written, g.Database, err = markOf(ctx, db); err != nil {
			return "", explain(other, err)
		}
		g.OnDisk = g.Written
	}
	return guardPath(path), explain(guardPath(path), g.write(path))
}

// RemoveFile removes a database that nobody has open and what belongs to it, blobs excepted.
func RemoveFile(path string) error {
	for _, name := range []string{guardPath(path), path + "-wal", path + "-shm", path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &Problem{What: ErrDenied, Path: name, Cause: err}
		}
	}
	return nil
}
