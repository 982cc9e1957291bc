package database

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pressly/goose/v3"
)

// gooseProvider returns goose with the migrations of a folder. goose's own reader searches
// for the end of each statement and allocates a 4 MB buffer each time. Both databases
// accept a whole text, so a file only needs to be cut in two.
func gooseProvider(dialect goose.Dialect, db *sql.DB, files fs.FS) (*goose.Provider, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	var steps []*goose.Migration
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		up, down, err := cutMigration(string(text))
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		steps = append(steps, goose.NewGoMigration(version, execute(up), execute(down)))
	}
	return goose.NewProvider(dialect, db, nil, goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(steps...))
}

// cutMigration splits a file at goose's marks, which are comments to a database.
func cutMigration(text string) (up, down string, err error) {
	const begin, back = "-- +goose Up\n", "-- +goose Down\n"
	before, rest, ok := strings.Cut(text, begin)
	if !ok || strings.TrimSpace(before) != "" {
		return "", "", fmt.Errorf("it does not begin with %q", begin)
	}
	if up, down, ok = strings.Cut(rest, back); !ok {
		return "", "", fmt.Errorf("it has no %q", back)
	}
	for line := range strings.Lines(rest) {
		// Reject marks that only goose's own reader would understand.
		if mark, ok := strings.CutPrefix(line, "-- +goose "); ok && mark != "Down\n" && !strings.HasPrefix(mark, "Statement") {
			return "", "", fmt.Errorf("the mark %q is not understood here", strings.TrimSpace(line))
		}
	}
	if strings.Contains(down, begin) || strings.Contains(down, back) {
		return "", "", fmt.Errorf("it goes up or down twice")
	}
	return up, down, nil
}

// execute returns a text as a goose step, to run in its transaction.
func execute(text string) *goose.GoFunc {
	return &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}}
}
