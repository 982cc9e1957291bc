// Package processes stores background processes and what their hooks did.
package processes

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/background"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store"
)

// Store keeps processes in the database.
type Store struct{ db *store.DB }

// New returns a Store on a database.
func New(db *store.DB) *Store { return &Store{db} }

const processColumns = `id, thread_id, call_key, owner, command, dir, state, exit, why, read_to, hooks, timeout, version, started_at, COALESCE(ended_at, 0)`

// AddProcess stores a new process. It returns false, and writes nothing, if there is already one with this id.
func (d *Store) AddProcess(ctx context.Context, p background.Process) (bool, error) {
	owner, err := database.AsJSON(p.Owner)
	if err != nil {
		return false, err
	}
	hooks, err := database.AsJSON(p.Hooks)
	if err != nil {
		return false, err
	}
	var added int64
	err = d.db.Write(ctx, func(tx database.Tx) (err error) {
		added, err = tx.Change(`INSERT INTO processes (id, thread_id, call_key, owner, owner_key, command, dir, state, exit, why, read_to, hooks, timeout, version, started_at, ended_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			p.ID, string(p.Thread), p.Call, owner, p.Owner.Person().String(), p.Command, p.Dir, string(p.State), p.Exit, p.Why, p.ReadTo, hooks, p.Timeout.Microseconds(), p.Version, p.Started.UnixMicro(), database.NullMicros(p.Ended))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("add process %s: %w", p.ID, err)
	}
	return added == 1, nil
}

// MoveProcess writes the new state of a process and its hooks' firings, based on the version that
// was read. It returns false, and writes nothing, if somebody else has written since.
func (d *Store) MoveProcess(ctx context.Context, p background.Process, fired []background.Fired) (bool, error) {
	hooks, err := database.AsJSON(p.Hooks)
	if err != nil {
		return false, err
	}
	var moved int64
	err = d.db.Write(ctx, func(tx database.Tx) (err error) {
		moved, err = tx.Change(`UPDATE processes SET state = ?, exit = ?, why = ?, read_to = ?, hooks = ?, ended_at = ?, version = version + 1 WHERE id = ? AND version = ?`,
			string(p.State), p.Exit, p.Why, p.ReadTo, hooks, database.NullMicros(p.Ended), p.ID, p.Version)
		if err != nil || moved == 0 {
			return err
		}
		for _, f := range fired {
			if err := tx.Exec(`INSERT INTO process_fires (process_id, hook, n, owner_key, action, state, why, seq, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
				p.ID, f.Hook, f.N, p.Owner.Person().String(), string(f.Do), f.State, f.Why, f.Seq, f.At.UnixMicro()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("write about process %s: %w", p.ID, err)
	}
	return moved == 1, nil
}

// Process finds a process by its id, or fails with ErrUnknown.
func (d *Store) Process(ctx context.Context, id string) (background.Process, error) {
	found, err := d.processes(ctx, `SELECT `+processColumns+` FROM processes WHERE id = ?`, id)
	return store.One(found, err, "process "+id)
}

// OpenProcesses returns the processes that have not ended, oldest first.
func (d *Store) OpenProcesses(ctx context.Context) ([]background.Process, error) {
	return d.processes(ctx, `SELECT `+processColumns+` FROM processes WHERE ended_at IS NULL ORDER BY started_at, id`)
}

// AnyOpen asks whether there are any.
func AnyOpen() database.Question {
	return database.Question{Query: `SELECT 1 FROM processes WHERE ended_at IS NULL`}
}

// Processes lists a person's processes, or all if owner is empty, newest first.
func (d *Store) Processes(ctx context.Context, owner string, limit int) ([]background.Process, error) {
	if owner == "" {
		return d.processes(ctx, `SELECT `+processColumns+` FROM processes ORDER BY started_at DESC, id LIMIT ?+0`, limit)
	}
	return d.processes(ctx, `SELECT `+processColumns+` FROM processes WHERE owner_key = ? ORDER BY started_at DESC, id LIMIT ?+0`, owner, limit)
}

// ProcessesOf lists a thread's processes, newest first.
func (d *Store) ProcessesOf(ctx context.Context, thread chat.ThreadID, limit int) ([]background.Process, error) {
	return d.processes(ctx, `SELECT `+processColumns+` FROM processes WHERE thread_id = ? ORDER BY started_at DESC, id LIMIT ?+0`, string(thread), limit)
}

func (d *Store) processes(ctx context.Context, query string, args ...any) ([]background.Process, error) {
	var out []background.Process
	err := d.db.Query(ctx, query, args, database.Fill(&out, func(rows *sql.Rows, p *background.Process) error {
		var owner, hooks string
		var timeout, started, ended int64
		if err := rows.Scan(&p.ID, &p.Thread, &p.Call, &owner, &p.Command, &p.Dir, &p.State, &p.Exit, &p.Why, &p.ReadTo, &hooks, &timeout, &p.Version, &started, &ended); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(owner), &p.Owner); err != nil {
			return fmt.Errorf("the owner of process %s cannot be read: %w", p.ID, err)
		}
		if err := json.Unmarshal([]byte(hooks), &p.Hooks); err != nil {
			return fmt.Errorf("the hooks of process %s cannot be read: %w", p.ID, err)
		}
		p.Timeout, p.Started = time.Duration(timeout)*time.Microsecond, time.UnixMicro(started)
		if ended != 0 {
			p.Ended = time.UnixMicro(ended)
		}
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("processes: %w", err)
	}
	return out, nil
}

// ProcessFires returns the last firings of a process's hooks, newest first.
func (d *Store) ProcessFires(ctx context.Context, id string, limit int) ([]background.Fired, error) {
	var out []background.Fired
	err := d.db.Query(ctx, `SELECT hook, n, action, state, why, seq, at FROM process_fires WHERE process_id = ? ORDER BY at DESC, hook, n LIMIT ?+0`, []any{id, limit}, database.Fill(&out, func(rows *sql.Rows, f *background.Fired) error {
		var at int64
		if err := rows.Scan(&f.Hook, &f.N, &f.Do, &f.State, &f.Why, &f.Seq, &at); err != nil {
			return err
		}
		f.At = time.UnixMicro(at)
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("firings of process %s: %w", id, err)
	}
	return out, nil
}

// FiresSince counts what the hooks of a person's processes did since an instant.
func (d *Store) FiresSince(ctx context.Context, owner string, since time.Time) (int64, error) {
	return d.db.Count(ctx, `SELECT count(*) FROM process_fires WHERE owner_key = ? AND at > ?`, owner, since.UnixMicro())
}
