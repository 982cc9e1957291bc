package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/schedule"
)

const scheduleColumns = `id, owner, thread_id, words, said, spec, zone, catch_up, jitter, COALESCE(due, 0), COALESCE(begins, 0), paused, created_at, file, digest, kind, adapter, channel, agent, told`

// AddSchedule keeps a new schedule; false: there is one with this id already, and nothing was written.
func (db *DB) AddSchedule(ctx context.Context, s schedule.Schedule) (bool, error) {
	owner, err := asJSON(s.Owner)
	if err != nil {
		return false, err
	}
	var added int64
	err = db.write(ctx, func(tx *transaction) (err error) {
		added, err = tx.change(`INSERT INTO schedules (id, owner, owner_key, thread_id, words, said, spec, zone, catch_up, jitter, due, begins, paused, created_at, file, digest, kind, adapter, channel, agent)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			s.ID, owner, s.Owner.Person().String(), string(s.Thread), s.Words, s.Said, s.Spec, s.Zone, s.CatchUp, s.Jitter.Microseconds(), nullMicros(s.Due), nullMicros(s.Begins), s.Paused, micros(s.Created), s.File, s.Digest,
			string(s.Kind), s.Target.Adapter, s.Target.Channel, s.Target.Agent)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("add schedule %s: %w", s.ID, err)
	}
	return added == 1, nil
}

// Schedule finds one by its id; ErrUnknown if there is none.
func (db *DB) Schedule(ctx context.Context, id string) (schedule.Schedule, error) {
	found, err := db.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE id = ?`, id)
	return one(found, err, "schedule "+id)
}

// Schedules lists those of an owner, or all where owner is empty, the newest first.
func (db *DB) Schedules(ctx context.Context, owner string) ([]schedule.Schedule, error) {
	if owner == "" {
		return db.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules ORDER BY created_at DESC, id`)
	}
	return db.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE owner_key = ? ORDER BY created_at DESC, id`, owner)
}

// SchedulesIn are those that are still to come in a thread, the next one first.
func (db *DB) SchedulesIn(ctx context.Context, thread chat.ThreadID, limit int) ([]schedule.Schedule, error) {
	return db.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE thread_id = ? AND begins IS NOT NULL AND paused = 0 ORDER BY begins, id LIMIT ?+0`, string(thread), limit)
}

// SchedulesSet are the timers, and wishes to go on, that were set in a thread since an instant, also those that are over.
func (db *DB) SchedulesSet(ctx context.Context, thread chat.ThreadID, since time.Time) ([]schedule.Schedule, error) {
	return db.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE thread_id = ? AND kind <> '' AND created_at >= ? ORDER BY created_at, id`, string(thread), micros(since))
}

// DueSchedules are those that begin until an instant, the earliest first.
func (db *DB) DueSchedules(ctx context.Context, now time.Time, limit int) ([]schedule.Schedule, error) {
	return db.schedules(ctx, `SELECT `+scheduleColumns+` FROM schedules WHERE begins IS NOT NULL AND paused = 0 AND begins <= ? ORDER BY begins, id LIMIT ?+0`, micros(now), limit)
}

// NextSchedule is when the first one begins after an instant; zero: none does.
func (db *DB) NextSchedule(ctx context.Context, after time.Time) (time.Time, error) {
	n, err := db.count(ctx, `SELECT COALESCE(min(begins), 0) FROM schedules WHERE begins IS NOT NULL AND paused = 0 AND begins > ?`, micros(after))
	if err != nil || n == 0 {
		return time.Time{}, err
	}
	return time.UnixMicro(n), nil
}

func (db *DB) schedules(ctx context.Context, query string, args ...any) ([]schedule.Schedule, error) {
	var out []schedule.Schedule
	err := db.query(ctx, query, args, func(rows *sql.Rows) error {
		var s schedule.Schedule
		var owner string
		var jitter, due, begins, created int64
		if err := rows.Scan(&s.ID, &owner, &s.Thread, &s.Words, &s.Said, &s.Spec, &s.Zone, &s.CatchUp, &jitter, &due, &begins, &s.Paused, &created, &s.File, &s.Digest,
			&s.Kind, &s.Target.Adapter, &s.Target.Channel, &s.Target.Agent, &s.Told); err != nil {
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

// MoveSchedule writes what became of due times and moves a schedule on to its next one, from the due that was read.
// False: somebody else has moved it, or it is gone; the due times are written nonetheless, once each.
func (db *DB) MoveSchedule(ctx context.Context, s, to schedule.Schedule, runs []schedule.Run) (bool, error) {
	var moved int64
	err := db.write(ctx, func(tx *transaction) (err error) {
		for _, r := range runs {
			if err := tx.exec(`INSERT INTO schedule_runs (schedule_id, due, state, seq, why, at) SELECT id, ?, ?, ?, ?, ? FROM schedules WHERE id = ? ON CONFLICT DO NOTHING`,
				micros(r.Due), r.State, r.Seq, r.Why, micros(r.At), s.ID); err != nil {
				return err
			}
		}
		moved, err = tx.change(`UPDATE schedules SET due = ?, begins = ?, told = ? WHERE id = ? AND due = ?`, nullMicros(to.Due), nullMicros(to.Begins), to.Told, s.ID, micros(s.Due))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("move schedule %s: %w", s.ID, err)
	}
	return moved == 1, nil
}

// ScheduleOpened writes what became of a due time for which a thread was opened, before or after the schedule was moved
// on.
func (db *DB) ScheduleOpened(ctx context.Context, id string, r schedule.Run) error {
	err := db.write(ctx, func(tx *transaction) error {
		return tx.exec(`INSERT INTO schedule_runs (schedule_id, due, state, seq, why, at, thread_id) SELECT id, ?, ?, ?, ?, ?, ? FROM schedules WHERE id = ?
			ON CONFLICT (schedule_id, due) DO UPDATE SET state = excluded.state, seq = excluded.seq, why = excluded.why, thread_id = excluded.thread_id`,
			micros(r.Due), r.State, r.Seq, r.Why, micros(r.At), string(r.Thread), id)
	})
	if err != nil {
		return fmt.Errorf("due time of schedule %s: %w", id, err)
	}
	return nil
}

// PauseSchedule holds a schedule, or lets it go on with a due time.
func (db *DB) PauseSchedule(ctx context.Context, id string, paused bool, due, begins time.Time) error {
	err := db.write(ctx, func(tx *transaction) error {
		return tx.exec(`UPDATE schedules SET paused = ?, due = ?, begins = ? WHERE id = ?`, paused, nullMicros(due), nullMicros(begins), id)
	})
	if err != nil {
		return fmt.Errorf("pause schedule %s: %w", id, err)
	}
	return nil
}

// RemoveSchedule removes a schedule and what is known of its due times; false: there was none.
func (db *DB) RemoveSchedule(ctx context.Context, id string) (bool, error) {
	var removed int64
	err := db.write(ctx, func(tx *transaction) (err error) {
		if removed, err = tx.change(`DELETE FROM schedules WHERE id = ?`, id); err != nil {
			return err
		}
		return tx.exec(`DELETE FROM schedule_runs WHERE schedule_id = ?`, id)
	})
	if err != nil {
		return false, fmt.Errorf("remove schedule %s: %w", id, err)
	}
	return removed == 1, nil
}

// ScheduleRuns are the last due times of a schedule, the newest first.
func (db *DB) ScheduleRuns(ctx context.Context, id string, limit int) ([]schedule.Run, error) {
	var out []schedule.Run
	err := db.query(ctx, `SELECT due, state, seq, why, at, thread_id FROM schedule_runs WHERE schedule_id = ? ORDER BY due DESC LIMIT ?+0`, []any{id, limit}, func(rows *sql.Rows) error {
		var r schedule.Run
		var due, at int64
		if err := rows.Scan(&due, &r.State, &r.Seq, &r.Why, &at, &r.Thread); err != nil {
			return err
		}
		r.Due, r.At = time.UnixMicro(due), time.UnixMicro(at)
		out = append(out, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("due times of schedule %s: %w", id, err)
	}
	return out, nil
}
