package tasks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/pgtest"
	"chorus/internal/store/storetest"
	"chorus/internal/store/tasks"
	"chorus/internal/work"
)

var ada = chat.Principal{Kind: chat.LocalUser, ID: "ada"}

type queue struct {
	*tasks.Tasks
	t   *testing.T
	db  *store.DB
	now time.Time
}

// Every test runs on both dialects.
func TestTasks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, func(*testing.T) *queue){
		"ATaskWaitsForWhatItNeeds":                    testATaskWaitsForWhatItNeeds,
		"TasksCannotWaitForEachOther":                 testTasksCannotWaitForEachOther,
		"AStopSticks":                                 testAStopSticks,
		"QuestionsHoldNoWorker":                       testQuestionsHoldNoWorker,
		"FailuresWaitLongerEachTimeAndThenBlock":      testFailuresWaitLongerEachTimeAndThenBlock,
		"ALimitOfTheProviderPausesWithoutCostingATry": testALimitOfTheProviderPausesWithoutCostingATry,
		"WhatWasSpentStaysSpent":                      testWhatWasSpentStaysSpent,
		"WordsInATasksThreadAreNoAttempt":             testWordsInATasksThreadAreNoAttempt,
		"TasksAreGivenOnce":                           testTasksAreGivenOnce,
		"DeletingLeavesNothingHalf":                   testDeletingLeavesNothingHalf,
		"PagesOfTasksGoOn":                            testPagesOfTasksGoOn,
		"MadeTwiceWithOneKeyIsOneTask":                testMadeTwiceWithOneKeyIsOneTask,
		"TaskOfADeadWorker":                           testTaskOfADeadWorker,
		"NewestFirst":                                 testNewestFirst,
		"Edges":                                       testEdges,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("SQLite", func(t *testing.T) {
				t.Parallel()
				test(t, func(t *testing.T) *queue {
					return open(t, store.Options{Path: filepath.Join(storetest.FreshHome(t), "chorus.db")})
				})
			})
			t.Run("PostgreSQL", func(t *testing.T) {
				t.Parallel()
				test(t, func(t *testing.T) *queue { return open(t, store.Options{URL: pgtest.Database(t)}) })
			})
		})
	}
}

func open(t *testing.T, o store.Options) *queue {
	t.Helper()
	q := &queue{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	o.Now, o.Follow = func() time.Time { return q.now }, tasks.Follow
	db, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	q.db, q.Tasks = db, tasks.New(db, nil)
	q.project("p")
	return q
}

func (q *queue) project(id string) {
	q.t.Helper()
	if made, err := q.CreateProject(q.t.Context(), work.Project{ID: id, Name: id, Weight: 1, MaxRuns: 2, State: work.Active, Owner: ada}); err != nil || !made {
		q.t.Fatal(made, err)
	}
}

func (q *queue) task(title string, needs ...string) work.Task {
	q.t.Helper()
	made, err := q.Create(q.t.Context(), work.NewTask{Task: work.Task{Project: "p", Title: title, Agent: "chorus", Priority: 100, MaxRetries: 3, Owner: ada}, Needs: needs})
	if err != nil {
		q.t.Fatal(err)
	}
	return made
}

func (q *queue) state(id string) work.State {
	q.t.Helper()
	t, err := q.Task(q.t.Context(), id)
	if err != nil {
		q.t.Fatal(err)
	}
	return t.State
}

// assign gives the task to a worker and lets its thread's owner write events, as the engine does.
func (q *queue) assign(t work.Task) (epoch int64) {
	q.t.Helper()
	if _, err := q.Assign(q.t.Context(), work.Assignment{Project: t.Project, Task: t.ID}, 10, time.Hour, "/tmp/x", nil); err != nil {
		q.t.Fatal(err)
	}
	row, err := q.db.Take(q.t.Context(), t.Thread)
	if err != nil {
		q.t.Fatal(err)
	}
	if row.Dir != "/tmp/x" {
		q.t.Errorf("the thread works in %q", row.Dir)
	}
	return row.Epoch
}

func (q *queue) commit(t work.Task, epoch int64, bodies ...chat.Body) {
	q.t.Helper()
	c := journal.Commit{Thread: t.Thread, Epoch: epoch}
	for _, b := range bodies {
		c.Events = append(c.Events, chat.Event{Body: b})
	}
	if _, err := q.db.Commit(q.t.Context(), c); err != nil {
		q.t.Fatal(err)
	}
}

func (q *queue) begin(t work.Task, run string) int64 {
	q.t.Helper()
	epoch := q.assign(t)
	q.commit(t, epoch, chat.Took{Run: run})
	if got := q.state(t.ID); got != work.InProgress {
		q.t.Fatalf("a task whose run began is %s", got)
	}
	return epoch
}

func (q *queue) events(task string) string {
	q.t.Helper()
	list, err := q.Events(q.t.Context(), work.EventFilter{Task: task, Forward: true, Limit: 100})
	if err != nil {
		q.t.Fatal(err)
	}
	var types []string
	for _, e := range list {
		types = append(types, e.Type)
	}
	return strings.Join(types, " ")
}

func testATaskWaitsForWhatItNeeds(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	first := q.task("first")
	second := q.task("second", first.ID)
	third := q.task("third", first.ID, second.ID)
	if q.state(first.ID) != work.Ready || q.state(second.ID) != work.Defined || q.state(third.ID) != work.Defined {
		t.Fatal("only what needs nothing is ready")
	}
	epoch := q.begin(first, "r1")
	q.commit(first, epoch, chat.RunEnded{Run: "r1", Reason: chat.EndDone, Usage: chat.Usage{Input: 90, Output: 10}})
	if q.state(first.ID) != work.Verifying || q.state(second.ID) != work.Defined {
		t.Fatal("a task whose work is not merged yet lets nothing go on")
	}
	if _, err := q.Finish(t.Context(), work.Result{Task: first.ID, Attempt: 1, Outcome: work.OutcomeCompleted, Summary: "did it", Files: []string{"a.go"}}, work.VerifyPassed, true, "system:queue", ""); err != nil {
		t.Fatal(err)
	}
	if days, err := q.SpentDays(t.Context(), "p", q.now.AddDate(0, 0, -1)); err != nil || len(days) != 1 || days[0].Day != "2026-03-01" {
		t.Errorf("days %+v, %v", days, err)
	}
	if q.state(first.ID) != work.Completed || q.state(second.ID) != work.Ready || q.state(third.ID) != work.Defined {
		t.Fatal("the next one is ready with the end of what it needs")
	}
	results, err := q.Results(t.Context(), first.ID)
	if err != nil || len(results) != 1 || results[0].Tokens != 100 || results[0].Summary != "did it" || len(results[0].Files) != 1 {
		t.Errorf("%+v, %v", results, err)
	}
	if got := q.events(first.ID); got != "task.created task.ready task.assigned task.started task.verifying task.completed" {
		t.Error(got)
	}
}

func testTasksCannotWaitForEachOther(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	b := q.task("b", a.ID)
	c := q.task("c", b.ID)
	var cycle *work.CycleError
	if err := q.Depend(t.Context(), a.ID, c.ID, "local:ada"); !errors.As(err, &cycle) || len(cycle.Path) != 4 {
		t.Error(err)
	}
	d := q.task("d")
	if err := q.Depend(t.Context(), d.ID, c.ID, "local:ada"); err != nil || q.state(d.ID) != work.Defined {
		t.Error(err, q.state(d.ID))
	}
	if there, err := q.Undepend(t.Context(), d.ID, c.ID, "local:ada"); err != nil || !there || q.state(d.ID) != work.Ready {
		t.Error(there, err, q.state(d.ID))
	}
	if _, err := q.Create(t.Context(), work.NewTask{Task: work.Task{Project: "p", Title: "x", Agent: "chorus", Owner: ada}, Needs: []string{"nobody"}}); !errors.Is(err, journal.ErrUnknown) {
		t.Error(err)
	}
	if _, err := q.Create(t.Context(), work.NewTask{Task: work.Task{Project: "nowhere", Title: "x", Agent: "chorus", Owner: ada}}); !errors.Is(err, journal.ErrUnknown) {
		t.Error(err)
	}
}

func testAStopSticks(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	epoch := q.begin(a, "r1")
	q.commit(a, 0, chat.AbortAsked{By: "local:ada"})
	if q.state(a.ID) != work.Blocked {
		t.Fatal("stopped with the words that stop it")
	}
	if n, err := q.Running(t.Context()); err != nil || n != 1 {
		t.Errorf("%d tasks hold a worker while the run has not ended, %v", n, err)
	}
	q.commit(a, epoch, chat.RunEnded{Run: "r1", Reason: chat.EndDone}) // it had just finished
	if q.state(a.ID) != work.Blocked {
		t.Error("the end of the run undid the stop")
	}
	if n, err := q.Running(t.Context()); err != nil || n != 0 {
		t.Errorf("%d hold a worker, %v", n, err)
	}
	if r, err := q.Results(t.Context(), a.ID); err != nil || len(r) != 1 || r[0].Outcome != work.OutcomeStopped {
		t.Errorf("%+v, %v", r, err)
	}
}

func testQuestionsHoldNoWorker(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	epoch := q.begin(a, "r1")
	q.commit(a, epoch, chat.ApprovalAsked{ID: "q1", Call: "c1", Name: "shell"})
	if n, err := q.Running(t.Context()); err != nil || n != 0 || q.state(a.ID) != work.WaitingInput {
		t.Error(n, err, q.state(a.ID))
	}
	q.commit(a, 0, chat.ApprovalAnswered{ID: "q1", Call: "c1", By: "local:ada", OK: true})
	if n, err := q.Running(t.Context()); err != nil || n != 1 || q.state(a.ID) != work.InProgress {
		t.Error(n, err, q.state(a.ID))
	}
}

func testFailuresWaitLongerEachTimeAndThenBlock(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	for n, want := range []work.State{work.Ready, work.Ready, work.Blocked} {
		run := fmt.Sprint("r", n)
		epoch := q.begin(a, run)
		q.commit(a, epoch, chat.RunEnded{Run: run, Reason: chat.EndFailed, Error: &chat.Failure{Kind: "network", Message: "cut off"}})
		if got := q.state(a.ID); got != want {
			t.Fatalf("after failure %d: %s", n+1, got)
		}
		if want == work.Ready {
			if _, err := q.Assign(t.Context(), work.Assignment{Project: "p", Task: a.ID}, 10, 0, "", nil); !errors.Is(err, work.ErrMoved) {
				t.Error("begun again at once", err)
			}
			next, err := q.Wake(t.Context(), q.now)
			if err != nil || !next.After(q.now) {
				t.Fatal(next, err)
			}
			q.now = next
		}
	}
}

func testALimitOfTheProviderPausesWithoutCostingATry(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	epoch := q.begin(a, "r")
	q.commit(a, epoch, chat.RunEnded{Run: "r", Reason: chat.EndFailed, Error: &chat.Failure{Kind: "rate_limit", Message: "slow down"}})
	if q.state(a.ID) != work.Paused {
		t.Fatal(q.state(a.ID))
	}
	next, err := q.Wake(t.Context(), q.now)
	if err != nil || next.Sub(q.now) != time.Minute {
		t.Fatal(next, err)
	}
	if _, err := q.Wake(t.Context(), next); err != nil || q.state(a.ID) != work.Ready {
		t.Error(err, q.state(a.ID))
	}
	if got, err := q.Task(t.Context(), a.ID); err != nil || got.Retries != 0 {
		t.Error(got.Retries, err)
	}
}

// What was spent counts once, however often its result is written, and stays spent when its task is deleted: limits would be for nothing.
func testWhatWasSpentStaysSpent(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	epoch := q.begin(a, "r")
	q.commit(a, epoch, chat.RunEnded{Run: "r", Reason: chat.EndDone, Usage: chat.Usage{Input: 700, Output: 300}})
	want := func(when string, since time.Time, tokens int64, done, entries int) {
		t.Helper()
		spent, err := q.SpentBy(t.Context(), since)
		if err != nil {
			t.Fatal(err)
		}
		if tokens == 0 && len(spent) == 0 {
			return
		}
		if len(spent) != 1 || spent[0].Tokens != tokens || spent[0].Done != done || spent[0].Entries != entries {
			t.Errorf("%s: %+v", when, spent)
		}
	}
	want("when its run has ended", q.now.Add(-time.Hour), 1000, 1, 1)
	if _, err := q.Finish(t.Context(), work.Result{Task: a.ID, Attempt: 1, Outcome: work.OutcomeFailed, Kind: work.ErrorConflict}, work.MergeFailed, false, "system:queue", "merge conflict"); err != nil {
		t.Fatal(err)
	}
	want("when its merge failed", q.now.Add(-time.Hour), 1000, 0, 1)
	q.now = q.now.Add(2 * time.Hour)
	if _, err := q.Delete(t.Context(), a.ID, "local:ada", func(work.Task, int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	want("when it is deleted", q.now.Add(-3*time.Hour), 1000, 0, 1)
	want("in the last hour", q.now.Add(-time.Hour), 0, 0, 0)
}

func testWordsInATasksThreadAreNoAttempt(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	row, err := q.db.Take(t.Context(), a.Thread)
	if err != nil {
		t.Fatal(err)
	}
	q.commit(a, row.Epoch, chat.Took{Run: "chat"}, chat.RunEnded{Run: "chat", Reason: chat.EndDone})
	if q.state(a.ID) != work.Ready {
		t.Error(q.state(a.ID))
	}
}

// Many workers ask at once for the same few tasks: each task is given once, and no limit is passed.
func testTasksAreGivenOnce(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	for i := range 10 {
		q.task(fmt.Sprint("t", i))
	}
	snap, err := q.Snapshot(t.Context(), q.now, q.now.Add(-24*time.Hour))
	if err != nil || len(snap.Projects) != 1 || len(snap.Projects[0].Ready) != 10 {
		t.Fatal(snap, err)
	}
	snap.Slots = 10
	var mu sync.Mutex
	given := map[string]int{}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for _, c := range snap.Projects[0].Ready {
				_, err := q.Assign(context.WithoutCancel(t.Context()), work.Assignment{Project: "p", Task: c.ID}, 10, 0, "", nil)
				mu.Lock()
				if err == nil {
					given[c.ID]++
				} else if !errors.Is(err, work.ErrMoved) {
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if len(given) != 2 { // max_runs
		t.Errorf("%v", given)
	}
	for id, n := range given {
		if n != 1 {
			t.Errorf("%s was given %d times", id, n)
		}
	}
}

func testDeletingLeavesNothingHalf(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	b := q.task("b", a.ID)
	no := errors.New("no")
	if _, err := q.Delete(t.Context(), a.ID, "local:ada", func(work.Task, int) error { return no }); !errors.Is(err, no) || q.state(b.ID) != work.Defined {
		t.Error(err, q.state(b.ID))
	}
	if _, err := q.Delete(t.Context(), a.ID, "local:ada", func(work.Task, int) error { return nil }); err != nil || q.state(b.ID) != work.Ready {
		t.Error(err, q.state(b.ID))
	}
	if err := q.DeleteProject(t.Context(), "p", "local:ada", func(running int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if list, err := q.List(t.Context(), work.Filter{All: true, Limit: 10}); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
}

func testPagesOfTasksGoOn(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	for i := range 25 {
		q.task(fmt.Sprint(i))
		q.now = q.now.Add(time.Second)
	}
	var titles []string
	after := ""
	for {
		page, err := q.List(t.Context(), work.Filter{Project: "p", After: after, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page {
			titles = append(titles, item.Title)
			after = item.ID
		}
		if len(page) < 10 {
			break
		}
	}
	if len(titles) != 25 || titles[0] != "0" || titles[24] != "24" {
		t.Error(titles)
	}
}

func testMadeTwiceWithOneKeyIsOneTask(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	n := work.NewTask{Task: work.Task{Project: "p", Title: "x", Agent: "chorus", Owner: ada}, Key: "k"}
	a, err := q.Create(t.Context(), n)
	b, again := q.Create(t.Context(), n)
	if err != nil || again != nil || a.ID != b.ID {
		t.Error(a.ID, b.ID, err, again)
	}
}

// TestTaskOfADeadWorker is taken by one of those who want it, with the attempt that it is in.
func testTaskOfADeadWorker(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	given, err := q.Assign(t.Context(), work.Assignment{Project: "p", Task: a.ID, Worker: "one"}, 1, 0, "", nil)
	if err != nil || given.Worker != "one" {
		t.Fatal(given, err)
	}
	b := q.task("b")
	if _, err := q.Assign(t.Context(), work.Assignment{Project: "p", Task: b.ID, Worker: "one"}, 1, 0, "", nil); !errors.Is(err, work.ErrMoved) {
		t.Errorf("a worker with one slot has two tasks: %v", err)
	}
	if _, err := q.Assign(t.Context(), work.Assignment{Project: "p", Task: b.ID, Worker: "two"}, 1, 0, "", nil); err != nil {
		t.Errorf("another worker's slot: %v", err)
	}
	held, err := q.Held(t.Context())
	if err != nil || len(held) != 2 {
		t.Fatal(held, err)
	}
	var wg sync.WaitGroup
	took := make([]bool, 8)
	for i := range took {
		wg.Go(func() { took[i], _ = q.TakeOver(context.WithoutCancel(t.Context()), given, fmt.Sprint("heir", i)) })
	}
	wg.Wait()
	n := 0
	for _, ok := range took {
		if ok {
			n++
		}
	}
	now, err := q.Task(t.Context(), a.ID)
	if n != 1 || err != nil || now.Attempt != given.Attempt || !strings.HasPrefix(now.Worker, "heir") {
		t.Errorf("%d took it; %+v %v", n, now, err)
	}
	given.Worker, given.Attempt = now.Worker, given.Attempt+1
	if ok, err := q.TakeOver(t.Context(), given, "late"); ok || err != nil {
		t.Errorf("an attempt that is over was taken: %v %v", ok, err)
	}
}

// The newest completed tasks are found by an index, page by page, however many there are.
func testNewestFirst(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	var made []string
	for range 7 {
		q.now = q.now.Add(time.Minute)
		task := q.task("x")
		if _, err := q.Change(t.Context(), task.ID, func(w *work.Task, now time.Time) ([]work.Event, error) {
			return []work.Event{w.Override(work.Completed, "local:ada", now)}, nil
		}); err != nil {
			t.Fatal(err)
		}
		made = append([]string{task.ID}, made...)
	}
	q.task("not completed")
	var got []string
	f := work.Filter{Project: "p", State: work.Completed, Newest: true, Limit: 3}
	for {
		page, err := q.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range page {
			got = append(got, task.ID)
			f.After = task.ID
		}
		if len(page) < f.Limit {
			break
		}
	}
	if !slices.Equal(got, made) {
		t.Errorf("listed %v, want %v", got, made)
	}
	if q.db.OnServer() {
		return // the plan below is SQLite's
	}
	for _, where := range []string{`project = 'p' AND state = 'COMPLETED'`, `state = 'COMPLETED'`} {
		var plan string
		if err := q.db.Query(t.Context(), `EXPLAIN QUERY PLAN SELECT id FROM tasks WHERE `+where+` ORDER BY moved_at DESC, id DESC LIMIT 20`, nil, func(rows *sql.Rows) error {
			var a, b, c int
			var detail string
			err := rows.Scan(&a, &b, &c, &detail)
			plan += detail + "\n"
			return err
		}); err != nil || !strings.Contains(plan, "moved") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s: %s %v", where, plan, err)
		}
	}
}

func testEdges(t *testing.T, open func(*testing.T) *queue) {
	q := open(t)
	a := q.task("a")
	b := q.task("b", a.ID)
	edges, err := q.Edges(t.Context(), "p")
	if err != nil || !slices.Equal(edges, []work.Edge{{Task: b.ID, Needs: a.ID}}) {
		t.Errorf("edges %v, %v", edges, err)
	}
}
