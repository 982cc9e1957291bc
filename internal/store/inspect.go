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
)

// Inspection is what can be said of a database file without opening the store on it.
type Inspection struct {
	Path    string
	Exists  bool
	Size    int64 // with what SQLite keeps beside it
	Mode    fs.FileMode
	Version int // of its schema
	Known   int // the newest that this program knows
	Journal string
	Server  string // which one, where the database is on one; "" for a file
}

// Newer reports whether a later program has been at the file.
func (i Inspection) Newer() bool { return i.Version > i.Known }

// Older reports whether the next start will migrate the file.
func (i Inspection) Older() bool { return i.Exists && i.Version < i.Known }

// inspectPragmas wait a second at most: whoever inspects is in a hurry, and says that
// the file is held instead.
var inspectPragmas = []string{"busy_timeout(1000)", "query_only(1)", "temp_store(2)"}

// Inspect looks at the file and makes and migrates nothing. A file that is not there is
// no error, unless something shows that there was one; what was found out before an error is in
// the inspection.
func Inspect(ctx context.Context, path, blobDir string) (Inspection, error) {
	i := Inspection{Path: path, Known: schemaVersion}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return i, wasThere(path, blobDir)
	case err != nil:
		return i, &Problem{What: ErrDenied, Path: path, Cause: err}
	case !info.Mode().IsRegular():
		return i, &Problem{What: ErrForeign, Path: path, Cause: errors.New("it is no plain file")}
	}
	if info.Size() == 0 {
		if err := wasThere(path, blobDir); err != nil {
			return i, err
		}
	}
	i.Exists, i.Mode, i.Size = true, info.Mode().Perm(), info.Size()
	if log, err := os.Stat(path + "-wal"); err == nil {
		i.Size += log.Size()
	}
	db, err := sql.Open(driverName, dsn(path, inspectPragmas))
	if err != nil {
		return i, explain(path, err)
	}
	defer db.Close()
	var app int
	var used bool
	if err := db.QueryRowContext(ctx, queryIdentity).Scan(&i.Version, &app, &used); err != nil {
		return i, explain(path, err)
	}
	if app != applicationID && (used || app != 0) {
		return i, &Problem{What: ErrForeign, Path: path}
	}
	if err := db.QueryRowContext(ctx, queryJournalMode).Scan(&i.Journal); err != nil {
		return i, explain(path, err)
	}
	if i.Newer() {
		return i, &Problem{What: ErrNewer, Path: path, Cause: fmt.Errorf("its schema is %d, this chorus knows %d", i.Version, i.Known)}
	}
	return i, nil
}

// CheckFile reads the whole file, of whatever version, and reports damage. It takes as
// long as the file is big; the context's error says that there was not the time.
func CheckFile(ctx context.Context, path string) error {
	db, err := sql.Open(driverName, dsn(path, inspectPragmas))
	if err != nil {
		return explain(path, err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(ctx, quickCheck).Scan(&verdict); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return explain(path, err)
	}
	if verdict != "ok" {
		return &Problem{What: ErrDamaged, Path: path, Cause: errors.New(verdict)}
	}
	return nil
}

// Unused is what a sweep would remove.
type Unused struct {
	Count int
	Bytes int64
}

// UnusedBlobs counts the bytes that no event refers to and nobody has put since
// olderThan ago, and the files that were begun and never came to belong to anything. Objects of a storage that belong to
// nothing are not counted: listing them takes long.
func (db *DB) UnusedBlobs(ctx context.Context, olderThan time.Duration) (Unused, error) {
	var out Unused
	before := db.now().Add(-olderThan)
	err := db.query(ctx, `SELECT count(*), coalesce(sum(size), 0) FROM blobs WHERE touched < ? AND hash IN (`+unusedHashes+`)`,
		[]any{micros(before)}, func(rows *sql.Rows) error { return rows.Scan(&out.Count, &out.Bytes) })
	if err != nil {
		return out, fmt.Errorf("count unused blobs: %w", err)
	}
	err = db.strayFiles(ctx, before, func(_, _ string, size int64) error {
		out.Count, out.Bytes = out.Count+1, out.Bytes+size
		return nil
	})
	if err != nil {
		return out, fmt.Errorf("count unused blobs: %w", err)
	}
	return out, nil
}

// strayFiles gives each file below the blobs' folder, last written before an instant,
// that no row has: whoever wrote it died before its commit. hash is "" for half of one.
func (db *DB) strayFiles(ctx context.Context, before time.Time, found func(path, hash string, size int64) error) error {
	if db.pg != nil {
		return nil
	}
	folders, err := os.ReadDir(db.blobDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !folder.IsDir() || len(folder.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(filepath.Join(db.blobDir, folder.Name()))
		if err != nil {
			return err
		}
		for _, f := range files {
			hash, ours := strayName(folder.Name(), f.Name())
			info, err := f.Info()
			if err != nil || !ours || !info.Mode().IsRegular() || !info.ModTime().Before(before) {
				continue // gone meanwhile, somebody's own, or young
			}
			if hash != "" {
				n, err := db.Count(ctx, fileRows, hash)
				if err != nil {
					return err
				}
				if n > 0 {
					continue
				}
			}
			if err := found(filepath.Join(db.blobDir, folder.Name(), f.Name()), hash, info.Size()); err != nil {
				return err
			}
		}
	}
	return nil
}

// hashLength is that of a SHA-256 in hexadecimal digits.
const hashLength = 64

// strayName tells our files from others; the hash is "" for one that was being written.
func strayName(folder, name string) (hash string, ours bool) {
	if len(name) > len(newPrefix) && name[:len(newPrefix)] == newPrefix {
		return "", true
	}
	if len(name) != hashLength || name[:2] != folder {
		return "", false
	}
	for _, r := range name {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return "", false
		}
	}
	return name, true
}
