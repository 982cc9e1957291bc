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

// schemaVersion is the number of the newest migration. From 26 on, each is in both folders,
// migrations/sqlite and migrations/postgres, with the same number.
const schemaVersion = 37

// wholeSchema is what SQLite's migrations come to. After a new migration: go test ./internal/store -run TestWholeSchema -update
//
//go:embed migrations/sqlite.sql
var wholeSchema string

// daysSummed is the migration that introduced the ledger's sums by day.
const daysSummed = 14

// Schema describes what the store keeps in a database.
func Schema() database.Schema {
	return database.Schema{Version: schemaVersion, SQLite: migrationsFor("sqlite"), Postgres: migrationsFor("postgres"), Whole: wholeSchema, Finish: finishMigration, Unfinished: queryFilled,
		Warm: append(audit.Prepare(), numberKnown, insertEvent, reserve, settle, updateThread), Gathered: gathered(), Memory: func() database.Memory { return newRemembered() }}
}

// migrationsFor returns the migrations of one database.
func migrationsFor(name string) fs.FS {
	files, err := fs.Sub(migrationFiles, "migrations/"+name)
	if err != nil {
		panic(err) // cannot happen: the name is a valid path
	}
	return files
}

// finishMigration does what SQL statements alone cannot.
func finishMigration(ctx context.Context, db *sql.DB, to int) error {
	if err := audit.FinishMigration(ctx, db, time.Now(), to); err != nil || to < daysSummed {
		return err
	}
	return fillSpentDays(ctx, db)
}

// Migrate brings the file at path up to date, or reverts migrations. With
// DryRun it writes nothing and does not create the file.
func Migrate(ctx context.Context, path string, o database.MigrateOptions) (database.MigrateReport, error) {
	return database.Migrate(ctx, path, Schema(), o)
}

// MigrateServer is Migrate for a database on a server. It cannot revert
// migrations; restore a backup of the server for that.
func MigrateServer(ctx context.Context, address string, o database.MigrateOptions) (database.MigrateReport, error) {
	return database.MigrateServer(ctx, address, Schema(), o)
}

// InspectServer inspects a database on a server without creating or migrating
// anything. An empty database counts as not existing.
func InspectServer(ctx context.Context, address string) (database.Inspection, error) {
	return database.InspectServer(ctx, address, Schema())
}
