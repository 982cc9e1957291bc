package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
)

// Schema describes the contents of a database and its migrations. Migrations are files named
// NUMBER_NAME.sql and have, from some number on, the same numbers for both databases. Each of
// SQLite's writes its number into user_version in its own transaction, so that a normal start
// compares two integers and never starts the migration machinery.
type Schema struct {
	Version          int // the number of the newest migration
	SQLite, Postgres fs.FS
	// Whole is the result of all SQLite migrations, which creates a new
	// file in one step; "" runs them one after another.
	Whole string
	// Finish does, after SQLite's migrations, what they cannot; nil if
	// there is nothing. It may be called again.
	Finish func(ctx context.Context, db *sql.DB, to int) error
	// Unfinished is a query that finds a row until Finish has completed; "" if it always has.
	Unfinished string
	// Warm are the statements that are prepared while the program starts.
	Warm []string
	// Gathered are the statements that TryTogether may send with those of others. Rows are sent in this order.
	Gathered []Gathered
	// Memory creates what is remembered between the transactions of a connection; nil if nothing is.
	Memory func() Memory
}

func (s Schema) memory() Memory {
	if s.Memory == nil {
		return noMemory{}
	}
	return s.Memory()
}

// MigrateOptions say what Migrate should do. The zero value brings the file up to date.
type MigrateOptions struct {
	DryRun bool // only report
	Down   int  // revert this many migrations instead
}

// Migration is one step of a report.
type Migration struct {
	Version int
	Name    string
}

// MigrateReport says what Migrate did or, with DryRun, would do.
type MigrateReport struct {
	From, To int
	Steps    []Migration // in the order in which they run
	Down     bool
	Copy     string // a copy of the database from before migrations were reverted
}

// Migrate brings the file at path up to date, or reverts migrations. With
// DryRun it writes nothing and does not create the file.
func Migrate(ctx context.Context, path string, schema Schema, o MigrateOptions) (MigrateReport, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return MigrateReport{}, fmt.Errorf("migrate: %w", err)
	}
	have, err := currentVersion(ctx, path, schema.Version)
	if err != nil {
		return MigrateReport{}, err
	}
	report, err := schema.plan(have, o)
	if err != nil || o.DryRun || len(report.Steps) == 0 {
		return report, err
	}
	if err := ensureFile(path, nil); err != nil {
		return MigrateReport{}, err
	}
	if report.Down {
		if report.Copy, err = keepCopy(ctx, path, have); err != nil {
			return MigrateReport{}, fmt.Errorf("migrate: keep a copy first: %w", err)
		}
	}
	if err := MigrateTo(ctx, path, schema, report.To); err != nil {
		return MigrateReport{}, Explain(path, err)
	}
	if report.Down { // what the guard names may have been dropped
		if err := os.Remove(GuardPath(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return MigrateReport{}, &Problem{What: ErrDenied, Path: GuardPath(path), Cause: err}
		}
	}
	return report, nil
}

// keepCopy writes a copy of the whole database next to it, because reverting migrations drops tables.
func keepCopy(ctx context.Context, path string, version int) (string, error) {
	db, err := sql.Open(driverName, dsn(path, []string{busyPragma}))
	if err != nil {
		return "", Explain(path, err)
	}
	defer db.Close()
	name := fmt.Sprintf("%s.v%d-%s", path, version, time.Now().UTC().Format("20060102T150405.000"))
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, name); err != nil {
		return "", Explain(path, err)
	}
	return name, nil
}

// plan lists the steps from version have to the version that o asks for.
func (s Schema) plan(have int, o MigrateOptions) (MigrateReport, error) {
	steps, err := Migrations(s.SQLite)
	if err != nil {
		return MigrateReport{}, err
	}
	r := MigrateReport{From: have, To: s.Version}
	if o.Down > 0 {
		r.Down, r.To = true, max(0, have-o.Down)
		slices.Reverse(steps)
	}
	for _, m := range steps {
		if r.Down && m.Version <= have && m.Version > r.To || !r.Down && m.Version > have {
			r.Steps = append(r.Steps, m)
		}
	}
	return r, nil
}

// Migrations lists the migration files in order.
func Migrations(files fs.FS) ([]Migration, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	var out []Migration
	for _, e := range entries {
		number, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		v, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", e.Name(), err)
		}
		out = append(out, Migration{Version: v, Name: name})
	}
	return out, nil
}

// currentVersion reads the version of the file at path; a missing file has 0.
func currentVersion(ctx context.Context, path string, known int) (int, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, &Problem{What: ErrDenied, Path: path, Cause: err}
	}
	db, err := sql.Open(driverName, dsn(path, readerPragmas))
	if err != nil {
		return 0, Explain(path, err)
	}
	defer db.Close()
	return identify(ctx, path, db, known)
}

type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// identify reads the file's version and refuses files that are not ours, or newer than known.
func identify(ctx context.Context, path string, q rowQuerier, known int) (int, error) {
	var version, app int
	var used bool
	if err := q.QueryRowContext(ctx, queryIdentity).Scan(&version, &app, &used); err != nil {
		return 0, Explain(path, err)
	}
	switch {
	case app != applicationID && (used || app != 0):
		return 0, &Problem{What: ErrForeign, Path: path}
	case version > known:
		return 0, &Problem{What: ErrNewer, Path: path,
			Cause: fmt.Errorf("its schema is %d, this chorus knows %d", version, known)}
	}
	return version, nil
}

// MigrateTo runs goose. Two processes may do so at once on a new home: goose's
// transactions begin as writers and wait for each other. The loser finds that the
// tables exist, and its next try finds nothing left to do.
func MigrateTo(ctx context.Context, path string, schema Schema, to int) error {
	db, err := sql.Open(driverName, dsn(path, []string{busyPragma, "foreign_keys(1)"}, "_txlock=immediate"))
	if err != nil {
		return err
	}
	defer db.Close()
	// This happens once in the life of a home, so the process should not keep the memory it took.
	defer debug.FreeOSMemory()
	const tries = 5 // each failure means that another process has moved one step on
	for try := 1; ; try++ {
		err := migrateOnce(ctx, db, schema, to)
		if err == nil && schema.Finish != nil {
			err = schema.Finish(ctx, db, to)
		}
		if err == nil {
			return nil
		}
		if now, verr := identify(ctx, path, db, schema.Version); verr == nil && now == to {
			return nil
		}
		if try == tries || ctx.Err() != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
}

func migrateOnce(ctx context.Context, db *sql.DB, schema Schema, to int) error {
	if schema.Whole != "" && to == schema.Version {
		if made, err := makeWhole(ctx, db, schema.Whole); made || err != nil {
			return err
		}
	}
	return runGoose(ctx, db, schema.SQLite, to)
}

// makeWhole fills an empty file with the whole schema.
func makeWhole(ctx context.Context, db *sql.DB, whole string) (made bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	var used bool
	if err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sqlite_schema)`).Scan(&used); err != nil || used {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, whole); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

func runGoose(ctx context.Context, db *sql.DB, files fs.FS, to int) error {
	p, err := gooseProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if have > int64(to) {
		_, err = p.DownTo(ctx, int64(to))
	} else {
		_, err = p.UpTo(ctx, int64(to))
	}
	return err
}
