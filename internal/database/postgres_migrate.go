package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// migrationLock is locked during migrations: "CHOR", as in the header of SQLite's file.
const migrationLock = applicationID

// identify reads the database's version and refuses one that is not ours. An empty one has version 0.
func (p *postgres) identify(ctx context.Context, q rowQuerier) (int, error) {
	var ours, used bool
	err := q.QueryRowContext(ctx, `SELECT to_regclass('goose_db_version') IS NOT NULL AND to_regclass('threads') IS NOT NULL,
		EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> 'goose_db_version')`).Scan(&ours, &used)
	switch {
	case err != nil:
		return 0, err
	case !ours && used:
		return 0, &Problem{What: ErrForeign, Path: p.name}
	case !ours:
		return 0, nil
	}
	var version int
	err = q.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&version)
	if err == nil && version > p.schema.Version {
		err = &Problem{What: ErrNewer, Path: p.name, Cause: fmt.Errorf("its schema is %d, this chorus knows %d", version, p.schema.Version)}
	}
	return version, err
}

// InspectServer inspects a database on a server without creating or migrating
// anything. An empty database counts as not existing.
func InspectServer(ctx context.Context, address string, schema Schema) (Inspection, error) {
	i := Inspection{Known: schema.Version}
	err := onServer(ctx, address, schema, func(p *postgres, _ *pgx.ConnConfig) (err error) {
		if err := p.pool.QueryRowContext(ctx, `SELECT current_setting('server_version')`).Scan(&i.Server); err != nil {
			return err
		}
		i.Server = "PostgreSQL " + i.Server
		i.Version, err = p.identify(ctx, p.pool)
		i.Exists = i.Version > 0
		if err == nil {
			err = p.pool.QueryRowContext(ctx, `SELECT pg_database_size(current_database())`).Scan(&i.Size)
		}
		return err
	})
	return i, err
}

// MigrateServer is Migrate for a database on a server. It cannot revert
// migrations; restore a backup of the server for that.
func MigrateServer(ctx context.Context, address string, schema Schema, o MigrateOptions) (MigrateReport, error) {
	if o.Down > 0 {
		return MigrateReport{}, errors.New("steps back are made for SQLite only: restore the server's own backup instead")
	}
	var r MigrateReport
	err := onServer(ctx, address, schema, func(p *postgres, config *pgx.ConnConfig) error {
		have, err := p.identify(ctx, p.pool)
		if err != nil {
			return err
		}
		steps, err := Migrations(schema.Postgres)
		if err != nil {
			return err
		}
		r = MigrateReport{From: have, To: schema.Version}
		for _, m := range steps {
			if m.Version > have {
				r.Steps = append(r.Steps, m)
			}
		}
		if o.DryRun || len(r.Steps) == 0 {
			return nil
		}
		return migratePostgres(ctx, p, config, schema.Version)
	})
	return r, err
}

// onServer calls do with a connection to a server's database without opening the
// database. It does not wait for an unavailable server.
func onServer(ctx context.Context, address string, schema Schema, do func(*postgres, *pgx.ConnConfig) error) error {
	config, err := postgresConfig(address)
	if err != nil {
		return err
	}
	p := &postgres{name: RedactURL(address), schema: schema, pool: stdlib.OpenDB(*config)}
	return errors.Join(p.explain(do(p, config)), p.pool.Close())
}

// migratePostgres runs goose. Nodes that do so at once wait for each
// other; those that waited find nothing left to do.
func migratePostgres(ctx context.Context, p *postgres, config *pgx.ConnConfig, to int) (err error) {
	migrating := config.Copy()
	migrating.RuntimeParams = maps.Clone(config.RuntimeParams)
	migrating.RuntimeParams["statement_timeout"] = "0" // for the lock, and for large tables
	migrating.RuntimeParams["idle_in_transaction_session_timeout"] = "60000"
	db := stdlib.OpenDB(*migrating)
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, migrationLock); err != nil {
		return err
	}
	// The lock ends with the connection, even if the process dies here.
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, migrationLock)
	}()
	if version, err := p.identify(ctx, conn); err != nil || version >= to {
		return err
	}
	return upPostgres(ctx, db, p.schema.Postgres, to)
}

func upPostgres(ctx context.Context, db *sql.DB, files fs.FS, to int) error {
	provider, err := gooseProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return err
	}
	if _, err := provider.UpTo(ctx, int64(to)); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
