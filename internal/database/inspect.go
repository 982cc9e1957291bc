package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Inspection is what is known of a database file without opening it as a store.
type Inspection struct {
	Exists  bool
	Size    int64 // including SQLite's files next to it
	Mode    fs.FileMode
	Version int // of its schema
	Known   int // the newest version that this program knows
	Journal string
	Server  string // the server, if the database is on one; "" for a file
}

// Newer reports whether a newer program has migrated the file.
func (i Inspection) Newer() bool { return i.Version > i.Known }

// Older reports whether the next start will migrate the file.
func (i Inspection) Older() bool { return i.Exists && i.Version < i.Known }

// inspectPragmas wait at most a second. An inspection has to be
// quick, and then reports that the file is locked.
var inspectPragmas = []string{"busy_timeout(1000)", "query_only(1)", "temp_store(2)"}

// Inspect inspects the file without creating or migrating anything. A missing file is no error,
// unless something shows that there was one. What was found out before an error is in the
// inspection. known is the newest schema that this program knows.
func Inspect(ctx context.Context, path string, known int, left func() []string) (Inspection, error) {
	i := Inspection{Known: known}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return i, wasThere(path, left)
	case err != nil:
		return i, &Problem{What: ErrDenied, Path: path, Cause: err}
	case !info.Mode().IsRegular():
		return i, &Problem{What: ErrForeign, Path: path, Cause: errors.New("it is not a regular file")}
	}
	if info.Size() == 0 {
		if err := wasThere(path, left); err != nil {
			return i, err
		}
	}
	i.Exists, i.Mode, i.Size = true, info.Mode().Perm(), info.Size()
	if log, err := os.Stat(path + "-wal"); err == nil {
		i.Size += log.Size()
	}
	db, err := sql.Open(driverName, dsn(path, inspectPragmas))
	if err != nil {
		return i, Explain(path, err)
	}
	defer db.Close()
	var app int
	var used bool
	if err := db.QueryRowContext(ctx, queryIdentity).Scan(&i.Version, &app, &used); err != nil {
		return i, Explain(path, err)
	}
	if app != applicationID && (used || app != 0) {
		return i, &Problem{What: ErrForeign, Path: path}
	}
	if err := db.QueryRowContext(ctx, queryJournalMode).Scan(&i.Journal); err != nil {
		return i, Explain(path, err)
	}
	if i.Newer() {
		return i, &Problem{What: ErrNewer, Path: path, Cause: fmt.Errorf("its schema is %d, this chorus knows %d", i.Version, i.Known)}
	}
	return i, nil
}

// CheckFile reads the whole file, of any version, and reports damage. The time grows with the
// size of the file; if the context ends first, its error is returned.
func CheckFile(ctx context.Context, path string) error {
	db, err := sql.Open(driverName, dsn(path, inspectPragmas))
	if err != nil {
		return Explain(path, err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(ctx, quickCheck).Scan(&verdict); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return Explain(path, err)
	}
	if verdict != "ok" {
		return &Problem{What: ErrDamaged, Path: path, Cause: errors.New(verdict)}
	}
	return nil
}
