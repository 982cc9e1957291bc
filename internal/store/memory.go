package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"chorus/internal/database"
	"chorus/internal/memory"
)

var _ memory.Versions = (*DB)(nil)

// plannedFor is how long an announced write may take to be seen. After that it counts as failed.
const plannedFor = 24 * time.Hour

const memoryColumns = `path, n, digest, lines, who, thread_id, call, how, owner, at`

// MemoryVersions lists a file's versions without their texts, newest first.
func (db *DB) MemoryVersions(ctx context.Context, path string) ([]memory.Version, error) {
	return db.memoryVersions(ctx, `SELECT `+memoryColumns+`, '' FROM memory_versions WHERE path = ? ORDER BY n DESC`, path)
}

// MemoryVersion returns one version of a file; n 0 is the newest. It returns false if there is none.
func (db *DB) MemoryVersion(ctx context.Context, path string, n int64) (memory.Version, bool, error) {
	query, args := `SELECT `+memoryColumns+`, text FROM memory_versions WHERE path = ? ORDER BY n DESC LIMIT 1`, []any{path}
	if n != 0 {
		query, args = `SELECT `+memoryColumns+`, text FROM memory_versions WHERE path = ? AND n = ?`, []any{path, n}
	}
	found, err := db.memoryVersions(ctx, query, args...)
	if err != nil || len(found) == 0 {
		return memory.Version{}, false, err
	}
	return found[0], true, nil
}

// AddMemoryVersion stores a version under its number and removes its announcement. It
// returns false if there is already a version with this number.
func (db *DB) AddMemoryVersion(ctx context.Context, v memory.Version) (bool, error) {
	var added int64
	err := db.Write(ctx, func(tx database.Tx) (err error) {
		added, err = tx.Change(`INSERT INTO memory_versions (`+memoryColumns+`, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			v.Path, v.N, v.Digest, v.Lines.String(), v.Who, string(v.Thread), v.Call, v.How, v.Owner, database.Micros(v.At), v.Text)
		if err != nil || added == 0 {
			return err
		}
		return tx.Exec(`DELETE FROM memory_writes WHERE path = ? AND digest = ?`, v.Path, v.Digest)
	})
	if err != nil {
		return false, fmt.Errorf("keep version %d of %s: %w", v.N, v.Path, err)
	}
	return added == 1, nil
}

// PlanMemoryWrite announces that a text is about to be written.
func (db *DB) PlanMemoryWrite(ctx context.Context, v memory.Version) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		if err := tx.Exec(`DELETE FROM memory_writes WHERE at < ?`, database.Micros(v.At.Add(-plannedFor))); err != nil {
			return err
		}
		return tx.Exec(`INSERT INTO memory_writes (path, digest, lines, who, thread_id, call, how, owner, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (path, digest) DO UPDATE SET lines = excluded.lines, who = excluded.who, thread_id = excluded.thread_id, call = excluded.call, how = excluded.how,
			owner = excluded.owner, at = excluded.at`,
			v.Path, v.Digest, v.Lines.String(), v.Who, string(v.Thread), v.Call, v.How, v.Owner, database.Micros(v.At))
	})
	if err != nil {
		return fmt.Errorf("announce a write to %s: %w", v.Path, err)
	}
	return nil
}

// PlannedMemoryWrite returns what was announced about a text, or false if nothing was.
func (db *DB) PlannedMemoryWrite(ctx context.Context, path, digest string) (memory.Version, bool, error) {
	found, err := db.memoryVersions(ctx, `SELECT path, 0, digest, lines, who, thread_id, call, how, owner, at, '' FROM memory_writes WHERE path = ? AND digest = ?`, path, digest)
	if err != nil || len(found) == 0 {
		return memory.Version{}, false, err
	}
	return found[0], true, nil
}

// MemoryPaths returns the files that have versions.
func (db *DB) MemoryPaths(ctx context.Context) (out []string, err error) {
	if out, err = database.List[string](ctx, db.DB, `SELECT DISTINCT path FROM memory_versions ORDER BY path`); err != nil {
		return nil, fmt.Errorf("memory files: %w", err)
	}
	return out, nil
}

// ForgetMemory removes everything stored about a file.
func (db *DB) ForgetMemory(ctx context.Context, path string) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		if err := tx.Exec(`DELETE FROM memory_writes WHERE path = ?`, path); err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM memory_versions WHERE path = ?`, path)
	})
	if err != nil {
		return fmt.Errorf("forget %s: %w", path, err)
	}
	return nil
}

func (db *DB) memoryVersions(ctx context.Context, query string, args ...any) ([]memory.Version, error) {
	var out []memory.Version
	err := db.Query(ctx, query, args, database.Fill(&out, func(rows *sql.Rows, v *memory.Version) error {
		var lines string
		var at int64
		err := rows.Scan(&v.Path, &v.N, &v.Digest, &lines, &v.Who, &v.Thread, &v.Call, &v.How, &v.Owner, &at, &v.Text)
		if err != nil {
			return err
		}
		v.At = database.Time(at)
		if v.Lines, err = memory.ParseSpans(lines); err != nil {
			return fmt.Errorf("version %d of %s: %w", v.N, v.Path, err)
		}
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("memory versions: %w", err)
	}
	return out, nil
}
