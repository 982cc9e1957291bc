package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/chat"
	"chorus/internal/schedule"
	"chorus/internal/store"
	"chorus/internal/store/schedules"
	"chorus/internal/store/storetest"
)

// thread is where schedules speak: it takes each due time once, as the journal does.
type thread struct {
	mu    sync.Mutex
	heard map[string]int // by schedule and due time
	said  map[string]int // how often somebody tried
	fail  error
}

func (x *thread) say(_ context.Context, s schedule.Schedule, due time.Time) (Said, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := s.ID + " " + due.UTC().Format("2006-01-02 15:04")
	if x.said[key]++; x.heard[key] == 0 {
		x.heard[key] = len(x.heard) + 1
	}
	return Said{Seq: int64(x.heard[key])}, x.fail
}

func newThread() *thread { return &thread{heard: map[string]int{}, said: map[string]int{}} }

// home is a real database and a clock that is set by hand.
type home struct {
	*testing.T
	*thread
	db  *schedules.Store
	now time.Time
}

func newHome(t *testing.T, now time.Time) *home {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(storetest.FreshHome(t), "chorus.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &home{t, newThread(), schedules.New(db), now}
}

func (h *home) clock() *Clock {
	return &Clock{DB: h.db, Now: func() time.Time { return h.now }, Log: slog.New(slog.DiscardHandler), Say: h.say}
}

func (h *home) add(id, spec, catchUp string, due time.Time) {
	h.Helper()
	s := schedule.Schedule{ID: id, Owner: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Thread: "web:local/ada:1@main", Words: "tick", Said: spec, Spec: spec, Zone: "UTC",
		CatchUp: catchUp, Due: due, Begins: due, Created: h.now}
	if added, err := h.db.AddSchedule(h.Context(), s); err != nil || !added {
		h.Fatal(added, err)
	}
}

func (h *home) keep() {
	h.Helper()
	if err := h.clock().Keep(h.Context()); err != nil {
		h.Fatal(err)
	}
}

var nine = time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)

func TestEachDueTimeIsSaidOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t, nine.Add(-time.Second))
	h.add("daily", "0 9 * * *", "once", nine)
	h.add("single", "2026-11-17T09:00:00Z", "once", nine)
	h.keep()
	if len(h.heard) != 0 {
		t.Fatalf("said before its time: %v", h.heard)
	}
	for range 3 { // however often it is looked at
		h.now = nine
		h.keep()
	}
	if len(h.said) != 2 || h.said["daily 2026-11-17 09:00"] != 1 || h.said["single 2026-11-17 09:00"] != 1 {
		t.Fatalf("said: %v", h.said)
	}
	h.now = nine.Add(-time.Hour) // the clock is put back, and passes nine again
	h.keep()
	h.now = nine
	h.keep()
	h.now = nine.AddDate(0, 0, 1)
	h.keep()
	if len(h.said) != 3 || h.said["daily 2026-11-18 09:00"] != 1 {
		t.Fatalf("said: %v", h.said)
	}
	single, err := h.db.Schedule(t.Context(), "single")
	if err != nil || !single.Due.IsZero() {
		t.Errorf("what is over is due %v, %v", single.Due, err)
	}
}

// A process that dies after it said something and before it moved the schedule on says it again, and the thread has it once.
func TestKilledBetweenSayingAndMoving(t *testing.T) {
	t.Parallel()
	h := newHome(t, nine)
	h.add("daily", "0 9 * * *", "once", nine)
	dying, die := context.WithCancel(t.Context())
	c := h.clock()
	c.Say = func(ctx context.Context, s schedule.Schedule, due time.Time) (Said, error) {
		defer die() // the database is not reached any more
		return h.say(ctx, s, due)
	}
	_ = c.Keep(dying)
	if s, err := h.db.Schedule(t.Context(), "daily"); err != nil || !s.Due.Equal(nine) {
		t.Fatalf("it was moved: %v, %v", s.Due, err)
	}
	h.now = nine.Add(5 * time.Minute)
	h.keep()
	runs, err := h.db.ScheduleRuns(t.Context(), "daily", 10)
	if err != nil || len(runs) != 1 || runs[0].State != schedule.Said || len(h.heard) != 1 || h.said["daily 2026-11-17 09:00"] != 2 {
		t.Errorf("runs %+v, %v; heard %v, said %v", runs, err, h.heard, h.said)
	}
}

func TestWhatWasMissed(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]int{"skip": 0, "once": 1, "all": 4} {
		h := newHome(t, nine.Add(3*24*time.Hour+time.Hour))
		h.add("daily", "0 9 * * *", how, nine)
		h.keep()
		runs, err := h.db.ScheduleRuns(t.Context(), "daily", 10)
		if err != nil || len(h.heard) != want {
			t.Errorf("%s: heard %v, %v", how, h.heard, err)
		}
		if how == "skip" && (len(runs) != 1 || runs[0].State != schedule.Skipped || runs[0].Why == "") {
			t.Errorf("what was skipped is not told: %+v", runs)
		}
	}
}

// One that cannot be kept stays due, and holds nobody up; one that cannot be read ends with a sentence.
func TestOneThatFails(t *testing.T) {
	t.Parallel()
	h := newHome(t, nine)
	h.add("broken", "0 9 * * * nonsense", "once", nine)
	h.add("fine", "0 9 * * *", "once", nine)
	h.fail = errors.New("the disk is full")
	h.keep()
	if s, err := h.db.Schedule(t.Context(), "fine"); err != nil || !s.Due.Equal(nine) {
		t.Errorf("it failed and was moved: %v, %v", s.Due, err)
	}
	h.fail = nil
	h.keep()
	if runs, err := h.db.ScheduleRuns(t.Context(), "broken", 1); err != nil || len(runs) != 1 || runs[0].State != schedule.Refused || runs[0].Why == "" {
		t.Errorf("the broken one: %+v, %v", runs, err)
	}
	if s, err := h.db.Schedule(t.Context(), "fine"); err != nil || !s.Due.After(nine) || len(h.heard) != 1 {
		t.Errorf("fine is due %v, %v; heard %v", s.Due, err, h.heard)
	}
}

// One that cannot be kept is tried again after a pause, not without one; what was told of a spent budget is known the next
// time.
func TestATryThatFailsIsRepeatedAfterAPause(t *testing.T) {
	t.Parallel()
	h := newHome(t, nine)
	h.add("daily", "0 9 * * *", "once", nine)
	c := h.clock()
	h.fail = errors.New("the platform does not answer")
	if wait := c.round(t.Context()); wait != tryAgain {
		t.Errorf("it waits for %s", wait)
	}
	var told []bool
	c.Say = func(_ context.Context, s schedule.Schedule, _ time.Time) (Said, error) {
		told = append(told, s.Told)
		return Said{Refused: "the budget is spent", Told: true}, nil
	}
	for day := range 2 {
		h.now = nine.AddDate(0, 0, day)
		if wait := c.round(t.Context()); wait != lookAgain {
			t.Errorf("it waits for %s", wait)
		}
	}
	if fmt.Sprint(told) != "[false true]" {
		t.Errorf("told before: %v", told)
	}
}

// Several processes on one home, and many schedules in the same minute: each is said once, and none is late.
func TestManyAtOnceInSeveralProcesses(t *testing.T) {
	t.Parallel()
	many := 1000
	if os.Getenv("CHORUS_FAULTS") != "" { // make faults
		many = 10_000
	}
	h := newHome(t, nine)
	for i := range many {
		h.add(fmt.Sprintf("s%05d", i), "0 9 * * *", "once", nine)
	}
	began := time.Now()
	var work sync.WaitGroup
	for range 3 {
		work.Go(func() {
			if err := h.clock().Keep(h.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if took := time.Since(began); len(h.heard) != many || took > 2*time.Minute { // 5 s alone; tests share the machine
		t.Errorf("%d of %d were heard, in %s", len(h.heard), many, took)
	} else {
		t.Logf("%d in %s", many, took)
	}
	if next, err := h.db.NextSchedule(t.Context(), nine); err != nil || !next.Equal(nine.AddDate(0, 0, 1)) {
		t.Errorf("the next is %v, %v", next, err)
	}
}

// The clock sleeps until something is due, and wakes for what is added.
func TestTheClockRuns(t *testing.T) {
	t.Parallel()
	if _, err := storetest.Empty(); err != nil { // outside of the bubble, for all tests
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHome(t, nine)
		c := h.clock()
		c.Now = time.Now
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		heard := make(chan time.Time, 1)
		c.Say = func(ctx context.Context, s schedule.Schedule, due time.Time) (Said, error) {
			defer func() { heard <- time.Now() }()
			return h.say(ctx, s, due)
		}
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx) }()
		synctest.Wait() // it sleeps until it would look again by itself
		due := time.Now().Add(5 * time.Second)
		h.add("soon", due.UTC().Format(time.RFC3339), "once", due)
		c.Changed()
		if at := <-heard; !at.Equal(due) {
			t.Errorf("said %s after its time", at.Sub(due))
		}
		cancel()
		<-done
	})
}
