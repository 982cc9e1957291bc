// Package clock says what schedules say when it is due: each time once, over restarts, jumps of the clock and
// several processes on one home.
//
// What is said has the schedule and its due time as its key among the arrivals, so that saying it again changes
// nothing; the schedule is moved on afterwards, from the due time that was read. A process that dies between the
// two leaves a schedule that is still due.
package clock

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/schedule"
)

// Said is what became of words at their due time.
type Said struct {
	Seq     int64
	Refused string // why they were not taken; empty: they were
	Told    bool   // with Refused: the owner was told that the budget is spent
}

// Store keeps schedules.
type Store interface {
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]schedule.Schedule, error)
	// NextSchedule is when the first one begins after an instant; zero: none does.
	NextSchedule(ctx context.Context, after time.Time) (time.Time, error)
	// MoveSchedule moves a schedule on, as it was read, and writes what became of due times.
	MoveSchedule(ctx context.Context, from, to schedule.Schedule, runs []schedule.Run) (bool, error)
}

// Clock looks after the schedules of a home.
type Clock struct {
	DB  Store
	Now func() time.Time
	Log *slog.Logger
	// Say gives a schedule's words to its thread, once for a due time however often it is called.
	Say func(context.Context, schedule.Schedule, time.Time) (Said, error)

	changed chan struct{}
	once    sync.Once
}

const (
	// lookAgain is when the schedules are looked at though nothing was due and nobody told of a change: the machine's
	// clock may have been set, and the word of another process may have been lost.
	lookAgain = 15 * time.Second
	// tryAgain is when one is tried again that could not be kept.
	tryAgain = 2 * time.Second
	// atOnce is how many schedules are kept at the same time; the database writes what they say together.
	atOnce = 64
	// batch is how many are read at once.
	batch = 1000
)

func (c *Clock) news() chan struct{} {
	c.once.Do(func() { c.changed = make(chan struct{}, 1) })
	return c.changed
}

// Changed tells the clock that schedules were added or changed.
func (c *Clock) Changed() {
	select {
	case c.news() <- struct{}{}:
	default:
	}
}

// Run keeps the schedules until the context ends.
func (c *Clock) Run(ctx context.Context) {
	for ctx.Err() == nil {
		timer := time.NewTimer(c.round(ctx))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-c.news():
		}
		timer.Stop()
	}
}

// round keeps what is due, and says how long nothing else will be.
func (c *Clock) round(ctx context.Context) time.Duration {
	began := c.Now()
	late, err := c.keepDue(ctx)
	if err != nil {
		c.failed(ctx, "schedules cannot be kept", err)
		return lookAgain
	}
	wait := lookAgain
	if late {
		wait = tryAgain
	}
	// What began before this round was kept, or is late.
	next, err := c.DB.NextSchedule(ctx, began)
	if err != nil {
		c.failed(ctx, "schedules cannot be read", err)
	} else if !next.IsZero() {
		wait = min(max(next.Sub(c.Now()), 0), wait)
	}
	return wait
}

func (c *Clock) failed(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		c.Log.Warn(what+": "+err.Error(), "component", "schedules", "event", "schedules_not_kept")
	}
}

// Keep keeps all schedules that are due, and returns when each has been moved on. One that cannot be kept does not
// hold up the others; it stays due.
func (c *Clock) Keep(ctx context.Context) error {
	_, err := c.keepDue(ctx)
	return err
}

// keepDue is Keep; late: some are still due.
func (c *Clock) keepDue(ctx context.Context) (late bool, err error) {
	tried := map[string]bool{}
	var failed atomic.Bool
	for ctx.Err() == nil {
		due, err := c.DB.DueSchedules(ctx, c.Now(), batch)
		if err != nil {
			return false, err
		}
		var work sync.WaitGroup
		slots, more := make(chan struct{}, atOnce), false
		for _, s := range due {
			if key := s.ID + s.Due.String(); !tried[key] {
				tried[key], more = true, true
				slots <- struct{}{}
				work.Go(func() {
					defer func() { <-slots }()
					if err := c.keep(ctx, s); err != nil && ctx.Err() == nil {
						failed.Store(true)
						c.Log.Warn("a schedule cannot be kept: "+err.Error(), "component", "schedules", "event", "schedule_not_kept", "schedule", s.ID, "thread", s.Thread)
					}
				})
			}
		}
		work.Wait()
		if !more {
			return failed.Load(), nil
		}
	}
	return false, ctx.Err()
}

func (c *Clock) keep(ctx context.Context, s schedule.Schedule) error {
	now := c.Now()
	spec, err := s.Read()
	if err != nil { // the zone is gone from this machine, or somebody wrote into the table
		return c.move(ctx, s, time.Time{}, s.Told, []schedule.Run{{Due: s.Due, State: schedule.Refused, Why: err.Error(), At: now}})
	}
	keep, next := spec.Missed(s.Due, now, schedule.CatchUp(s.CatchUp))
	runs, told := make([]schedule.Run, 0, len(keep)), s.Told
	for _, due := range keep {
		as := s
		as.Told = told
		said, err := c.Say(ctx, as, due)
		if err != nil {
			return err
		}
		told = said.Told
		run := schedule.Run{Due: due, State: schedule.Said, Seq: said.Seq, At: now}
		if said.Refused != "" {
			run.State, run.Why = schedule.Refused, said.Refused
		}
		runs = append(runs, run)
	}
	if len(keep) == 0 {
		runs = append(runs, schedule.Run{Due: s.Due, State: schedule.Skipped, Why: "nobody was there to keep it in time", At: now})
	}
	return c.move(ctx, s, next, told, runs)
}

func (c *Clock) move(ctx context.Context, s schedule.Schedule, next time.Time, told bool, runs []schedule.Run) error {
	to := s
	to.Due, to.Begins, to.Told = next, s.Begin(next), told
	_, err := c.DB.MoveSchedule(ctx, s, to, runs)
	return err
}
