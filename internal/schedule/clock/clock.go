// Package clock delivers the words of schedules when they are due: each time once,
// across restarts, clock changes and several processes on one home.
//
// A delivery uses the schedule and its due time as its key among the arrivals, so repeating it
// has no effect. After that the schedule is moved on, from the due time that was read. A process
// that dies between the two leaves a schedule that is still due.
package clock

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/await"
	"chorus/internal/schedule"
)

// Said is what became of words at their due time.
type Said struct {
	Seq     int64
	Refused string // why they were refused; "" if they were accepted
	Told    bool   // with Refused: the owner was told that the budget is spent
}

// Store keeps schedules.
type Store interface {
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]schedule.Schedule, error)
	// NextSchedule returns when the first schedule begins after an instant; zero if none does.
	NextSchedule(ctx context.Context, after time.Time) (time.Time, error)
	// MoveSchedule moves a schedule on from the state that was read, and records what became of due times.
	MoveSchedule(ctx context.Context, from, to schedule.Schedule, runs []schedule.Run) (bool, error)
}

// Clock runs the schedules of a home.
type Clock struct {
	DB  Store
	Now func() time.Time
	Log *slog.Logger
	// Say delivers a schedule's words to its thread, only once per due time.
	Say func(context.Context, schedule.Schedule, time.Time) (Said, error)

	changed chan struct{}
	once    sync.Once
}

const (
	// lookAgain is the interval of checks without a due time or a reported change: the machine's
	// clock may have been set, and a notification of another process may have been lost.
	lookAgain = 15 * time.Second
	// tryAgain is the pause before a failed delivery is retried.
	tryAgain = 2 * time.Second
	// atOnce is how many schedules are carried out at the same time. The
	// database writes their deliveries together.
	atOnce = 64
	// batch is how many schedules are read at once.
	batch = 1000
)

func (c *Clock) news() chan struct{} {
	c.once.Do(func() { c.changed = make(chan struct{}, 1) })
	return c.changed
}

// Changed tells the clock that schedules were added or changed.
func (c *Clock) Changed() { await.Notify(c.news()) }

// Run runs the schedules until the context ends.
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

// round carries out what is due, and returns how long until something else is due.
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
	// What began before this round was carried out, or is late.
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

// Keep carries out all schedules that are due, and returns when each has been moved
// on. A failing schedule does not block the others; it stays due.
func (c *Clock) Keep(ctx context.Context) error {
	_, err := c.keepDue(ctx)
	return err
}

// keepDue is Keep. late means that some are still due.
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
	if err != nil { // the zone no longer exists on this machine, or somebody edited the table
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
		runs = append(runs, schedule.Run{Due: s.Due, State: schedule.Skipped, Why: "nothing was running to deliver it in time", At: now})
	}
	return c.move(ctx, s, next, told, runs)
}

func (c *Clock) move(ctx context.Context, s schedule.Schedule, next time.Time, told bool, runs []schedule.Run) error {
	to := s
	to.Due, to.Begins, to.Told = next, s.Begin(next), told
	_, err := c.DB.MoveSchedule(ctx, s, to, runs)
	return err
}
