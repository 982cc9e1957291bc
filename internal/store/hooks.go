package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"chorus/internal/hook"
)

const hookColumns = `id, name, project, owner, agent, dir, definition, enabled, approved, secret, COALESCE(due, 0), COALESCE(last_at, 0), passed, passed_why, created_at, updated_at`

// AddHook keeps a new hook; false: there is one with this id, or of this key, already, and nothing was written.
func (db *DB) AddHook(ctx context.Context, h hook.Hook, key string) (bool, error) {
	owner, definition, err := hookJSON(h)
	if err != nil {
		return false, err
	}
	var madeBy any
	if key != "" {
		madeBy = key
	}
	var added int64
	err = db.write(ctx, func(tx *transaction) (err error) {
		added, err = tx.change(`INSERT INTO hooks (id, name, project, owner, owner_key, agent, dir, kind, definition, enabled, approved, secret, made_by, due, created_at, updated_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			h.ID, h.Name, h.Project, owner, h.Owner.String(), h.Agent, h.Dir, h.Trigger.Type, definition, h.Enabled, h.Approved, h.Secret, madeBy, nullMicros(h.Due), micros(h.Created), micros(h.Updated))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("add hook %s: %w", h.ID, err)
	}
	return added == 1, nil
}

func hookJSON(h hook.Hook) (owner, definition string, err error) {
	if owner, err = asJSON(h.Owner); err == nil {
		definition, err = asJSON(h.Definition)
	}
	return owner, definition, err
}

// UpdateHook writes a changed hook over the one that was read; false: somebody else has changed it since, or it is gone.
func (db *DB) UpdateHook(ctx context.Context, h hook.Hook, read time.Time) (bool, error) {
	_, definition, err := hookJSON(h)
	if err != nil {
		return false, err
	}
	var changed int64
	err = db.write(ctx, func(tx *transaction) (err error) {
		changed, err = tx.change(`UPDATE hooks SET name = ?, project = ?, agent = ?, dir = ?, kind = ?, definition = ?, enabled = ?, approved = ?, secret = ?, due = ?, updated_at = ? WHERE id = ? AND updated_at = ?`,
			h.Name, h.Project, h.Agent, h.Dir, h.Trigger.Type, definition, h.Enabled, h.Approved, h.Secret, nullMicros(h.Due), micros(h.Updated), h.ID, micros(read))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("change hook %s: %w", h.ID, err)
	}
	return changed == 1, nil
}

// RemoveHook removes a hook with its runs; false: there was none.
func (db *DB) RemoveHook(ctx context.Context, id string) (bool, error) {
	var removed int64
	err := db.write(ctx, func(tx *transaction) (err error) {
		if removed, err = tx.change(`DELETE FROM hooks WHERE id = ?`, id); err != nil {
			return err
		}
		if err := tx.exec(`DELETE FROM hook_deliveries WHERE hook_id = ?`, id); err != nil {
			return err
		}
		return tx.exec(`DELETE FROM hook_runs WHERE hook_id = ?`, id)
	})
	if err != nil {
		return false, fmt.Errorf("remove hook %s: %w", id, err)
	}
	return removed == 1, nil
}

// Hook finds one by its id; ErrUnknown if there is none.
func (db *DB) Hook(ctx context.Context, id string) (hook.Hook, error) {
	return db.oneHook(ctx, id, `SELECT `+hookColumns+` FROM hooks WHERE id = ?`, id)
}

// HookMadeBy finds the one that was made with an idempotency key; ErrUnknown if there is none.
func (db *DB) HookMadeBy(ctx context.Context, key string) (hook.Hook, error) {
	return db.oneHook(ctx, "of a key", `SELECT `+hookColumns+` FROM hooks WHERE made_by = ?`, key)
}

func (db *DB) oneHook(ctx context.Context, name, query string, args ...any) (hook.Hook, error) {
	found, err := db.hooks(ctx, query, args...)
	return one(found, err, "hook "+name)
}

// Hooks lists those of an owner, or all where owner is empty, the newest first.
func (db *DB) Hooks(ctx context.Context, owner string) ([]hook.Hook, error) {
	if owner == "" {
		return db.hooks(ctx, `SELECT `+hookColumns+` FROM hooks ORDER BY created_at DESC, id`)
	}
	return db.hooks(ctx, `SELECT `+hookColumns+` FROM hooks WHERE owner_key = ? ORDER BY created_at DESC, id`, owner)
}

// EventHooks are those that events trigger. One that cannot be read is among them, and is not enabled.
func (db *DB) EventHooks(ctx context.Context) ([]hook.Hook, error) {
	return db.hooks(ctx, `SELECT `+hookColumns+` FROM hooks WHERE kind = ? AND enabled = 1 ORDER BY created_at, id`, hook.OnEvent)
}

// DueHooks are those whose time has come, the earliest first. One that cannot be read is among them, and is not enabled.
func (db *DB) DueHooks(ctx context.Context, now time.Time, limit int) ([]hook.Hook, error) {
	return db.hooks(ctx, `SELECT `+hookColumns+` FROM hooks WHERE due IS NOT NULL AND enabled = 1 AND due <= ? ORDER BY due, id LIMIT ?+0`, micros(now), limit)
}

// NextHook is when the next one is due; zero: none is.
func (db *DB) NextHook(ctx context.Context) (time.Time, error) {
	n, err := db.count(ctx, `SELECT COALESCE(min(due), 0) FROM hooks WHERE due IS NOT NULL AND enabled = 1`)
	if err != nil || n == 0 {
		return time.Time{}, err
	}
	return instant(n), nil
}

func (db *DB) hooks(ctx context.Context, query string, args ...any) ([]hook.Hook, error) {
	var out []hook.Hook
	err := db.query(ctx, query, args, func(rows *sql.Rows) error {
		var h hook.Hook
		var owner, definition string
		var due, last, created, updated int64
		if err := rows.Scan(&h.ID, &h.Name, &h.Project, &owner, &h.Agent, &h.Dir, &definition, &h.Enabled, &h.Approved, &h.Secret, &due, &last, &h.Passed, &h.PassedWhy, &created, &updated); err != nil {
			return err
		}
		if err := errors.Join(json.Unmarshal([]byte(owner), &h.Owner), json.Unmarshal([]byte(definition), &h.Definition)); err != nil {
			// One that somebody wrote into the table holds up no others.
			h.Enabled, h.PassedWhy = false, "the hook cannot be read: "+err.Error()
		}
		h.Due, h.LastAt, h.Created, h.Updated = orZero(due), orZero(last), instant(created), instant(updated)
		out = append(out, h)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	return out, nil
}

// orZero is what was kept, where 0 is no time.
func orZero(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return instant(us)
}
