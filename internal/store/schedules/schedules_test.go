package schedules

import (
	"errors"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/schedule"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

func TestSchedules(t *testing.T) {
	t.Parallel()
	storetest.Both(t, testSchedules)
}

func testSchedules(t *testing.T, open func() *store.DB) {
	db := New(open())
	ctx, at := t.Context(), time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada", Roles: []string{"owner"}}
	add := func(id string, due time.Time) schedule.Schedule {
		t.Helper()
		s := schedule.Schedule{ID: id, Owner: ada, Kind: schedule.Timer, Target: schedule.Target{Adapter: "discord", Channel: "7", Agent: "cora"}, Thread: "web:local/ada:1@main", Words: "hello", Said: "daily", Spec: "0 9 * * *", Zone: "UTC", CatchUp: "once",
			Jitter: time.Minute, Due: due, Begins: due.Add(time.Second), Created: at}
		if added, err := db.AddSchedule(ctx, s); err != nil || !added {
			t.Fatal(added, err)
		}
		return s
	}
	late, early := add("b", at.Add(time.Hour)), add("a", at)
	if again, err := db.AddSchedule(ctx, early); err != nil || again {
		t.Errorf("added twice: %t, %v", again, err)
	}
	if got, err := db.Schedule(ctx, "a"); err != nil || !got.Due.Equal(at) || !got.Begins.Equal(at.Add(time.Second)) || !got.Owner.Same(ada) || got.Jitter != time.Minute || got.Words != "hello" {
		t.Errorf("read back as %+v, %v", got, err)
	}
	if next, err := db.NextSchedule(ctx, at.Add(-time.Hour)); err != nil || !next.Equal(early.Begins) {
		t.Errorf("the next is at %v, %v", next, err)
	}
	if due, err := db.DueSchedules(ctx, at, 10); err != nil || len(due) != 0 {
		t.Errorf("due before its jitter: %v, %v", due, err)
	}
	if due, err := db.DueSchedules(ctx, at.Add(2*time.Hour), 10); err != nil || len(due) != 2 || due[0].ID != "a" {
		t.Errorf("due: %v, %v", due, err)
	}

	// Two that found it due: one moves it, and what became of the time stands there once.
	runs := []schedule.Run{{Due: at, State: schedule.Said, Seq: 7, At: at}}
	tomorrow := at.AddDate(0, 0, 1)
	if moved, err := db.MoveSchedule(ctx, early, schedule.Schedule{Due: tomorrow, Begins: tomorrow, Told: true}, runs); err != nil || !moved {
		t.Errorf("not moved: %t, %v", moved, err)
	}
	if moved, err := db.MoveSchedule(ctx, early, schedule.Schedule{Due: tomorrow.AddDate(0, 0, 1), Begins: tomorrow}, runs); err != nil || moved {
		t.Errorf("moved twice: %t, %v", moved, err)
	}
	if got, err := db.ScheduleRuns(ctx, "a", 10); err != nil || len(got) != 1 || got[0].Seq != 7 || !got[0].Due.Equal(at) {
		t.Errorf("due times: %+v, %v", got, err)
	}

	if got, err := db.Schedule(ctx, "a"); err != nil || !got.Told || got.Kind != schedule.Timer || got.Target != (schedule.Target{Adapter: "discord", Channel: "7", Agent: "cora"}) {
		t.Errorf("moved it reads %+v, %v", got, err)
	}
	// A thread that is opened for a due time may be there before the schedule is moved on, or after.
	opened := schedule.Run{Due: at, State: schedule.Said, Thread: "discord:1/7:9@cora", Seq: 3, At: at}
	if err := db.ScheduleOpened(ctx, "a", opened); err != nil {
		t.Fatal(err)
	}
	if got, err := db.ScheduleRuns(ctx, "a", 10); err != nil || len(got) != 1 || got[0].Thread != opened.Thread || got[0].Seq != 3 {
		t.Errorf("due times: %+v, %v", got, err)
	}
	if in, err := db.SchedulesIn(ctx, early.Thread, 10); err != nil || len(in) != 2 || in[0].ID != "b" {
		t.Errorf("in the thread: %v, %v", in, err)
	}

	if set, err := db.SchedulesSet(ctx, early.Thread, at); err != nil || len(set) != 2 {
		t.Errorf("set in the thread: %v, %v", set, err)
	}
	if err := db.PauseSchedule(ctx, "b", true, late.Due, late.Begins); err != nil {
		t.Fatal(err)
	}
	if next, err := db.NextSchedule(ctx, at.Add(-time.Hour)); err != nil || !next.Equal(tomorrow) {
		t.Errorf("the paused one is next: %v, %v", next, err)
	}
	if _, err := db.MoveSchedule(ctx, schedule.Schedule{ID: "a", Due: tomorrow}, schedule.Schedule{}, nil); err != nil {
		t.Fatal(err)
	}
	if next, err := db.NextSchedule(ctx, at.Add(-time.Hour)); err != nil || !next.IsZero() {
		t.Errorf("nothing is left, and the next is %v, %v", next, err)
	}
	if mine, err := db.Schedules(ctx, "local:ada"); err != nil || len(mine) != 2 {
		t.Errorf("ada's: %v, %v", mine, err)
	}
	if others, err := db.Schedules(ctx, "local:bob"); err != nil || len(others) != 0 {
		t.Errorf("bob's: %v, %v", others, err)
	}
	if there, err := db.RemoveSchedule(ctx, "a"); err != nil || !there {
		t.Errorf("not removed: %t, %v", there, err)
	}
	if _, err := db.Schedule(ctx, "a"); !errors.Is(err, journal.ErrUnknown) {
		t.Errorf("removed, and %v", err)
	}
	if _, err := db.MoveSchedule(ctx, schedule.Schedule{ID: "a", Due: at}, schedule.Schedule{Due: tomorrow, Begins: tomorrow}, runs); err != nil {
		t.Fatal(err)
	}
	if got, err := db.ScheduleRuns(ctx, "a", 10); err != nil || len(got) != 0 {
		t.Errorf("a removed one left %v, %v", got, err)
	}
}

// A schedule of a deleted conversation went on speaking in it until that was erased. It is not due any more, and is again when the conversation is back.
func TestSchedulesOfDeletedConversations(t *testing.T) {
	t.Parallel()
	storetest.Both(t, func(t *testing.T, open func() *store.DB) {
		all := open()
		db, ctx, at := New(all), t.Context(), time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
		ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
		const thread = chat.ThreadID("web:local/ada:1@main")
		if _, err := all.Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{ID: thread, Agent: "main", Owner: ada}}); err != nil {
			t.Fatal(err)
		}
		for id, s := range map[string]schedule.Schedule{"there": {Thread: thread}, "channel": {Target: schedule.Target{Adapter: "discord", Channel: "7", Agent: "main"}}} {
			s.ID, s.Owner, s.Words, s.Said, s.Spec, s.Zone, s.CatchUp, s.Due, s.Begins, s.Created = id, ada, "hello", "daily", "0 9 * * *", "UTC", "once", at, at, at
			if _, err := db.AddSchedule(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			listing string
			due     int
		}{{"", 2}, {store.Deleted, 1}, {"pinned", 2}, {store.Erased, 1}} {
			if err := all.SetThread(ctx, thread, store.ThreadChange{Listing: &step.listing}); err != nil {
				t.Fatal(err)
			}
			due, err := db.DueSchedules(ctx, at, 10)
			if err != nil || len(due) != step.due {
				t.Errorf("%q: %d are due, %v", step.listing, len(due), err)
			}
			if s, err := db.Schedule(ctx, "there"); err != nil || s.Held != (step.due == 1) {
				t.Errorf("%q: held is %t, %v", step.listing, s.Held, err)
			}
		}
		if _, err := db.RemoveSchedule(ctx, "channel"); err != nil {
			t.Fatal(err)
		}
		if next, err := db.NextSchedule(ctx, at.Add(-time.Hour)); err != nil || !next.IsZero() {
			t.Errorf("the next is %v, %v", next, err)
		}
	})
}
