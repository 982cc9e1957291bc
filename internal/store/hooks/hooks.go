// Package hooks stores hooks and their runs.
package hooks

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/database"
	"chorus/internal/hook"
	"chorus/internal/store"
)

// Store keeps hooks in the database.
type Store struct{ db *store.DB }

// New returns a Store on a database.
func New(db *store.DB) *Store { return &Store{db} }

const hookColumns = `id, name, project, owner, agent, dir, definition, enabled, approved, secret, COALESCE(due, 0), COALESCE(last_at, 0), passed, passed_why, created_at, updated_at`

// AddHook stores a new hook. It returns false, and writes nothing, if there is already one with this id or key.
func (d *Store) AddHook(ctx context.Context, h hook.Hook, key string) (bool, error) {
	owner, definition, err := hookJSON(h)
	if err != nil {
		return false, err
	}
	var madeBy any
	if key != "" {
		madeBy = key
	}
	var added int64
	err = d.db.Write(ctx, func(tx database.Tx) (err error) {
		added, err = tx.Change(`INSERT INTO hooks (id, name, project, owner, owner_key, agent, dir, kind, definition, enabled, approved, secret, made_by, due, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			h.ID, h.Name, h.Project, owner, h.Owner.String(), h.Agent, h.Dir, h.Trigger.Type, definition, h.Enabled, h.Approved, h.Secret, madeBy, database.NullMicros(h.Due), h.Created.UnixMicro(), h.Updated.UnixMicro())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("add hook %s: %w", h.ID, err)
	}
	return added == 1, nil
}

func hookJSON(h hook.Hook) (owner, definition string, err error) {
	if owner, err = database.AsJSON(h.Owner); err == nil {
		definition, err = database.AsJSON(h.Definition)
	}
	return owner, definition, err
}

// UpdateHook replaces the hook that was read. It returns false if
// somebody else has changed or removed it since.
func (d *Store) UpdateHook(ctx context.Context, h hook.Hook, read time.Time) (bool, error) {
	_, definition, err := hookJSON(h)
	if err != nil {
		return false, err
	}
	var changed int64
	err = d.db.Write(ctx, func(tx database.Tx) (err error) {
		changed, err = tx.Change(`UPDATE hooks SET name = ?, project = ?, agent = ?, dir = ?, kind = ?, definition = ?, enabled = ?, approved = ?, secret = ?, due = ?, updated_at = ? WHERE id = ? AND updated_at = ?`,
			h.Name, h.Project, h.Agent, h.Dir, h.Trigger.Type, definition, h.Enabled, h.Approved, h.Secret, database.NullMicros(h.Due), h.Updated.UnixMicro(), h.ID, read.UnixMicro())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("change hook %s: %w", h.ID, err)
	}
	return changed == 1, nil
}

// RemoveHook removes a hook and its runs, or returns false if there is none.
func (d *Store) RemoveHook(ctx context.Context, id string) (bool, error) {
	var removed int64
	err := d.db.Write(ctx, func(tx database.Tx) (err error) {
		if removed, err = tx.Change(`DELETE FROM hooks WHERE id = ?`, id); err != nil {
			return err
		}
		if err := tx.Exec(`DELETE FROM hook_deliveries WHERE hook_id = ?`, id); err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM hook_runs WHERE hook_id = ?`, id)
	})
	if err != nil {
		return false, fmt.Errorf("remove hook %s: %w", id, err)
	}
	return removed == 1, nil
}

// Hook finds a hook by its id, or fails with ErrUnknown.
func (d *Store) Hook(ctx context.Context, id string) (hook.Hook, error) {
	return d.oneHook(ctx, id, `SELECT `+hookColumns+` FROM hooks WHERE id = ?`, id)
}

// HookMadeBy finds the hook that was created with an idempotency key, or fails with ErrUnknown.
func (d *Store) HookMadeBy(ctx context.Context, key string) (hook.Hook, error) {
	return d.oneHook(ctx, "of a key", `SELECT `+hookColumns+` FROM hooks WHERE made_by = ?`, key)
}

func (d *Store) oneHook(ctx context.Context, name, query string, args ...any) (hook.Hook, error) {
	found, err := d.hooks(ctx, query, args...)
	return store.One(found, err, "hook "+name)
}

// Hooks lists an owner's hooks, or all if owner is empty, newest first.
func (d *Store) Hooks(ctx context.Context, owner string) ([]hook.Hook, error) {
	if owner == "" {
		return d.hooks(ctx, `SELECT `+hookColumns+` FROM hooks ORDER BY created_at DESC, id`)
	}
	return d.hooks(ctx, `SELECT `+hookColumns+` FROM hooks WHERE owner_key = ? ORDER BY created_at DESC, id`, owner)
}

// EventHooks returns the hooks that events trigger. An unreadable hook is included, but disabled.
func (d *Store) EventHooks(ctx context.Context) ([]hook.Hook, error) {
	return d.hooks(ctx, `SELECT `+hookColumns+` FROM hooks WHERE kind = ? AND enabled = 1 ORDER BY created_at, id`, hook.OnEvent)
}

// DueHooks returns the hooks whose time has come, earliest first. An unreadable hook is included, but disabled.
func (d *Store) DueHooks(ctx context.Context, now time.Time, limit int) ([]hook.Hook, error) {
	return d.hooks(ctx, `SELECT `+hookColumns+` FROM hooks WHERE due IS NOT NULL AND enabled = 1 AND due <= ? ORDER BY due, id LIMIT ?+0`, now.UnixMicro(), limit)
}

// NextHook returns when the next hook is due; zero if none is.
func (d *Store) NextHook(ctx context.Context) (time.Time, error) {
	n, err := d.db.Count(ctx, `SELECT COALESCE(min(due), 0) FROM hooks WHERE due IS NOT NULL AND enabled = 1`)
	if err != nil || n == 0 {
		return time.Time{}, err
	}
	return database.Instant(n), nil
}

func (d *Store) hooks(ctx context.Context, query string, args ...any) ([]hook.Hook, error) {
	var out []hook.Hook
	err := d.db.Query(ctx, query, args, database.Fill(&out, func(rows *sql.Rows, h *hook.Hook) error {
		var owner, definition string
		var due, last, created, updated int64
		if err := rows.Scan(&h.ID, &h.Name, &h.Project, &owner, &h.Agent, &h.Dir, &definition, &h.Enabled, &h.Approved, &h.Secret, &due, &last, &h.Passed, &h.PassedWhy, &created, &updated); err != nil {
			return err
		}
		if err := errors.Join(json.Unmarshal([]byte(owner), &h.Owner), json.Unmarshal([]byte(definition), &h.Definition)); err != nil {
			// An invalid row must not block the others.
			h.Enabled, h.PassedWhy = false, "the hook cannot be read: "+err.Error()
		}
		h.Due, h.LastAt, h.Created, h.Updated = database.Instant(due), database.Instant(last), database.Instant(created), database.Instant(updated)
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	return out, nil
}
