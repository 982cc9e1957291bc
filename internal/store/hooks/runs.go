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

const (
	runColumns = `id, hook_id, reason, acting, state, why, created_at, COALESCE(started_at, 0), COALESCE(ended_at, 0), progress`

	// keptRuns is how many ended runs of a hook are kept.
	keptRuns = 200
	// deliveriesKept is longer than senders retry, and longer than a signature with a time is valid.
	deliveriesKept = 30 * 24 * time.Hour
)

// TriggerHook writes everything that a trigger causes in one transaction: the event reader's
// position, the run, and when the hook last ran and is due next; or that the trigger was
// passed over. A trigger that came before changes nothing.
func (d *Store) TriggerHook(ctx context.Context, t hook.Triggered) (hook.Outcome, error) {
	acting, err := database.AsJSON(t.Run.Acting)
	if err != nil {
		return hook.Outcome{}, err
	}
	progress, err := database.AsJSON(t.Run.Progress)
	if err != nil {
		return hook.Outcome{}, err
	}
	var out hook.Outcome
	err = d.db.Write(ctx, func(tx database.Tx) (err error) {
		if out, err = triggered(tx, t, acting, progress); err != nil || t.Reader == "" {
			return err
		}
		if t.Thread == "" {
			return tx.Exec(`INSERT INTO work_readers (reader, seq) VALUES (?, ?) ON CONFLICT (reader) DO UPDATE SET seq = CASE WHEN excluded.seq > work_readers.seq THEN excluded.seq ELSE work_readers.seq END`, t.Reader, t.Seq)
		}
		return tx.Exec(`INSERT INTO readers (reader, thread_id, seq) SELECT ?, id, ? FROM threads WHERE id = ?
			ON CONFLICT (reader, thread_id) DO UPDATE SET seq = CASE WHEN excluded.seq > readers.seq THEN excluded.seq ELSE readers.seq END`, t.Reader, t.Seq, string(t.Thread))
	})
	if err != nil {
		return hook.Outcome{}, fmt.Errorf("trigger hook %s: %w", t.Hook.ID, err)
	}
	return out, nil
}

func triggered(tx database.Tx, t hook.Triggered, acting, progress string) (hook.Outcome, error) {
	h := t.Hook
	if err := tx.Alone("hooks"); err != nil { // the runs of all hooks in the last minute are counted below
		return hook.Outcome{}, err
	}
	var last, due, again int64
	err := tx.Row(`SELECT enabled, COALESCE(last_at, 0), COALESCE(due, 0), (SELECT count(*) FROM hook_runs WHERE id = ?) FROM hooks WHERE id = ?`, []any{t.Run.ID, h.ID}, &h.Enabled, &last, &due, &again)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return hook.Outcome{Why: "the hook is gone"}, nil
	case err != nil:
		return hook.Outcome{}, err
	case again > 0, !t.Due.IsZero() && due != t.Due.UnixMicro():
		return hook.Outcome{Run: t.Run.ID, Again: true}, nil
	}
	if t.Delivery != "" {
		if before, err := deliveredBefore(tx, t); err != nil || before != "" {
			return hook.Outcome{Run: before, Again: true}, err
		}
	}
	if t.Run.State == hook.Skipped {
		return hook.Outcome{Run: t.Run.ID, Why: t.Run.Why}, insertRun(tx, t, acting, progress)
	}
	s := hook.Standing{LastAt: database.Instant(last)}
	err = tx.Row(`SELECT (SELECT count(*) FROM hook_runs WHERE hook_id = ? AND ended_at IS NULL), (SELECT count(*) FROM hook_runs WHERE created_at > ? AND (state <> 'skipped' OR started_at IS NOT NULL))`,
		[]any{h.ID, t.At.Add(-time.Minute).UnixMicro()}, &s.Unfinished, &s.LastMinute)
	if err != nil {
		return hook.Outcome{}, err
	}
	verdict, why := h.Admit(t.At, s, t.Manual)
	if verdict == hook.Pass {
		if t.Manual {
			return hook.Outcome{Why: why}, nil
		}
		return hook.Outcome{Why: why}, tx.Exec(`UPDATE hooks SET passed = passed + 1, passed_why = ?, due = COALESCE(?, due) WHERE id = ?`, why, database.NullMicros(t.Next), h.ID)
	}
	if err := insertRun(tx, t, acting, progress); err != nil {
		return hook.Outcome{}, err
	}
	err = tx.Exec(`UPDATE hooks SET last_at = ?, due = COALESCE(?, CASE WHEN ? = 1 THEN NULL ELSE due END) WHERE id = ?`, t.At.UnixMicro(), database.NullMicros(t.Next), !t.Due.IsZero(), h.ID)
	return hook.Outcome{Run: t.Run.ID}, err
}

// deliveredBefore remembers a delivery, or returns the run that it started before.
func deliveredBefore(tx database.Tx, t hook.Triggered) (string, error) {
	if err := tx.Exec(`DELETE FROM hook_deliveries WHERE at < ?`, t.At.Add(-deliveriesKept).UnixMicro()); err != nil {
		return "", err
	}
	n, err := tx.Change(`INSERT INTO hook_deliveries (hook_id, delivery, run_id, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, t.Hook.ID, t.Delivery, t.Run.ID, t.At.UnixMicro())
	if err != nil || n == 1 {
		return "", err
	}
	var before string
	err = tx.Row(`SELECT run_id FROM hook_deliveries WHERE hook_id = ? AND delivery = ?`, []any{t.Hook.ID, t.Delivery}, &before)
	return before, err
}

func insertRun(tx database.Tx, t hook.Triggered, acting, progress string) error {
	r := t.Run
	err := tx.Exec(`INSERT INTO hook_runs (id, hook_id, reason, acting, state, why, created_at, ended_at, progress) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, r.Hook, r.Reason, acting, r.State, r.Why, t.At.UnixMicro(), database.NullMicros(r.Ended), progress)
	if err != nil {
		return err
	}
	return tx.Exec(`DELETE FROM hook_runs WHERE hook_id = ? AND ended_at IS NOT NULL AND created_at < (SELECT created_at FROM hook_runs WHERE hook_id = ? ORDER BY created_at DESC LIMIT 1 OFFSET ?+0)`,
		r.Hook, r.Hook, keptRuns)
}

// SaveHookRun writes how far a run has come. It returns false if the run is gone because its hook was removed.
func (d *Store) SaveHookRun(ctx context.Context, r hook.Run) (bool, error) {
	progress, err := database.AsJSON(r.Progress)
	if err != nil {
		return false, err
	}
	var n int64
	err = d.db.Write(ctx, func(tx database.Tx) (err error) {
		n, err = tx.Change(`UPDATE hook_runs SET state = ?, why = ?, started_at = ?, ended_at = ?, progress = ? WHERE id = ?`, r.State, r.Why, database.NullMicros(r.Started), database.NullMicros(r.Ended), progress, r.ID)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("write run %s of hook %s: %w", r.ID, r.Hook, err)
	}
	return n == 1, nil
}

// UnfinishedHookRuns returns the runs to continue, oldest first.
func (d *Store) UnfinishedHookRuns(ctx context.Context) ([]hook.Run, error) {
	return d.hookRuns(ctx, `SELECT `+runColumns+` FROM hook_runs WHERE ended_at IS NULL ORDER BY created_at, id`)
}

// HookRuns returns the last runs of a hook, newest first.
func (d *Store) HookRuns(ctx context.Context, id string, limit int) ([]hook.Run, error) {
	return d.hookRuns(ctx, `SELECT `+runColumns+` FROM hook_runs WHERE hook_id = ? ORDER BY created_at DESC, id DESC LIMIT ?+0`, id, limit)
}

// HookRunsBefore returns the runs of a hook before one of them, newest first. A zero run means the last ones.
func (d *Store) HookRunsBefore(ctx context.Context, id string, before hook.Run, limit int) ([]hook.Run, error) {
	if before.ID == "" {
		return d.HookRuns(ctx, id, limit)
	}
	at := before.Created.UnixMicro()
	return d.hookRuns(ctx, `SELECT `+runColumns+` FROM hook_runs WHERE hook_id = ? AND (created_at < ? OR created_at = ? AND id < ?) ORDER BY created_at DESC, id DESC LIMIT ?+0`, id, at, at, before.ID, limit)
}

// HookRun finds a run by its id, or fails with ErrUnknown.
func (d *Store) HookRun(ctx context.Context, id string) (hook.Run, error) {
	found, err := d.hookRuns(ctx, `SELECT `+runColumns+` FROM hook_runs WHERE id = ?`, id)
	return store.One(found, err, "run "+id)
}

func (d *Store) hookRuns(ctx context.Context, query string, args ...any) ([]hook.Run, error) {
	var out []hook.Run
	err := d.db.Query(ctx, query, args, database.Fill(&out, func(rows *sql.Rows, r *hook.Run) error {
		var acting, progress string
		var created, started, ended int64
		if err := rows.Scan(&r.ID, &r.Hook, &r.Reason, &acting, &r.State, &r.Why, &created, &started, &ended, &progress); err != nil {
			return err
		}
		if err := errors.Join(json.Unmarshal([]byte(acting), &r.Acting), json.Unmarshal([]byte(progress), &r.Progress)); err != nil {
			r.State, r.Why = hook.Failed, "what is known of the run cannot be read: "+err.Error()
		}
		r.Created, r.Started, r.Ended = database.Instant(created), database.Instant(started), database.Instant(ended)
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("runs of hooks: %w", err)
	}
	return out, nil
}
