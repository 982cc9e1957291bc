package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"chorus/internal/database"
	"chorus/internal/journal"
)

// Remember stores a value under a kind and a key, replacing any earlier one.
// The keys of one kind belong to one part of the program.
func (db *DB) Remember(ctx context.Context, kind, key string, value []byte) error {
	err := errors.New("kind and key are needed")
	if kind != "" && key != "" {
		err = db.Write(ctx, func(tx database.Tx) error {
			return tx.Exec(`INSERT INTO memos (kind, key, value, at) VALUES (?, ?, ?, ?)
				ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, at = excluded.at`, kind, key, string(value), database.Micros(db.Now()))
		})
	}
	if err != nil {
		return fmt.Errorf("remember %s %s: %w", kind, key, err)
	}
	return nil
}

// RememberOnce stores a value unless there is one, and reports whether there was
// none. It removes memos of the kind that are older than keep.
func (db *DB) RememberOnce(ctx context.Context, kind, key string, value []byte, keep time.Duration) (first bool, err error) {
	err = db.Write(ctx, func(tx database.Tx) error {
		now := db.Now()
		if err := tx.Exec(`DELETE FROM memos WHERE kind = ? AND at < ?`, kind, database.Micros(now.Add(-keep))); err != nil {
			return err
		}
		n, err := tx.Change(`INSERT INTO memos (kind, key, value, at) VALUES (?, ?, ?, ?) ON CONFLICT (kind, key) DO NOTHING`, kind, key, string(value), database.Micros(now))
		first = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("remember %s %s: %w", kind, key, err)
	}
	return first, nil
}

// Recall returns what was remembered, or nil.
func (db *DB) Recall(ctx context.Context, kind, key string) ([]byte, error) {
	var value []byte
	err := db.Query(ctx, `SELECT value FROM memos WHERE kind = ? AND key = ?`, []any{kind, key}, func(rows *sql.Rows) error { return rows.Scan(&value) })
	if err != nil {
		return nil, fmt.Errorf("recall %s %s: %w", kind, key, err)
	}
	return value, nil
}

// Memos returns everything of a kind, oldest first.
func (db *DB) Memos(ctx context.Context, kind string) ([]journal.Memo, error) {
	var out []journal.Memo
	err := db.Query(ctx, `SELECT key, value FROM memos WHERE kind = ? ORDER BY at, key`, []any{kind}, database.Fill(&out, func(rows *sql.Rows, m *journal.Memo) error {
		return rows.Scan(&m.Key, &m.Value)
	}))
	if err != nil {
		return nil, fmt.Errorf("recall all of %s: %w", kind, err)
	}
	return out, nil
}

// ForgetOlder removes the memos of a kind that are older than than.
func (db *DB) ForgetOlder(ctx context.Context, kind string, than time.Duration) error {
	err := db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`DELETE FROM memos WHERE kind = ? AND at < ?`, kind, database.Micros(db.Now().Add(-than)))
	})
	if err != nil {
		return fmt.Errorf("forget old memos of %s: %w", kind, err)
	}
	return nil
}

// Forget removes a memo. It is no error if there is none.
func (db *DB) Forget(ctx context.Context, kind, key string) error {
	err := db.Write(ctx, func(tx database.Tx) error { return tx.Exec(`DELETE FROM memos WHERE kind = ? AND key = ?`, kind, key) })
	if err != nil {
		return fmt.Errorf("forget %s %s: %w", kind, key, err)
	}
	return nil
}
