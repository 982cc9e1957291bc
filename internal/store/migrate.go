package store

import (
	"context"
	"database/sql"
	"embed"
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

//go:embed migrations/sqlite/*.sql
var migrationFiles embed.FS

// schemaVersion is the number of the newest migration. From 26 on each stands in both folders,
// migrations/sqlite and migrations/postgres, with the same number. Every one of SQLite's writes
// its number into user_version, in its own transaction, so that a warm start
// compares two integers and never wakes the migration machinery.
const schemaVersion = 35

// auditChained is the migration from which on the audit log is a chain.
const auditChained = 2

// auditChains is the migration from which on each thread has a chain of its own.
const auditChains = 34

// daysSummed is the migration from which on the ledger is summed by day.
const daysSummed = 14

// MigrateOptions say what Migrate shall do; the zero value brings the file up to date.
type MigrateOptions struct {
	DryRun bool // only report
	Down   int  // take back this many migrations instead
}

// Migration is one step of a report.
type Migration struct {
	Version int
	Name    string
}

// MigrateReport is what Migrate did, or with DryRun would do.
type MigrateReport struct {
	From, To int
	Steps    []Migration // in the order they run
	Down     bool
	Copy     string // where the database stands as it was before steps back
}

// Migrate brings the file at path up to date, or takes migrations back. With
// DryRun it writes nothing, not even a file that is not there yet.
func Migrate(ctx context.Context, path string, o MigrateOptions) (MigrateReport, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return MigrateReport{}, fmt.Errorf("migrate: %w", err)
	}
	have, err := currentVersion(ctx, path)
	if err != nil {
		return MigrateReport{}, err
	}
	report, err := plan(have, o)
	if err != nil || o.DryRun || len(report.Steps) == 0 {
		return report, err
	}
	if err := ensureFile(path, ""); err != nil {
		return MigrateReport{}, err
	}
	if report.Down {
		if report.Copy, err = keepCopy(ctx, path, have); err != nil {
			return MigrateReport{}, fmt.Errorf("migrate: keep a copy first: %w", err)
		}
	}
	if err := migrateTo(ctx, path, report.To); err != nil {
		return MigrateReport{}, explain(path, err)
	}
	if report.Down { // what the guard names may be among what was dropped
		if err := os.Remove(guardPath(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return MigrateReport{}, &Problem{What: ErrDenied, Path: guardPath(path), Cause: err}
		}
	}
	return report, nil
}

// keepCopy writes the whole database beside itself: steps back drop tables.
func keepCopy(ctx context.Context, path string, version int) (string, error) {
	db, err := sql.Open(driverName, dsn(path, []string{busyPragma}))
	if err != nil {
		return "", explain(path, err)
	}
	defer db.Close()
	name := fmt.Sprintf("%s.v%d-%s", path, version, time.Now().UTC().Format("20060102T150405.000"))
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, name); err != nil {
		return "", explain(path, err)
	}
	return name, nil
}

// plan lists the steps from version have to where o wants to go.
func plan(have int, o MigrateOptions) (MigrateReport, error) {
	steps, err := migrations()
	if err != nil {
		return MigrateReport{}, err
	}
	r := MigrateReport{From: have, To: schemaVersion}
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

// migrations lists SQLite's embedded files in order.
func migrations() ([]Migration, error) { return migrationsIn(migrationFiles, "migrations/sqlite") }

func migrationsIn(files embed.FS, folder string) ([]Migration, error) {
	entries, err := files.ReadDir(folder)
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
func currentVersion(ctx context.Context, path string) (int, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, &Problem{What: ErrDenied, Path: path, Cause: err}
	}
	db, err := sql.Open(driverName, dsn(path, readerPragmas))
	if err != nil {
		return 0, explain(path, err)
	}
	defer db.Close()
	return identify(ctx, path, db)
}

type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// identify reads the file's version and refuses files that are not ours.
func identify(ctx context.Context, path string, q rowQuerier) (int, error) {
	var version, app int
	var used bool
	if err := q.QueryRowContext(ctx, queryIdentity).Scan(&version, &app, &used); err != nil {
		return 0, explain(path, err)
	}
	switch {
	case app != applicationID && (used || app != 0):
		return 0, &Problem{What: ErrForeign, Path: path}
	case version > schemaVersion:
		return 0, &Problem{What: ErrNewer, Path: path,
			Cause: fmt.Errorf("its schema is %d, this chorus knows %d", version, schemaVersion)}
	}
	return version, nil
}

// migrateTo runs goose. Two processes may meet here on a new home: goose's
// transactions begin as writers and wait for each other, the loser finds the
// tables there, and its next try finds nothing left to do.
func migrateTo(ctx context.Context, path string, to int) error {
	db, err := sql.Open(driverName, dsn(path, []string{busyPragma, "foreign_keys(1)"}, "_txlock=immediate"))
	if err != nil {
		return err
	}
	defer db.Close()
	// This happens once in the life of a home; the process need not carry from
	// then on what it took.
	defer debug.FreeOSMemory()
	files, err := fs.Sub(migrationFiles, "migrations/sqlite")
	if err != nil {
		return err
	}
	const tries = 5 // each failure means that another process has moved one step on
	for try := 1; ; try++ {
		err := runGoose(ctx, db, files, to)
		if err == nil && to >= auditChained {
			err = sealAfterMigration(ctx, db, micros(time.Now()), to)
		}
		if err == nil && to >= daysSummed {
			err = fillSpentDays(ctx, db)
		}
		if err == nil {
			return nil
		}
		if now, verr := identify(ctx, path, db); verr == nil && now == to {
			return nil
		}
		if try == tries || ctx.Err() != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
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
