package workrun_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/gitrepo"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
	"chorus/internal/store/tasks"
	"chorus/internal/work"
	"chorus/internal/workrun"
)

var ada = chat.Principal{Kind: chat.LocalUser, ID: "ada"}

// home is a home with a project whose repository is a person's checkout, and a worker that does what the test says.
type home struct {
	*workrun.Runner
	t     *testing.T
	db    *store.DB
	queue *tasks.Tasks
	repo  string
	mu    sync.Mutex
	now   time.Time
	said  map[string]int    // prompts by their key
	told  map[string]string // what conversations were told, by its key
	// worker does an attempt in its folder and says how it ended; nil: it does nothing yet.
	worker func(t work.Task, dir string) chat.RunEnded
}

func newHome(t *testing.T) *home {
	t.Helper()
	dir := t.TempDir()
	h := &home{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), said: map[string]int{}, told: map[string]string{}, repo: filepath.Join(dir, "site")}
	h.git("init", "-q", "-b", "main", h.repo)
	h.write(filepath.Join(h.repo, "README.md"), "hello\n")
	h.git("-C", h.repo, "add", ".")
	h.git("-C", h.repo, "commit", "-q", "-m", "begin")
	where, err := datadir.Open(filepath.Join(dir, "home"))
	if err != nil {
		t.Fatal(err)
	}
	storetest.Fresh(t, filepath.Join(dir, "chorus.db"))
	h.db, err = store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "chorus.db"), Now: h.clock, Follow: tasks.Follow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.db.Close() })
	h.queue = tasks.New(h.db, nil)
	h.restart(where)
	if _, err := h.queue.CreateProject(t.Context(), work.Project{ID: "site", Name: "Site", Weight: 1, MaxRuns: 4, State: work.Active, Owner: ada}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.queue.AddRepo(t.Context(), work.Repo{ID: "site", Project: "site", Kind: work.Link, Path: h.repo}, "local:ada"); err != nil {
		t.Fatal(err)
	}
	return h
}

// restart is a new process on the same home.
func (h *home) restart(where *datadir.Home) {
	h.Runner = &workrun.Runner{Tasks: h.queue, Home: where, Now: h.clock, Log: slog.New(slog.DiscardHandler), Workers: 4,
		Paused: func(context.Context) (bool, error) { return false, nil }, Say: h.say,
		Tell: func(_ context.Context, _ work.Task, words, key string) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.told[key] == "" {
				h.told[key] = words
			}
			return nil
		},
		Answer: func(context.Context, chat.ThreadID) (string, error) { return "done", nil },
		Abort: func(ctx context.Context, thread chat.ThreadID, by string) error {
			_, err := h.db.Commit(ctx, journal.Commit{Thread: thread, Events: []chat.Event{{Body: chat.AbortAsked{By: by}}}})
			return err
		}}
}

func (h *home) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *home) git(args ...string) string {
	h.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (h *home) write(path, text string) {
	h.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// say is the engine: it takes a prompt once, and lets the worker run.
func (h *home) say(ctx context.Context, t work.Task, words, key string) (string, error) {
	h.mu.Lock()
	h.said[key]++
	again, worker := h.said[key] > 1, h.worker
	h.mu.Unlock()
	if !strings.Contains(words, t.Title) {
		return "", errors.New("the prompt does not say what is to be done")
	}
	if again || worker == nil {
		return "", nil
	}
	row, err := h.db.Take(ctx, t.Thread)
	if err != nil {
		return "", err
	}
	if _, err := h.db.Commit(ctx, journal.Commit{Thread: t.Thread, Epoch: row.Epoch, Events: []chat.Event{{Body: chat.Took{Run: key}}}}); err != nil {
		return "", err
	}
	end := worker(t, row.Dir)
	if end.Reason == "" {
		return "", nil // it goes on
	}
	end.Run = key
	_, err = h.db.Commit(ctx, journal.Commit{Thread: t.Thread, Epoch: row.Epoch, Events: []chat.Event{{Body: end}}})
	return "", err
}

func (h *home) task(title string, with func(*work.NewTask)) work.Task {
	h.t.Helper()
	n := work.NewTask{Task: work.Task{Project: "site", Repo: "site", Title: title, Description: title, Agent: "worker", Priority: 100, MaxRetries: 2, Owner: ada}}
	if with != nil {
		with(&n)
	}
	t, err := h.queue.Create(h.t.Context(), n)
	if err != nil {
		h.t.Fatal(err)
	}
	return t
}

// settle goes round until a task is in a state, and lets time pass where something waits for it.
func (h *home) settle(id string, want work.State) work.Task {
	h.t.Helper()
	var t work.Task
	for range 50 {
		next, err := h.Round(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		h.Wait()
		if t, err = h.queue.Task(h.t.Context(), id); err != nil {
			h.t.Fatal(err)
		}
		if t.State == want {
			return t
		}
		h.mu.Lock()
		if !next.IsZero() && next.After(h.now) {
			h.now = next
		}
		h.mu.Unlock()
	}
	h.t.Fatalf("task %s is %s (%s), not %s", id, t.State, t.Why, want)
	return t
}

func done() chat.RunEnded { return chat.RunEnded{Reason: chat.EndDone} }

func TestATaskIsWorkedOnAndMergedOnce(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = func(task work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, task.Title+".txt"), task.ID)
		return done()
	}
	first := h.task("first", nil)
	second := h.task("second", func(n *work.NewTask) { n.Needs = []string{first.ID} })
	h.settle(second.ID, work.Completed)
	h.settle(first.ID, work.Completed)
	for _, name := range []string{"first.txt", "second.txt"} {
		if _, err := os.Stat(filepath.Join(h.repo, name)); err != nil {
			t.Error(err)
		}
	}
	if n := h.git("-C", h.repo, "log", "--oneline", "--merges"); strings.Count(n, "\n") != 1 {
		t.Errorf("two merges are wanted:\n%s", n)
	}
	if msg := h.git("-C", h.repo, "log", "-1", "--format=%(trailers:key=Task-Id,valueonly)"); msg != second.ID {
		t.Errorf("the merge is of task %q", msg)
	}
	if got := h.git("-C", h.repo, "branch", "--format=%(refname:short)"); got != "main" {
		t.Errorf("branches are left: %s", got)
	}
	r, err := h.queue.Results(t.Context(), first.ID)
	if err != nil || len(r) != 1 || r[0].Summary != "done" || len(r[0].Files) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestConflictsBlockAndNameTheFiles(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	var ready sync.WaitGroup
	ready.Add(2) // both begin before one ends
	h.worker = func(task work.Task, dir string) chat.RunEnded {
		ready.Done()
		ready.Wait()
		h.write(filepath.Join(dir, "README.md"), task.ID+"\n")
		return done()
	}
	a, b := h.task("a", nil), h.task("b", nil)
	for range 5 {
		if _, err := h.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.Wait()
	}
	states := map[work.State]work.Task{}
	for _, id := range []string{a.ID, b.ID} {
		now, err := h.queue.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		states[now.State] = now
	}
	if _, ok := states[work.Completed]; !ok || len(states) != 2 {
		t.Fatalf("%v", states)
	}
	if stuck := states[work.Blocked]; !strings.Contains(stuck.Why, "README.md") {
		t.Errorf("%s: %s", stuck.State, stuck.Why)
	}
}

func TestACheckoutWithChangesOfItsOwnerIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "README.md"), "new\n")
		return done()
	}
	h.write(filepath.Join(h.repo, "README.md"), "mine\n")
	task := h.settle(h.task("a", nil).ID, work.AwaitingApproval)
	if text, err := os.ReadFile(filepath.Join(h.repo, "README.md")); err != nil || string(text) != "mine\n" {
		t.Errorf("%q, %v", text, err)
	}
	if task.Why == "" {
		t.Error("nobody is told what to do")
	}
}

func TestAResultWaitsForAYes(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "a.txt"), "a")
		return done()
	}
	task := h.task("a", func(n *work.NewTask) { n.Approval = true })
	h.settle(task.ID, work.AwaitingApproval)
	if _, err := os.Stat(filepath.Join(h.repo, "a.txt")); err == nil {
		t.Error("it was merged without a yes")
	}
	if _, err := h.queue.Change(t.Context(), task.ID, func(t *work.Task, now time.Time) ([]work.Event, error) {
		e, err := t.Take(work.Approved, "local:ada", now)
		return []work.Event{e}, err
	}); err != nil {
		t.Fatal(err)
	}
	h.settle(task.ID, work.Completed)
	if _, err := os.Stat(filepath.Join(h.repo, "a.txt")); err != nil {
		t.Error(err)
	}
}

// A worker that changed nothing may still have found something out that somebody wants to see first.
func TestAResultWithoutChangesWaitsForAYesToo(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = func(work.Task, string) chat.RunEnded { return done() }
	h.settle(h.task("look", func(n *work.NewTask) { n.Approval = true }).ID, work.AwaitingApproval)
	h.settle(h.task("look again", nil).ID, work.Completed)
}

// A task that waits for a person gives the queue nothing to do: it must not look again and again.
func TestWaitingCostsNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = func(work.Task, string) chat.RunEnded { return done() }
	task := h.task("look", func(n *work.NewTask) { n.Approval = true })
	h.settle(task.ID, work.AwaitingApproval)
	var rounds atomic.Int64
	h.restart(h.Home)
	h.Paused = func(context.Context) (bool, error) { rounds.Add(1); return false, nil }
	h.Lead = func(ctx context.Context, lead func(context.Context)) { lead(ctx) }
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { h.Run(ctx) })
	for range 30 { // some time in which it would spin
		h.git("-C", h.repo, "status")
	}
	cancel()
	running.Wait()
	if n := rounds.Load(); n == 0 || n > 5 {
		t.Errorf("%d rounds", n)
	}
}

func TestWhatCannotBePreparedEnds(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if err := os.RemoveAll(h.repo); err != nil {
		t.Fatal(err)
	}
	task := h.settle(h.task("a", nil).ID, work.Blocked)
	if task.Retries != 2 || task.Why == "" {
		t.Errorf("%d tries: %s", task.Retries, task.Why)
	}
}

func TestATaskThatTakesTooLongIsStopped(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.Deadline = time.Hour
	h.worker = func(work.Task, string) chat.RunEnded { return chat.RunEnded{} }
	task := h.task("a", nil)
	task = h.settle(task.ID, work.Blocked)
	if !strings.Contains(task.Why, "longer than 1h") {
		t.Error(task.Why)
	}
	if n, err := h.queue.Running(t.Context()); err != nil || n != 1 {
		t.Errorf("%d hold a worker while the run has not ended; %v", n, err)
	}
}

// The worker's answer cannot be read for a while: the task is not looked at in every round, and is finished when it can be.
func TestTroubleIsTriedAgainLessAndLessOften(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "a.txt"), "a")
		return done()
	}
	tries := 0
	h.Answer = func(context.Context, chat.ThreadID) (string, error) {
		if tries++; tries < 4 {
			return "", errors.New("not now")
		}
		return "done", nil
	}
	task := h.task("a", nil)
	begun := h.clock()
	h.settle(task.ID, work.Completed)
	if waited := h.clock().Sub(begun); tries != 4 || waited != 35*time.Second {
		t.Errorf("%d tries in %s", tries, waited)
	}
}

// A branch that cannot be removed because another git holds a lock is removed when the lock is gone.
func TestABranchThatIsLockedIsRemovedLater(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	lock := filepath.Join(h.repo, ".git", "packed-refs.lock")
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "a.txt"), "a")
		h.write(lock, "")
		return done()
	}
	task := h.task("a", nil)
	h.settle(task.ID, work.Completed)
	trees := func() []work.Worktree {
		t.Helper()
		for range 5 {
			if _, err := h.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.Wait()
		}
		trees, err := h.queue.Worktrees(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return trees
	}
	if left := trees(); len(left) != 1 {
		t.Fatalf("its branch is there, and forgotten: %v", left)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.now = h.now.Add(time.Minute)
	h.mu.Unlock()
	if left := trees(); len(left) != 0 {
		t.Errorf("it is not removed: %v", left)
	}
	if got := h.git("-C", h.repo, "branch", "--format=%(refname:short)"); got != "main" {
		t.Errorf("branches are left: %s", got)
	}
}

// A process is killed between giving a task to a worker and preparing it, and another one while the worker's end waits to be merged.
func TestAnotherProcessGoesOn(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	task := h.task("a", nil)
	if _, err := h.queue.Assign(t.Context(), work.Assignment{Project: "site", Task: task.ID}, 4, 0, filepath.Join(h.Home.TaskDir("site", task.ID), task.ID),
		&work.Worktree{Task: task.ID, Project: "site", Repo: "site", Path: filepath.Join(h.Home.TaskDir("site", task.ID), task.ID), Branch: gitrepo.BranchName(task.ID, "a")}); err != nil {
		t.Fatal(err)
	}
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "a.txt"), "a")
		return done()
	}
	h.restart(h.Home)
	h.settle(task.ID, work.Verifying)
	h.restart(h.Home)
	h.settle(task.ID, work.Completed)
	if h.said[fmt.Sprintf("work/%s/1", task.ID)] != 1 {
		t.Errorf("%v", h.said)
	}
}

// The merge was made, and the process was killed before the task could be moved: it is not merged again.
func TestAMergeThatWasMadeIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "a.txt"), "a")
		return done()
	}
	task := h.task("a", nil)
	h.settle(task.ID, work.Completed)
	head := h.git("-C", h.repo, "rev-parse", "main")
	if _, err := h.queue.Change(t.Context(), task.ID, func(t *work.Task, now time.Time) ([]work.Event, error) {
		return []work.Event{t.Override(work.Verifying, "test", now)}, nil
	}); err != nil {
		t.Fatal(err)
	}
	h.restart(h.Home)
	h.settle(task.ID, work.Completed)
	if now := h.git("-C", h.repo, "rev-parse", "main"); now != head {
		t.Errorf("main moved from %s to %s", head, now)
	}
}

// A remote that is away keeps a finished task from being merged: it waits, says why, whoever asked for it is told once, and it is merged
// when the remote is back.
func TestAMergeWaitsForItsRemote(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	remote := filepath.Join(t.TempDir(), "remote.git")
	h.git("clone", "-q", "--bare", h.repo, remote)
	h.Git = gitrepo.Options{LocalURLs: true}
	known := work.Repo{ID: "clone", Project: "site", Kind: work.Clone, URL: remote, Path: filepath.Join(t.TempDir(), "clone.git")}
	if _, err := h.queue.AddRepo(t.Context(), known, "local:ada"); err != nil {
		t.Fatal(err)
	}
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "new.txt"), "new\n")
		if err := os.Rename(remote, remote+".away"); err != nil {
			t.Error(err)
		}
		return done()
	}
	id := h.task("new", func(n *work.NewTask) { n.Repo = "clone" }).ID
	events := func() (n int) {
		list, err := h.queue.Events(t.Context(), work.EventFilter{Task: id, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.Type == work.EventMergeDelayed {
				n++
			}
		}
		return n
	}
	h.settle(id, work.Verifying)
	for range 6 { // each is tried when its time has come
		h.mu.Lock()
		h.now = h.now.Add(10 * time.Minute)
		h.mu.Unlock()
		h.settle(id, work.Verifying)
	}
	waits, err := h.queue.Task(t.Context(), id)
	if err != nil || !strings.HasPrefix(waits.Why, "not merged yet: ") || !strings.Contains(waits.Why, "retried") {
		t.Errorf("%s: %q, %v", waits.State, waits.Why, err)
	}
	if events() != 1 || len(h.told) != 1 || !strings.Contains(h.told["merge/"+id+"/1"], "is finished, but not merged yet") {
		t.Errorf("%d events, told %v", events(), h.told)
	}
	if err := os.Rename(remote+".away", remote); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.now = h.now.Add(10 * time.Minute)
	h.mu.Unlock()
	if merged := h.settle(id, work.Completed); merged.Why != "" || h.git("-C", remote, "show", "main:new.txt") != "new" {
		t.Errorf("%+v", merged)
	}
}
