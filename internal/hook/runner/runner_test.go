package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/hook"
	"chorus/internal/journal"
	"chorus/internal/polltest"
	"chorus/internal/store"
	"chorus/internal/store/hooks"
	"chorus/internal/store/storetest"
)

var (
	ada    = chat.Principal{Kind: chat.LocalUser, ID: "ada", Roles: []string{"owner"}}
	thread = chat.ThreadID("web:local/ada:01x@main")
	begin  = time.Date(2026, 11, 17, 9, 0, 0, 0, time.UTC)
)

// worker is a fake of what the service does.
type worker struct {
	mu     sync.Mutex
	steps  map[string]int // by run: how often a command was begun
	asked  map[string]int // by run: how often a prompt was given; the second time changes nothing
	acts   map[string]int
	atOnce int
	most   int
	blind  bool
	step   func(ctx context.Context, r hook.Run) hook.Result
	wait   func(ctx context.Context, waits func()) (Answer, error)
}

func newWorker() *worker {
	return &worker{steps: map[string]int{}, asked: map[string]int{}, acts: map[string]int{}}
}

func (w *worker) Sees(context.Context, chat.Principal, hook.Event) (bool, error) {
	return !w.blind, nil
}
func (w *worker) MayRun(context.Context, hook.Hook) (string, error) { return "", nil }
func (w *worker) Prompt(h hook.Hook, r hook.Run) string {
	return hook.Values{Event: r.Event, Steps: r.Results}.Render(h.Template)
}

func (w *worker) Step(ctx context.Context, _ hook.Hook, r hook.Run, _ int) hook.Result {
	w.mu.Lock()
	w.steps[r.ID]++
	w.atOnce++
	w.most = max(w.most, w.atOnce)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.atOnce--
		w.mu.Unlock()
	}()
	if w.step != nil {
		return w.step(ctx, r)
	}
	return hook.Result{Stdout: "out"}
}

func (w *worker) Ask(_ context.Context, h hook.Hook, r hook.Run) (chat.ThreadID, int64, string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[r.ID]++
	return chat.ThreadID("hook:" + h.ID + ":" + r.ID + "@main"), 1, "", nil
}

func (w *worker) Await(ctx context.Context, _ chat.ThreadID, _ int64, waits func()) (Answer, error) {
	if w.wait != nil {
		return w.wait(ctx, waits)
	}
	return Answer{Text: "fine", Tokens: 7, Cost: 3}, nil
}

func (w *worker) Act(_ context.Context, _ hook.Hook, r hook.Run, _ int) hook.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts[r.ID]++
	return hook.Result{Content: "done"}
}

// rows are all that tests read and write.
type rows struct {
	*store.DB
	*hooks.Store
}

type bench struct {
	t    *testing.T
	path string
	db   rows
	bus  *bus.Bus
	mu   sync.Mutex
	now  time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, path: filepath.Join(storetest.FreshHome(t), "chorus.db"), bus: &bus.Bus{}, now: begin}
	b.open()
	if _, err := b.db.Commit(t.Context(), journal.Commit{Thread: thread, Create: &journal.Thread{ID: thread, Owner: ada}}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) open() {
	b.t.Helper()
	db, err := store.Open(b.t.Context(), store.Options{Path: b.path, Now: b.clock})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = db.Close() })
	b.db = rows{db, hooks.New(db)}
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bench) hook(h hook.Hook) hook.Hook {
	b.t.Helper()
	h.Owner, h.Agent, h.Enabled, h.Created, h.Updated, h.Since = ada, "main", true, b.clock(), b.clock(), b.clock()
	h.Due = h.Trigger.Next(b.clock())
	if added, err := b.db.AddHook(b.t.Context(), h, ""); err != nil || !added {
		b.t.Fatal(added, err)
	}
	return h
}

// ended writes that a run of the thread ended.
func (b *bench) ended(n int, by chat.Principal) {
	b.t.Helper()
	run := fmt.Sprint("run", n)
	row, err := b.db.Take(b.t.Context(), thread)
	if err != nil {
		b.t.Fatal(err)
	}
	_, err = b.db.Commit(b.t.Context(), journal.Commit{Thread: thread, Epoch: row.Epoch, Events: []chat.Event{
		{Run: run, Body: chat.RunStarted{Run: run, Principal: by}}, {Run: run, Body: chat.RunEnded{Run: run, Reason: chat.EndDone}}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) runner(w Worker) *Runner {
	return &Runner{DB: b.db, Sources: []Source{NewJournal(b.db, b.bus)}, Worker: w, Now: b.clock, Log: slog.New(slog.DiscardHandler)}
}

// look looks until there is nothing left to do.
func (b *bench) look(r *Runner) {
	b.t.Helper()
	for range 50 {
		if _, err := r.Look(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		r.Wait()
		if left, err := b.db.UnfinishedHookRuns(b.t.Context()); err != nil {
			b.t.Fatal(err)
		} else if len(left) == 0 {
			return
		}
	}
	b.t.Fatal("runs do not end")
}

func (b *bench) runs(id string) []hook.Run {
	b.t.Helper()
	runs, err := b.db.HookRuns(b.t.Context(), id, 200)
	if err != nil {
		b.t.Fatal(err)
	}
	return runs
}

var onCompleted = hook.Trigger{Type: hook.OnEvent, Event: "completed"}

func TestAnEventIsARun(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	b.ended(0, ada) // before there was a hook
	b.pass(time.Minute)
	b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: onCompleted, Steps: []hook.Step{{Type: hook.Shell, Command: "x"}}, Template: "{{step_0}} {{event.stopReason}} {{event.agent}}",
		Actions: []hook.Action{{Type: hook.Say}}, Cooldown: time.Hour}})
	r := b.runner(w)
	b.look(r)
	if runs := b.runs("h"); len(runs) != 0 {
		t.Fatalf("what was before the hook triggered %+v", runs)
	}
	b.ended(1, ada)
	b.ended(2, ada) // within the cooldown
	b.look(r)
	runs := b.runs("h")
	if len(runs) != 1 || runs[0].State != hook.Completed || runs[0].Prompt != "out done main" || runs[0].Answer != "fine" || runs[0].Tokens != 7 || runs[0].Reason != "event:completed" || len(runs[0].Done) != 1 {
		t.Fatalf("%+v", runs)
	}
	if h, err := b.db.Hook(t.Context(), "h"); err != nil || h.Passed != 1 || !strings.Contains(h.PassedWhy, "cooldown") {
		t.Errorf("%+v %v", h, err)
	}
	// A server that is started again reads on where the other one stood.
	b.pass(2 * time.Hour)
	b.look(b.runner(w))
	if runs := b.runs("h"); len(runs) != 1 {
		t.Errorf("after a restart there are %d runs", len(runs))
	}
	// What its owner may not see triggers nothing.
	w.blind = true
	b.ended(3, ada)
	b.look(r)
	if runs := b.runs("h"); len(runs) != 1 {
		t.Errorf("somebody else's conversation triggered it: %d runs", len(runs))
	}
}

// A hook that triggered itself ran for ever.
func TestAHookIsNotTriggeredByItself(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	h := b.hook(hook.Hook{ID: "h", Name: "h", Definition: hook.Definition{Trigger: onCompleted, Template: "x"}})
	acting, err := hook.ActingFor(h, chat.Principal{})
	if err != nil {
		t.Fatal(err)
	}
	b.ended(1, acting)
	b.look(b.runner(w))
	runs := b.runs("h")
	if len(runs) != 1 || runs[0].State != hook.Skipped || !strings.Contains(runs[0].Why, "its own run") || len(w.asked) != 0 {
		t.Errorf("%+v", runs)
	}
}

// Killed after the trigger was written: the run is carried out by the next start, once.
func TestKilledBetweenTriggerAndRun(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: onCompleted, Steps: []hook.Step{{Type: hook.Shell, Command: "x"}}, Template: "x"}})
	b.ended(1, ada)
	first := b.runner(w)
	if err := first.events(t.Context()); err != nil {
		t.Fatal(err)
	}
	if runs := b.runs("h"); len(runs) != 1 || runs[0].State != hook.Waiting {
		t.Fatalf("%+v", runs)
	}
	b.open() // another process
	b.look(b.runner(w))
	runs := b.runs("h")
	if len(runs) != 1 || runs[0].State != hook.Completed || w.steps[runs[0].ID] != 1 || w.asked[runs[0].ID] != 1 {
		t.Errorf("%+v %+v", runs, w)
	}
}

// Killed while a command ran: nobody knows what it had done, so it is not run again, and the record says so.
func TestKilledWhileACommandRan(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: onCompleted, Steps: []hook.Step{{Type: hook.Shell, Command: "x"}}, Template: "x"}})
	b.ended(1, ada)
	ctx, kill := context.WithCancel(t.Context())
	running := make(chan struct{})
	w.step = func(ctx context.Context, _ hook.Run) hook.Result { close(running); <-ctx.Done(); return hook.Result{} }
	first := b.runner(w)
	if _, err := first.Look(ctx); err != nil {
		t.Fatal(err)
	}
	<-running
	kill()
	first.Wait()
	w.step = nil
	b.look(b.runner(w))
	runs := b.runs("h")
	if len(runs) != 1 || runs[0].State != hook.Failed || !strings.Contains(runs[0].Why, "not run again") || w.steps[runs[0].ID] != 1 {
		t.Errorf("%+v %+v", runs, w.steps)
	}
}

// Killed while the model answered: the next start waits for the same answer.
func TestKilledWhileTheModelAnswered(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: onCompleted, Steps: []hook.Step{{Type: hook.Shell, Command: "x"}}, Template: "x", Actions: []hook.Action{{Type: hook.Say}}}})
	b.ended(1, ada)
	ctx, kill := context.WithCancel(t.Context())
	running := make(chan struct{})
	w.wait = func(ctx context.Context, _ func()) (Answer, error) {
		close(running)
		<-ctx.Done()
		return Answer{}, ctx.Err()
	}
	first := b.runner(w)
	if _, err := first.Look(ctx); err != nil {
		t.Fatal(err)
	}
	<-running
	kill()
	first.Wait()
	w.wait = nil
	b.look(b.runner(w))
	runs := b.runs("h")
	if len(runs) != 1 || runs[0].State != hook.Completed || w.asked[runs[0].ID] != 1 || w.steps[runs[0].ID] != 1 || w.acts[runs[0].ID] != 1 {
		t.Errorf("%+v %+v", runs, w)
	}
}

// Starts and stops in quick succession, while things happen: each event is one run, and no command runs twice.
func TestRestartStorm(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: onCompleted, Steps: []hook.Step{{Type: hook.Shell, Command: "x"}}, Template: "x", Actions: []hook.Action{{Type: hook.Say}}}})
	const events = 30
	for n := range events {
		b.ended(n, ada)
		b.pass(10 * time.Second) // the limit of runs in a minute is not the point here
		ctx, kill := context.WithTimeout(t.Context(), time.Duration(n%5)*2*time.Millisecond)
		r := b.runner(w)
		r.Run(ctx)
		kill()
	}
	b.look(b.runner(w))
	runs := b.runs("h")
	h, err := b.db.Hook(t.Context(), "h")
	if err != nil || len(runs)+h.Passed != events {
		t.Errorf("%d runs and %d passed of %d events, %v", len(runs), h.Passed, events, err)
	}
	for _, r := range runs {
		if !r.Over() || w.steps[r.ID] > 1 || r.State == hook.Completed && (w.steps[r.ID] != 1 || w.acts[r.ID] < 1) {
			t.Errorf("%s: %s %q, %d commands, %d actions", r.ID, r.State, r.Why, w.steps[r.ID], w.acts[r.ID])
		}
	}
}

// A week in which nothing happens asks no model, also with hooks that look every hour.
func TestAnIdleWeekAsksNoModel(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	zero := 0
	w.step = func(context.Context, hook.Run) hook.Result { return hook.Result{Exit: &zero} }
	b.hook(hook.Hook{ID: "events", Definition: hook.Definition{Trigger: onCompleted, Template: "x"}})
	trigger, err := hook.ParseTrigger([]byte(`{"type":"periodic","interval_seconds":3600}`), nil, begin)
	if err != nil {
		t.Fatal(err)
	}
	b.hook(hook.Hook{ID: "hourly", Definition: hook.Definition{Trigger: trigger, Steps: []hook.Step{{Type: hook.Shell, Command: "make test", SkipIfExitZero: true}}, Template: "x"}})
	r := b.runner(w)
	looks := 0
	for end := begin.AddDate(0, 0, 7); b.clock().Before(end); looks++ {
		b.look(r)
		next, err := b.db.NextHook(t.Context())
		if err != nil || next.IsZero() {
			t.Fatal(next, err)
		}
		b.mu.Lock()
		b.now = next
		b.mu.Unlock()
	}
	runs := b.runs("hourly")
	if len(w.asked) != 0 || len(runs) < 160 || looks > 170 {
		t.Errorf("%d prompts, %d runs, %d looks", len(w.asked), len(runs), looks)
	}
	for _, run := range runs {
		if run.State != hook.Skipped || run.Why != "step_0: exit code 0 (skip_llm_if_exit_zero)" {
			t.Fatalf("%+v", run)
		}
	}
	// A week in which the server was off is one run.
	b.pass(7 * 24 * time.Hour)
	before := len(b.runs("hourly"))
	b.look(r)
	if after := len(b.runs("hourly")); after != before+1 {
		t.Errorf("%d runs more", after-before)
	}
}

// One that hangs holds up no other, two run at the same time, and one that waits for a person makes room.
func TestLimitsHold(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	for n := range 5 {
		b.hook(hook.Hook{ID: fmt.Sprint("h", n), Definition: hook.Definition{Trigger: onCompleted, Steps: []hook.Step{{Type: hook.Shell, Command: "x"}}, Template: "x"}})
	}
	w.step = func(context.Context, hook.Run) hook.Result { time.Sleep(5 * time.Millisecond); return hook.Result{} }
	release := make(chan struct{})
	w.wait = func(ctx context.Context, waits func()) (Answer, error) {
		waits()
		select {
		case <-release:
		case <-ctx.Done():
		}
		return Answer{}, ctx.Err()
	}
	b.ended(1, ada)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r := b.runner(w)
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	polltest.Until(t, "all five have asked", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.asked) == 5
	})
	close(release)
	polltest.Until(t, "all five are over", func() bool {
		left, err := b.db.UnfinishedHookRuns(ctx)
		return err == nil && len(left) == 0
	})
	stop()
	<-done
	if len(w.asked) != 5 || w.most > hook.AtOnce {
		t.Errorf("%d asked, %d at once", len(w.asked), w.most)
	}
}

func TestStepsThatAreDeniedEndARun(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	w.step = func(context.Context, hook.Run) hook.Result {
		return hook.Result{Denied: true, Error: "it must be asked for"}
	}
	b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: onCompleted, Steps: []hook.Step{{Type: hook.Shell, Command: "x"}}, Template: "x"}})
	b.ended(1, ada)
	b.look(b.runner(w))
	if runs := b.runs("h"); len(runs) != 1 || runs[0].State != hook.Failed || runs[0].Why != "step_0: it must be asked for" || len(w.asked) != 0 {
		t.Errorf("%+v", runs)
	}
}

// The model fails: the run has failed, with its words.
func TestAModelThatFails(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	w.wait = func(context.Context, func()) (Answer, error) { return Answer{Failed: "overloaded"}, nil }
	b.hook(hook.Hook{ID: "h", Definition: hook.Definition{Trigger: onCompleted, Template: "x", Actions: []hook.Action{{Type: hook.Say}}}})
	b.ended(1, ada)
	b.look(b.runner(w))
	if runs := b.runs("h"); len(runs) != 1 || runs[0].State != hook.Failed || runs[0].Why != "overloaded" || len(w.acts) != 0 {
		t.Errorf("%+v", runs)
	}
}

func TestLongEventsAreCut(t *testing.T) {
	t.Parallel()
	data, _ := json.Marshal(map[string]any{"text": strings.Repeat("ä", 1<<20), "list": make([]int, 10), "deep": map[string]string{"x": strings.Repeat("y", 1<<20)}})
	got := hook.BoundData(data, map[string]string{"agent": "main", "text": "not this"})
	var object map[string]any
	if len(got) > 64<<10 || json.Unmarshal(got, &object) != nil || object["agent"] != "main" || !strings.HasPrefix(object["text"].(string), "ää") {
		t.Errorf("%d bytes", len(got))
	}
}
