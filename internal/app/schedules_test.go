package app

import (
	"context"
	"testing"
	"time"

	"chorus/internal/app/apptest"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/store/schedules"
	"chorus/internal/store/storetest"
)

// What one process adds another keeps at once: it is told, and does not wait for its next look.
func TestSchedulesOfAnotherProcessAreKeptAtOnce(t *testing.T) {
	t.Parallel()
	home := storetest.FreshHome(t)
	var apps [2]*App
	for i := range apps {
		a, err := Open(t.Context(), Options{Home: home, Env: apptest.Env("USER", "tester", "CHORUS_DEFAULT_MODEL", "demo/script")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		apps[i] = a
	}
	keeps, adds := apps[0], apps[1]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := keeps.keepSchedules(ctx)
	defer wait()
	owner := operation.Caller{Principal: adds.Me(), Scopes: operation.Scopes()}
	began := time.Now()
	s, err := adds.Schedules(adds.Service.Guest()).AddSchedule(t.Context(), owner, operations.NewSchedule{When: "now", Text: "say hello"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Due.IsZero() || s.Due.After(began.Add(time.Second)) {
		t.Errorf("now is %v", s.Due)
	}
	polltest.Until(t, "it is kept", func() bool {
		runs, err := schedules.New(adds.DB).ScheduleRuns(t.Context(), s.ID, 1)
		return err == nil && len(runs) == 1
	})
	if took := time.Since(began); took > 14*time.Second { // by itself it looks every 15 seconds
		t.Errorf("it was kept after %s", took)
	}
}
