package store

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"
	"time"

	"chorus/internal/database"
	"chorus/internal/store/audit"
)

//go:embed migrations
var migrationFiles embed.FS

// schemaVersion is the number of the newest migration. From 26 on each stands in both folders,
// migrations/sqlite and migrations/postgres, with the same number.
const schemaVersion = 37

// wholeSchema is what SQLite's migrations come to. After a new migration: go test ./internal/store -run TestWholeSchema -update
//
//go:embed migrations/sqlite.sql
var wholeSchema string

// daysSummed is the migration from which on the ledger is summed by day.
const daysSummed = 14

// Schema is what the store keeps in a database.
func Schema() database.Schema {
	return database.Schema{Version: schemaVersion, SQLite: migrationsFor("sqlite"), Postgres: migrationsFor("postgres"), Whole: wholeSchema, Finish: finishMigration, Unfinished: queryFilled,
		Warm: append(audit.Prepare(), numberKnown, insertEvent, reserve, settle, updateThread), Gathered: gathered(), Memory: func() database.Memory { return newRemembered() }}
}

// migrationsFor are those of one database.
func migrationsFor(name string) fs.FS {
	files, err := fs.Sub(migrationFiles, "migrations/"+name)
	if err != nil {
		panic(err) // the name is no path
	}
	return files
}

// finishMigration does what statements alone cannot.
func finishMigration(ctx context.Context, db *sql.DB, to int) error {
	if err := audit.FinishMigration(ctx, db, time.Now(), to); err != nil || to < daysSummed {
		return err
	}
	return fillSpentDays(ctx, db)
}

// Migrate brings the file at path up to date, or takes migrations back. With
// DryRun it writes nothing, not even a file that is not there yet.
func Migrate(ctx context.Context, path string, o database.MigrateOptions) (database.MigrateReport, error) {
	return database.Migrate(ctx, path, Schema(), o)
}

// MigrateServer is Migrate for a database on a server. Steps back are the server's business: a backup of it has the older state.
func MigrateServer(ctx context.Context, address string, o database.MigrateOptions) (database.MigrateReport, error) {
	return database.MigrateServer(ctx, address, Schema(), o)
}

// InspectServer looks at a database on a server and makes and migrates nothing. One that is empty does not exist.
func InspectServer(ctx context.Context, address string) (database.Inspection, error) {
	return database.InspectServer(ctx, address, Schema())
}
