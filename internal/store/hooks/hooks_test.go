package hooks

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/hook"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

var hookOwner = chat.Principal{Kind: chat.LocalUser, ID: "ada", Roles: []string{"owner"}}

func addHook(t *testing.T, db *Store, h hook.Hook) hook.Hook {
	t.Helper()
	h.Owner, h.Enabled, h.Created, h.Updated = hookOwner, true, h.Due.Add(-time.Hour), h.Due.Add(-time.Hour)
	if added, err := db.AddHook(t.Context(), h, ""); err != nil || !added {
		t.Fatal(added, err)
	}
	got, err := db.Hook(t.Context(), h.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestHooks(t *testing.T) {
	t.Parallel()
	storetest.Both(t, testHooks)
}

func testHooks(t *testing.T, open func() *store.DB) {
	db := New(open())
	ctx, at := t.Context(), time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
	trigger := hook.Trigger{Type: hook.Periodic, Interval: 3600}
	h := addHook(t, db, hook.Hook{ID: "nightly", Name: "Nightly", Project: "p", Agent: "main", Dir: "/srv", Approved: "d", Due: at,
		Definition: hook.Definition{Trigger: trigger, Steps: []hook.Step{{Type: hook.Shell, Command: "make"}}, Template: "{{step_0}}", Model: "demo/echo", Cooldown: time.Minute}})
	if h.Steps[0].Command != "make" || h.Trigger.Interval != trigger.Interval || h.Cooldown != time.Minute || !h.Owner.Same(hookOwner) || !h.Due.Equal(at) || !h.LastAt.IsZero() || h.Model != "demo/echo" {
		t.Errorf("read back as %+v", h)
	}
	if added, err := db.AddHook(ctx, h, "k"); err != nil || added {
		t.Errorf("added twice: %t, %v", added, err)
	}
	if due, err := db.DueHooks(ctx, at.Add(-time.Second), 10); err != nil || len(due) != 0 {
		t.Errorf("due too early: %v %v", due, err)
	}
	if next, err := db.NextHook(ctx); err != nil || !next.Equal(at) {
		t.Errorf("the next is due at %v, %v", next, err)
	}
	if on, err := db.EventHooks(ctx); err != nil || len(on) != 0 {
		t.Errorf("events trigger %v, %v", on, err)
	}
	keyed := h
	keyed.ID = "of-a-key"
	if added, err := db.AddHook(ctx, keyed, "k"); err != nil || !added {
		t.Errorf("not added: %t, %v", added, err)
	}
	if got, err := db.HookMadeBy(ctx, "k"); err != nil || got.ID != keyed.ID {
		t.Errorf("made with the key: %+v, %v", got, err)
	}
	if there, err := db.RemoveHook(ctx, keyed.ID); err != nil || !there {
		t.Errorf("not removed: %t, %v", there, err)
	}
	read := h.Updated
	h.Template, h.Updated = "other", at
	if changed, err := db.UpdateHook(ctx, h, read); err != nil || !changed {
		t.Errorf("not changed: %t, %v", changed, err)
	}
	if changed, err := db.UpdateHook(ctx, h, read); err != nil || changed {
		t.Errorf("somebody else's change was written over: %t, %v", changed, err)
	}
	if mine, err := db.Hooks(ctx, "local:ada"); err != nil || len(mine) != 1 || mine[0].Template != "other" {
		t.Errorf("%v %v", mine, err)
	}
	if there, err := db.RemoveHook(ctx, "nightly"); err != nil || !there {
		t.Errorf("%t %v", there, err)
	}
	if _, err := db.Hook(ctx, "nightly"); !errors.Is(err, journal.ErrUnknown) {
		t.Errorf("removed, and %v", err)
	}
}

// One hook that nobody can read does not hold up the others.
func TestAHookThatCannotBeReadHoldsUpNothing(t *testing.T) {
	t.Parallel()
	storetest.Both(t, testAHookThatCannotBeReadHoldsUpNothing)
}

func testAHookThatCannotBeReadHoldsUpNothing(t *testing.T, open func() *store.DB) {
	db := New(open())
	at := time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
	for _, id := range []string{"a", "b"} {
		addHook(t, db, hook.Hook{ID: id, Due: at, Definition: hook.Definition{Trigger: hook.Trigger{Type: hook.Periodic}}})
	}
	if err := db.db.Write(t.Context(), func(tx database.Tx) error {
		return tx.Exec(`UPDATE hooks SET definition = '{"trigger":"periodic"}' WHERE id = 'a'`)
	}); err != nil {
		t.Fatal(err)
	}
	due, err := db.DueHooks(t.Context(), at, 10)
	if err != nil || len(due) != 2 || due[0].Enabled || !strings.Contains(due[0].PassedWhy, "cannot be read") || !due[1].Enabled {
		t.Errorf("%+v %v", due, err)
	}
}

func TestTriggersBecomeRunsOnce(t *testing.T) {
	t.Parallel()
	storetest.Both(t, testTriggersBecomeRunsOnce)
}

func testTriggersBecomeRunsOnce(t *testing.T, open func() *store.DB) {
	db := New(open())
	ctx, at := t.Context(), time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
	thread := chat.ThreadID("web:local/ada:1@main")
	if _, err := db.db.Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{ID: thread, Owner: hookOwner}}); err != nil {
		t.Fatal(err)
	}
	h := addHook(t, db, hook.Hook{ID: "h", Name: "h", Due: at, Definition: hook.Definition{Trigger: hook.Trigger{Type: hook.Periodic}, Cooldown: time.Hour}})
	run := func(id string) hook.Run {
		return hook.Run{ID: id, Hook: "h", Reason: "event:completed", State: hook.Waiting, Acting: chat.Principal{Kind: chat.HookRule, ID: "h", For: &hookOwner}, Progress: hook.Progress{Event: []byte(`{"a":1}`)}}
	}
	event := hook.Triggered{Hook: h, Run: run("r1"), Reader: "hooks", Thread: thread, Seq: 5, At: at}
	for i, again := range []bool{false, true} {
		if out, err := db.TriggerHook(ctx, event); err != nil || out.Again != again || out.Run != "r1" {
			t.Errorf("time %d: %+v %v", i, out, err)
		}
	}
	if seq, err := db.db.Reader(ctx, "hooks", thread); err != nil || seq != 5 {
		t.Errorf("the reader stands at %d, %v", seq, err)
	}
	if got, err := db.HookRun(ctx, "r1"); err != nil || got.Reason != "event:completed" {
		t.Errorf("the run reads %+v, %v", got, err)
	}
	// What comes within the cooldown is counted, and the reader has read it.
	event.Run, event.Seq, event.At = run("r2"), 6, at.Add(time.Minute)
	if out, err := db.TriggerHook(ctx, event); err != nil || !strings.Contains(out.Why, "cooldown") {
		t.Errorf("%+v %v", out, err)
	}
	if seq, err := db.db.Reader(ctx, "hooks", thread); err != nil || seq != 6 {
		t.Errorf("the reader stands at %d, %v", seq, err)
	}
	if got, err := db.Hook(ctx, "h"); err != nil || got.Passed != 1 || !got.LastAt.Equal(at) || !got.Due.Equal(at) {
		t.Errorf("%+v %v", got, err)
	}
	if runs, err := db.UnfinishedHookRuns(ctx); err != nil || len(runs) != 1 || string(runs[0].Event) != `{"a":1}` || !runs[0].Acting.Person().Same(hookOwner) {
		t.Errorf("%+v %v", runs, err)
	}
	done := run("r1")
	done.State, done.Started, done.Ended, done.Answer = hook.Completed, at, at.Add(time.Second), "fine"
	if there, err := db.SaveHookRun(ctx, done); err != nil || !there {
		t.Errorf("%t %v", there, err)
	}
	if got, err := db.HookRuns(ctx, "h", 10); err != nil || len(got) != 1 || got[0].Answer != "fine" || got[0].State != hook.Completed {
		t.Errorf("%+v %v", got, err)
	}
	// A webhook's delivery has its effect once.
	for i, again := range []bool{false, true} {
		out, err := db.TriggerHook(ctx, hook.Triggered{Hook: h, Run: run(fmt.Sprint("w", i)), Delivery: "msg_1", At: at.Add(2 * time.Hour)})
		if err != nil || out.Again != again || out.Run != "w0" {
			t.Errorf("delivery %d: %+v %v", i, out, err)
		}
	}
	// The runs before one of them: the webhook's came later.
	if got, err := db.HookRunsBefore(ctx, "h", hook.Run{}, 1); err != nil || len(got) != 1 || got[0].ID != "w0" {
		t.Errorf("%+v %v", got, err)
	} else if got, err = db.HookRunsBefore(ctx, "h", got[0], 10); err != nil || len(got) != 1 || got[0].ID != "r1" {
		t.Errorf("%+v %v", got, err)
	} else if got, err = db.HookRunsBefore(ctx, "h", got[0], 10); err != nil || len(got) != 0 {
		t.Errorf("%+v %v", got, err)
	}
	if there, err := db.RemoveHook(ctx, "h"); err != nil || !there {
		t.Fatal(err)
	}
	if there, err := db.SaveHookRun(ctx, done); err != nil || there {
		t.Errorf("a run of a removed hook was written: %t %v", there, err)
	}
}

// Several processes that find a hook due begin one run.
func TestADueTimeIsOneRun(t *testing.T) {
	t.Parallel()
	storetest.Both(t, testADueTimeIsOneRun)
}

func testADueTimeIsOneRun(t *testing.T, open func() *store.DB) {

	at := time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
	h := addHook(t, New(open()), hook.Hook{ID: "h", Due: at, Definition: hook.Definition{Trigger: hook.Trigger{Type: hook.Periodic}}})
	var wg sync.WaitGroup
	var mu sync.Mutex
	began := 0
	for i := range 4 {
		db := New(open())
		wg.Go(func() {
			out, err := db.TriggerHook(t.Context(), hook.Triggered{Hook: h, Run: hook.Run{ID: fmt.Sprint(i), Hook: "h", State: hook.Waiting}, Due: at, Next: at.Add(time.Hour), At: at})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if !out.Again && out.Why == "" {
				began++
			}
		})
	}
	wg.Wait()
	if began != 1 {
		t.Errorf("%d runs", began)
	}
}
