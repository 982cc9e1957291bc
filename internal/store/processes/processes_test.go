package processes

import (
	"errors"
	"slices"
	"testing"
	"time"

	"chorus/internal/background"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

func TestProcesses(t *testing.T) {
	t.Parallel()
	storetest.Both(t, testProcesses)
}

func testProcesses(t *testing.T, open func() *store.DB) {
	db := New(open())
	ctx, at := t.Context(), time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada", Roles: []string{"owner"}}
	first := background.Process{ID: "a", Thread: "web:local/ada:1@main", Call: "run/1", Owner: ada, Command: "make", Dir: "/w", State: background.Starting, Timeout: time.Hour, Started: at,
		Hooks: []background.Hook{{Rule: background.Rule{On: background.OnExit, If: background.AnyExit, Do: background.InjectContext, Message: "look"}}}}
	// One that a hook started belongs to the same person.
	second := background.Process{ID: "b", Thread: "web:local/ada:2@main", Owner: first.Principal(), Command: "true", State: background.Running, Started: at.Add(time.Second)}
	for _, p := range []background.Process{first, second} {
		if added, err := db.AddProcess(ctx, p); err != nil || !added {
			t.Fatal(added, err)
		}
	}
	if again, err := db.AddProcess(ctx, first); err != nil || again {
		t.Errorf("added twice: %t, %v", again, err)
	}
	got, err := db.Process(ctx, "a")
	if err != nil || !got.Owner.Same(ada) || got.Timeout != time.Hour || len(got.Hooks) != 1 || got.Hooks[0].Message != "look" || !got.Started.Equal(at) || !got.Ended.IsZero() {
		t.Errorf("read back as %+v, %v", got, err)
	}
	if got, err := db.Process(ctx, "b"); err != nil || got.Owner.Depth() != 1 || got.Owner.For == nil || got.Owner.For.ID != "ada" {
		t.Errorf("read back as %+v, %v", got, err)
	}
	if _, err := db.Process(ctx, "c"); !errors.Is(err, journal.ErrUnknown) {
		t.Error(err)
	}
	nobodys := database.Question{Query: `SELECT 1 FROM processes WHERE thread_id = ?`, Args: []any{"web:local/eve:1@main"}}
	if some, err := db.db.Any(ctx, AnyOpen(), nobodys, AnyOpen()); err != nil || !slices.Equal(some, []bool{true, false, true}) {
		t.Errorf("are there any: %t, %v", some, err)
	}
	// Also while somebody writes, which holds SQLite's writing connection.
	err = db.db.Write(ctx, func(tx database.Tx) error {
		some, err := db.db.Any(ctx, AnyOpen(), nobodys)
		if !slices.Equal(some, []bool{true, false}) {
			t.Errorf("are there any meanwhile: %t", some)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if open, err := db.OpenProcesses(ctx); err != nil || len(open) != 2 || open[0].ID != "a" {
		t.Errorf("%+v %v", open, err)
	}

	// Two that look after it: one writes.
	got.State, got.Exit, got.Ended, got.ReadTo, got.Hooks[0].Fires = background.Exited, 3, at.Add(time.Minute), 99, 1
	fired := []background.Fired{{Hook: 0, N: 1, Do: background.InjectContext, State: background.Done, Seq: 7, At: at.Add(time.Minute)}}
	if moved, err := db.MoveProcess(ctx, got, fired); err != nil || !moved {
		t.Errorf("not written: %t, %v", moved, err)
	}
	if moved, err := db.MoveProcess(ctx, got, fired); err != nil || moved {
		t.Errorf("written twice: %t, %v", moved, err)
	}
	if now, err := db.Process(ctx, "a"); err != nil || now.State != background.Exited || now.Exit != 3 || now.ReadTo != 99 || now.Hooks[0].Fires != 1 || !now.Ended.Equal(at.Add(time.Minute)) {
		t.Errorf("%+v %v", now, err)
	}
	if fires, err := db.ProcessFires(ctx, "a", 10); err != nil || len(fires) != 1 || fires[0].Seq != 7 {
		t.Errorf("%+v %v", fires, err)
	}
	if n, err := db.FiresSince(ctx, "local:ada", at); err != nil || n != 1 {
		t.Errorf("%d %v", n, err)
	}
	if n, err := db.FiresSince(ctx, "local:ada", at.Add(time.Hour)); err != nil || n != 0 {
		t.Errorf("%d %v", n, err)
	}
	for owner, want := range map[string]int{"": 2, "local:ada": 2, "local:bob": 0} {
		if list, err := db.Processes(ctx, owner, 10); err != nil || len(list) != want {
			t.Errorf("%s: %d %v", owner, len(list), err)
		}
	}
	if list, err := db.ProcessesOf(ctx, "web:local/ada:2@main", 10); err != nil || len(list) != 1 || list[0].ID != "b" {
		t.Errorf("%+v %v", list, err)
	}
	if open, err := db.OpenProcesses(ctx); err != nil || len(open) != 1 {
		t.Errorf("%+v %v", open, err)
	}
}
