package database

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// openFiles knows the files that a writer has open, and notices when their names no longer
// lead to them: what is written after that would be lost with the last process that has them
// open. It costs two or three calls of stat per transaction.
type openFiles struct {
	path string
	db   fs.FileInfo // as it was opened
	log  fs.FileInfo // of the write-ahead log, after our last transaction; nil: none yet
}

// opened remembers the database file.
func (f *openFiles) opened() (err error) {
	f.db, err = os.Stat(f.path)
	return err
}

// committed remembers the log as a transaction has left it.
func (f *openFiles) committed() {
	if log, err := os.Stat(f.path + "-wal"); err == nil {
		f.log = log
	}
}

// check reports whether the names still lead to the open files. The error is a *Problem.
func (f *openFiles) check() error {
	db, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.lost("the file was removed")
	case err != nil:
		return Explain(f.path, err)
	case !os.SameFile(db, f.db):
		return f.lost("another file is in its place")
	case f.log == nil:
		return nil
	}
	log, err := os.Stat(f.path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.lost(fmt.Sprintf("%s-wal, which belongs to it, was removed", f.path))
	case err != nil:
		return Explain(f.path, err)
	case !os.SameFile(log, f.log):
		return f.lost(fmt.Sprintf("another file is in the place of %s-wal, which belongs to it", f.path))
	case log.Size() >= f.log.Size():
		return nil
	case log.Size() == 0 && !db.ModTime().Before(f.log.ModTime()):
		// Somebody else's checkpoint has moved everything into the database and
		// emptied the log, as sqlite3 and replication tools do.
		f.log = log
		return nil
	default:
		return f.lost(fmt.Sprintf("%s-wal, which belongs to it, was cut off", f.path))
	}
}

func (f *openFiles) lost(why string) error {
	return &Problem{What: ErrReplaced, Path: f.path, Cause: errors.New(why)}
}
