package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// BusyTimeout is the pragma for how long a connection waits for others.
const BusyTimeout = busyPragma

// OpenFile opens a SQLite file that is not a store, or not to be opened as one, with pragmas.
func OpenFile(path string, pragmas []string, more ...string) (*sql.DB, error) {
	db, err := sql.Open(driverName, dsn(path, pragmas, more...))
	return db, Explain(path, err)
}

// OpenToRead opens a database file of any version to read it. Nobody may have it open.
func OpenToRead(path string) (*sql.DB, error) { return OpenFile(path, inspectPragmas) }

// SetAside moves the files of a database, and further ones, into a folder next to
// it that is named after the problem, and returns the folder.
func SetAside(path, why string, now time.Time, more ...string) (string, error) {
	folder := filepath.Join(filepath.Dir(path), why+"-"+now.UTC().Format("20060102T150405"))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", &Problem{What: ErrDenied, Path: folder, Cause: err}
	}
	for _, file := range append([]string{path, path + "-wal", path + "-shm", GuardPath(path)}, more...) {
		if err := os.Rename(file, filepath.Join(folder, filepath.Base(file))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return folder, &Problem{What: ErrDenied, Path: file, Cause: err}
		}
	}
	return folder, nil
}

// PutBack restores a database that was saved when its file was removed, if there is one that is
// undamaged and as recent as the guard says. It returns the name of the copy, or "" if there is
// none.
func PutBack(ctx context.Context, path string) (string, error) {
	saved, err := filepath.Glob(filepath.Join(filepath.Dir(path), "rescued-*-"+filepath.Base(path)))
	if err != nil || len(saved) == 0 {
		return "", err
	}
	slices.Sort(saved)
	newest := saved[len(saved)-1]
	if err := CheckFile(ctx, newest); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return "", &Problem{What: ErrForeign, Path: path, Cause: errors.New("it is in the way of " + newest)}
	}
	for _, tail := range []string{"-wal", "-shm"} { // those of the removed file; the copy has everything
		if err := os.Remove(path + tail); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", Explain(path+tail, err)
		}
	}
	if err := os.Rename(newest, path); err != nil {
		return "", Explain(path, err)
	}
	return newest, SyncDir(filepath.Dir(path))
}

// RemoveFile removes the file of a database that nobody has open, and what belongs to it except blobs.
func RemoveFile(path string) error {
	for _, name := range []string{GuardPath(path), path + "-wal", path + "-shm", path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &Problem{What: ErrDenied, Path: name, Cause: err}
		}
	}
	return nil
}

// SyncDir makes a rename in a folder survive a loss of power. File systems that cannot
// sync a folder report this, and then there is nothing more to do.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync a folder: %w", err)
	}
	_ = d.Sync()
	return d.Close()
}
