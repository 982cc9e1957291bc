// Package schedules stores schedules and what became of their due times.
package schedules

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/schedule"
	"chorus/internal/store"
)

// Store keeps schedules in the database.
type Store struct{ db *store.DB }

// New returns a Store on a database.
func New(db *store.DB) *Store { return &Store{db} }

const scheduleColumns = `id, owner, thread_id, words, said, spec, zone, catch_up, jitter, COALESCE(due, 0), COALESCE(begins, 0), paused, created_at, file, digest, kind, adapter, channel, agent, told, ` + held

// held says whether the conversation in which a schedule speaks was deleted. It may be
// restored, and its schedules with it, so nothing is written.
const held = `EXISTS (SELECT 1 FROM threads WHERE threads.id = schedules.thread_id AND threads.listing IN ('` + store.Deleted + `', '` + store.Erased + `'))`

// AddSchedule stores a new schedule. It returns false, and writes
// nothing, if there is already one with this id.
func (d *Store) AddSchedule(ctx context.Context, s schedule.Schedule) (bool, error) {
	owner, err := database.AsJSON(s.Owner)
	if err != nil {
		return false, err
	}
	var added int64
	err = d.db.Write(ctx, func(tx database.Tx) (err error) {
		added, err = tx.Change(`INSERT INTO schedules (id, owner, owner_key, thread_id, words, said, spec, zone, catch_up, jitter, due, begins, paused, created_at, file, digest, kind, adapter, channel, agent)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			s.ID, owner, s.Owner.Person().String(), string(s.Thread), s.Words, s.Said, s.Spec, s.Zone, s.CatchUp, s.Jitter.Microseconds(), database.NullMicros(s.Due), database.NullMicros(s.Begins), s.Paused, s.Created.UnixMicro(), s.File, s.Digest,
			string(s.Kind), s.Target.Adapter, s.Target.Channel, s.Target.Agent)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("add schedule %s: %w", s.ID, err)
	}
	return added == 1, nil
}

// Schedule finds a schedule by its id, or fails with ErrUnknown.
func (d *Store) Schedule(ctx context.Context, id string) (schedule.Schedule, error) {
	found, err := d.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE id = ?`, id)
	return store.One(found, err, "schedule "+id)
}

// Schedules lists an owner's schedules, or all if owner is empty, newest first.
func (d *Store) Schedules(ctx context.Context, owner string) ([]schedule.Schedule, error) {
	if owner == "" {
		return d.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules ORDER BY created_at DESC, id`)
	}
	return d.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE owner_key = ? ORDER BY created_at DESC, id`, owner)
}

// SchedulesIn returns a thread's upcoming schedules, next one first.
func (d *Store) SchedulesIn(ctx context.Context, thread chat.ThreadID, limit int) ([]schedule.Schedule, error) {
	return d.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE thread_id = ? AND begins IS NOT NULL AND paused = 0 ORDER BY begins, id LIMIT ?+0`, string(thread), limit)
}

// AnyIn asks whether there are any.
func AnyIn(thread chat.ThreadID) database.Question {
	return database.Question{Query: `SELECT 1 FROM schedules WHERE thread_id = ? AND begins IS NOT NULL AND paused = 0`, Args: []any{string(thread)}}
}

// SchedulesSet returns the timers and the requests to continue that were set in a
// thread since an instant, including those that are over.
func (d *Store) SchedulesSet(ctx context.Context, thread chat.ThreadID, since time.Time) ([]schedule.Schedule, error) {
	return d.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE thread_id = ? AND kind <> '' AND created_at >= ? ORDER BY created_at, id`, string(thread), since.UnixMicro())
}

// DueSchedules returns the schedules that begin until an instant, earliest
// first. It leaves out those of deleted conversations.
func (d *Store) DueSchedules(ctx context.Context, now time.Time, limit int) ([]schedule.Schedule, error) {
	return d.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE begins IS NOT NULL AND paused = 0 AND begins <= ? AND NOT `+held+` ORDER BY begins, id LIMIT ?+0`, now.UnixMicro(), limit)
}

// NextSchedule returns when the first schedule begins after an instant; zero if none does.
func (d *Store) NextSchedule(ctx context.Context, after time.Time) (time.Time, error) {
	n, err := d.db.Count(ctx, `SELECT COALESCE(min(begins), 0) FROM schedules WHERE begins IS NOT NULL AND paused = 0 AND begins > ? AND NOT `+held, after.UnixMicro())
	if err != nil || n == 0 {
		return time.Time{}, err
	}
	return time.UnixMicro(n), nil
}

func (d *Store) schedules(ctx context.Context, query string, args ...any) ([]schedule.Schedule, error) {
	var out []schedule.Schedule
	err := d.db.Query(ctx, query, args, func(rows *sql.Rows) error {
		var s schedule.Schedule
		var owner string
		var jitter, due, begins, created int64
		if err := rows.Scan(&s.ID, &owner, &s.Thread, &s.Words, &s.Said, &s.Spec, &s.Zone, &s.CatchUp, &jitter, &due, &begins, &s.Paused, &created, &s.File, &s.Digest,
			&s.Kind, &s.Target.Adapter, &s.Target.Channel, &s.Target.Agent, &s.Told, &s.Held); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(owner), &s.Owner); err != nil {
			return fmt.Errorf("the owner of schedule %s cannot be read: %w", s.ID, err)
		}
		s.Jitter, s.Created = time.Duration(jitter)*time.Microsecond, time.UnixMicro(created)
		if due != 0 {
			s.Due, s.Begins = time.UnixMicro(due), time.UnixMicro(begins)
		}
		out = append(out, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("schedules: %w", err)
	}
	return out, nil
}

// MoveSchedule writes what became of due times and moves a schedule from the due time
// that was read to its next one. It returns false if somebody else has moved or
// removed it; the due times are written anyway, once each.
func (d *Store) MoveSchedule(ctx context.Context, s, to schedule.Schedule, runs []schedule.Run) (bool, error) {
	var moved int64
	err := d.db.Write(ctx, func(tx database.Tx) (err error) {
		for _, r := range runs {
			if err := tx.Exec(`INSERT INTO schedule_runs (schedule_id, due, state, seq, why, at) SELECT id, ?, ?, ?, ?, ? FROM schedules WHERE id = ? ON CONFLICT DO NOTHING`,
				r.Due.UnixMicro(), r.State, r.Seq, r.Why, r.At.UnixMicro(), s.ID); err != nil {
				return err
			}
		}
		moved, err = tx.Change(`UPDATE schedules SET due = ?, begins = ?, told = ? WHERE id = ? AND due = ?`, database.NullMicros(to.Due), database.NullMicros(to.Begins), to.Told, s.ID, s.Due.UnixMicro())
		return err
	})
	if err != nil {
		return false, fmt.Errorf("move schedule %s: %w", s.ID, err)
	}
	return moved == 1, nil
}

// ScheduleOpened writes what became of a due time for which a thread was
// opened, before or after the schedule was moved.
func (d *Store) ScheduleOpened(ctx context.Context, id string, r schedule.Run) error {
	err := d.db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`INSERT INTO schedule_runs (schedule_id, due, state, seq, why, at, thread_id) SELECT id, ?, ?, ?, ?, ?, ? FROM schedules WHERE id = ?
			ON CONFLICT (schedule_id, due) DO UPDATE SET state = excluded.state, seq = excluded.seq, why = excluded.why, thread_id = excluded.thread_id`,
			r.Due.UnixMicro(), r.State, r.Seq, r.Why, r.At.UnixMicro(), string(r.Thread), id)
	})
	if err != nil {
		return fmt.Errorf("due time of schedule %s: %w", id, err)
	}
	return nil
}

// PauseSchedule pauses a schedule, or resumes it with a due time.
func (d *Store) PauseSchedule(ctx context.Context, id string, paused bool, due, begins time.Time) error {
	err := d.db.Write(ctx, func(tx database.Tx) error {
		return tx.Exec(`UPDATE schedules SET paused = ?, due = ?, begins = ? WHERE id = ?`, paused, database.NullMicros(due), database.NullMicros(begins), id)
	})
	if err != nil {
		return fmt.Errorf("pause schedule %s: %w", id, err)
	}
	return nil
}

// RemoveSchedule removes a schedule and its due times, or returns false if there is none.
func (d *Store) RemoveSchedule(ctx context.Context, id string) (bool, error) {
	var removed int64
	err := d.db.Write(ctx, func(tx database.Tx) (err error) {
		if removed, err = tx.Change(`DELETE FROM schedules WHERE id = ?`, id); err != nil {
			return err
		}
		return tx.Exec(`DELETE FROM schedule_runs WHERE schedule_id = ?`, id)
	})
	if err != nil {
		return false, fmt.Errorf("remove schedule %s: %w", id, err)
	}
	return removed == 1, nil
}

// ScheduleRuns returns the last due times of a schedule, newest first.
func (d *Store) ScheduleRuns(ctx context.Context, id string, limit int) ([]schedule.Run, error) {
	var out []schedule.Run
	err := d.db.Query(ctx, `SELECT due, state, seq, why, at, thread_id FROM schedule_runs WHERE schedule_id = ? ORDER BY due DESC LIMIT ?+0`, []any{id, limit}, database.Fill(&out, func(rows *sql.Rows, r *schedule.Run) error {
		var due, at int64
		if err := rows.Scan(&due, &r.State, &r.Seq, &r.Why, &at, &r.Thread); err != nil {
			return err
		}
		r.Due, r.At = time.UnixMicro(due), time.UnixMicro(at)
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("due times of schedule %s: %w", id, err)
	}
	return out, nil
}
