// Package workrun runs the work queue: it gives tasks to workers,
// prepares their checkouts, and merges their work.
//
// It guarantees:
//   - Decisions are recorded before they are carried out, so that after a kill at any point the next process can
//     continue: a task is prepared again, its prompt is given once, its work is merged once.
//   - It calls no model itself, and sleeps until something happens or a time comes.
//   - A task that cannot be prepared or merged says why, and does not block others.
package workrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/gitrepo"
	"chorus/internal/journal"
	"chorus/internal/work"
)

// Tasks stores tasks, and their checkouts and merges.
type Tasks interface {
	Project(ctx context.Context, id string) (work.Project, error)
	Repos(ctx context.Context, project string) ([]work.Repo, error)
	SetRepo(context.Context, work.Repo) error
	Task(ctx context.Context, id string) (work.Task, error)
	List(context.Context, work.Filter) ([]work.Task, error)
	In(context.Context, work.State) ([]work.Task, error)
	Needs(ctx context.Context, id string) ([]work.Task, error)
	Results(ctx context.Context, task string) ([]work.Result, error)
	Events(context.Context, work.EventFilter) ([]work.Event, error)
	Change(ctx context.Context, id string, change func(t *work.Task, now time.Time) ([]work.Event, error)) (work.Task, error)
	PlanOf(ctx context.Context, task string) (work.Proposal, error)
	FindPlan(ctx context.Context, p work.Proposal, r work.Result, by, why string) (work.Task, error)
	StrayRuns(context.Context) ([]work.Task, error)
	Queue
	Held(context.Context) ([]work.Task, error)
	TakeOver(ctx context.Context, seen work.Task, to string) (took bool, err error)
}

// Queue moves tasks on.
type Queue interface {
	Snapshot(ctx context.Context, now, since time.Time) (work.Snapshot, error)
	Assign(ctx context.Context, a work.Assignment, slots int, deadline time.Duration, dir string, tree *work.Worktree) (work.Task, error)
	Wake(ctx context.Context, now time.Time) (next time.Time, err error)
	Overdue(ctx context.Context, now time.Time) (late []work.Task, next time.Time, err error)
	SetWorktree(context.Context, work.Worktree) error
	RemoveWorktree(ctx context.Context, task string) error
	Worktrees(ctx context.Context, task string) ([]work.Worktree, error)
	PrepareMerge(context.Context, work.Merge) error
	PreparedMerge(ctx context.Context, task string, attempt int) (m work.Merge, there bool, err error)
	Finish(ctx context.Context, r work.Result, step work.Step, merged bool, by, why string) (work.Task, error)
}

// Runner runs the work queue of a home. Set its fields before Run and do not change them afterwards.
type Runner struct {
	Tasks Tasks
	Home  *datadir.Home
	Now   func() time.Time
	Log   *slog.Logger
	// Workers is how many tasks this process works on at once; 0: none.
	Workers int
	// Self describes this process as a worker, and which tasks it takes.
	Self work.Worker
	// Alive reports whether a worker with that name is running; nil if there are no others.
	Alive func(worker string) bool
	// Deadline is how long an attempt may take; 0: no limit.
	Deadline time.Duration
	// TokenLimit is how many tokens all projects together may use in 24 hours; 0: no limit.
	TokenLimit int64
	// Reminders say how often people are told that a task waits for approval.
	Reminders work.Reminders
	// Tell posts words about a task in the conversation in which it was requested, once per key.
	Tell func(ctx context.Context, t work.Task, words, key string) error
	// Paused reports whether no tasks should begin.
	Paused func(context.Context) (bool, error)
	// Say gives a task's worker its prompt, once per key. refused says why it was not accepted.
	Say func(ctx context.Context, t work.Task, words, key string) (refused string, err error)
	// Answer returns the last words of the worker.
	Answer func(ctx context.Context, thread chat.ThreadID) (string, error)
	// Abort stops the run of a thread.
	Abort func(ctx context.Context, thread chat.ThreadID, by string) error
	// Lead calls work while no other process does what must be done only once: merges,
	// deadlines, cleaning up. The context of work ends when another process may do it. Lead
	// returns when ctx ends. nil means that there is no other process.
	Lead func(ctx context.Context, work func(context.Context))
	// Here reports whether the files of a project are on this machine; nil if they always are.
	Here func(ctx context.Context, project string) (bool, error)
	// Hold keeps other nodes away from the repositories of a project while its
	// results are merged or removed. It returns nil if another node has them. A
	// nil func means that there are no other nodes.
	Hold func(ctx context.Context, project string) (release func())
	// Adopted is told of a thread whose run continues here from now on; may be nil.
	Adopted func(thread chat.ThreadID)
	// Git says how to run git.
	Git gitrepo.Options

	once     sync.Once
	leads    atomic.Pointer[context.Context] // of the work that is done only once, while this process does it
	draining atomic.Bool
	news     chan struct{}
	mu       sync.Mutex
	on       map[string]bool // tasks that a goroutine of this process is preparing or finishing; true: another round wanted it meanwhile
	said     map[string]int  // the attempt whose prompt this process has given, by task
	late     map[string]late // tasks that could not be finished for now
	work     sync.WaitGroup
}

// ChangedElsewhere is the topic that tells other processes that there may be something to do.
const ChangedElsewhere = "work"

const (
	// lookAgain is the runner's longest sleep, after which it notices changes by other processes.
	lookAgain = 15 * time.Second
	// window is the period over which shares and token limits are counted.
	window = 24 * time.Hour
	// pullEvery is the interval of checks of pull requests.
	pullEvery = time.Minute
)

func (r *Runner) begin() {
	r.once.Do(func() {
		r.news, r.on, r.said, r.late = make(chan struct{}, 1), map[string]bool{}, map[string]int{}, map[string]late{}
	})
}

// Changed signals that there may be something to do.
func (r *Runner) Changed() {
	r.begin()
	await.Notify(r.news)
}

// Drain makes this process take no more tasks; its current ones continue.
func (r *Runner) Drain() { r.draining.Store(true) }

// Resume makes this process take tasks again.
func (r *Runner) Resume() { r.draining.Store(false); r.Changed() }

// lead does the work that is done only once, when it is this process's turn. After ctx
// has ended it keeps others away from it until done is closed.
func (r *Runner) lead(ctx context.Context, done <-chan struct{}) {
	if r.Lead == nil {
		return
	}
	r.Lead(ctx, func(leading context.Context) {
		r.leads.Store(&leading)
		r.Changed()
		<-leading.Done()
		r.leads.Store(nil)
		if ctx.Err() != nil {
			<-done
		}
	})
}

// Run runs the queue until ctx ends, and returns once none of its own work
// is running. Agents' runs continue with the engine.
func (r *Runner) Run(ctx context.Context) {
	r.begin()
	var leading sync.WaitGroup
	done := make(chan struct{})
	leading.Go(func() { r.lead(ctx, done) })
	defer leading.Wait()
	defer close(done)
	defer r.work.Wait()
	for ctx.Err() == nil {
		wait := lookAgain
		next, err := r.Round(ctx)
		if err != nil && ctx.Err() == nil {
			r.Log.Warn("the queue of tasks cannot be looked at: "+err.Error(), "component", "work", "event", "work_round_failed")
		}
		if !next.IsZero() {
			wait = min(max(next.Sub(r.Now()), 0), lookAgain)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.news:
		}
		timer.Stop()
	}
}

// Round checks the queue once and starts what there is to do. It returns when
// there will be more to do, or zero if that is not known.
func (r *Runner) Round(ctx context.Context) (next time.Time, err error) {
	r.begin()
	now := r.Now()
	if chores := r.choresContext(ctx); chores != nil {
		if next, err = r.chores(chores, now); err != nil && chores.Err() == nil {
			return next, err
		}
	}
	own, err := r.own(ctx, now)
	if next = earliest(next, own); err != nil {
		return next, err
	}
	return next, r.assign(ctx, now)
}

// choresContext returns the context of the work that is done only once, or nil if another process does it.
func (r *Runner) choresContext(ctx context.Context) context.Context {
	if r.Lead == nil {
		return ctx
	}
	if leading := r.leads.Load(); leading != nil {
		return *leading
	}
	return nil
}

// chores is what one process does for all: it wakes paused tasks, ends overdue ones, and merges finished ones.
func (r *Runner) chores(ctx context.Context, now time.Time) (next time.Time, err error) {
	if next, err = r.Tasks.Wake(ctx, now); err != nil {
		return next, err
	}
	late, deadline, err := r.Tasks.Overdue(ctx, now)
	if err != nil {
		return next, err
	}
	next = earliest(next, deadline)
	for _, t := range late {
		if err := r.expire(ctx, t); err != nil {
			return next, err
		}
	}
	if err := r.stopStray(ctx); err != nil {
		return next, err
	}
	for _, look := range []func(context.Context, time.Time) (time.Time, error){r.lookAtFinished, r.lookAtWaiting} {
		soon, err := look(ctx, now)
		if err != nil {
			return next, err
		}
		next = earliest(next, soon)
	}
	return next, r.clean(ctx)
}

// lookAtFinished continues with tasks that are being merged.
func (r *Runner) lookAtFinished(ctx context.Context, now time.Time) (next time.Time, err error) {
	list, err := r.Tasks.In(ctx, work.Verifying)
	if err != nil {
		return next, err
	}
	for _, t := range list {
		if until := r.after(t.ID); until.After(now) {
			next = earliest(next, until)
			continue
		}
		if err := r.startHere(ctx, t, r.finish); err != nil {
			return next, err
		}
	}
	return next, nil
}

// lookAtWaiting reminds people of tasks that wait for approval, and
// checks whether their pull requests were merged.
func (r *Runner) lookAtWaiting(ctx context.Context, now time.Time) (next time.Time, err error) {
	for _, state := range []work.State{work.AwaitingApproval, work.AwaitingPlanApproval} {
		list, err := r.Tasks.In(ctx, state)
		if err != nil {
			return next, err
		}
		for _, t := range list {
			due, err := r.remind(ctx, t, now)
			if err != nil {
				return next, err
			}
			next = earliest(next, due)
			if t.PR == "" || state != work.AwaitingApproval {
				continue
			}
			if !r.pullDue(t, now) {
				next = earliest(next, r.after("pull "+t.ID))
				continue
			}
			next = earliest(next, now.Add(pullEvery))
			if until := r.after(t.ID); until.After(now) {
				next = earliest(next, until)
				continue
			}
			if err := r.startHere(ctx, t, r.lookAtPull); err != nil {
				return next, err
			}
		}
	}
	return next, nil
}

// remind tells people that a task waits for approval, if a reminder is due, and returns when
// the next one is. It tells the conversation first, under a key that is the same after a
// crash, so that nothing is said twice and nothing is left out.
func (r *Runner) remind(ctx context.Context, t work.Task, now time.Time) (next time.Time, err error) {
	due := r.Reminders.Next(t)
	reminded := t
	e, is := r.Reminders.Remind(&reminded, system, now)
	if !is {
		return due, nil
	}
	if err := r.Tell(ctx, t, reminder(t, e), fmt.Sprintf("approval/%s/%d/%d", t.ID, t.Attempt, due.Unix())); err != nil && ctx.Err() == nil {
		r.Log.Warn("nobody could be reminded of a task in its conversation: "+err.Error(), "component", "work", "event", "task_reminder_failed", "task", t.ID)
	}
	t, err = r.Tasks.Change(ctx, t.ID, func(now *work.Task, at time.Time) ([]work.Event, error) {
		if e, is = r.Reminders.Remind(now, system, at); !is {
			return nil, nil // somebody else did, or it was answered meanwhile
		}
		return []work.Event{e}, nil
	})
	if errors.Is(err, journal.ErrUnknown) {
		return time.Time{}, nil
	}
	if is && err == nil {
		r.Log.Info(e.Text, "component", "work", "event", strings.ReplaceAll(e.Type, ".", "_"), "task", t.ID, "project", t.Project)
	}
	return r.Reminders.Next(t), err
}

// reminder returns what people are told.
func reminder(t work.Task, e work.Event) string {
	what, approve := "its result", "chorus task approve "
	if t.State == work.AwaitingPlanApproval {
		what, approve = "its plan", "chorus task approve-plan "
	}
	words := fmt.Sprintf("Task %s of project %s (%s) needs approval of %s: `%s%s`, or `chorus task reopen %s` with what should be done differently.", t.ID, t.Project, e.Text, what, approve, t.ID, t.ID)
	if t.Why != "" {
		words += "\n" + t.Why
	}
	return words
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// start processes a task in the background, unless this process is already doing so. It triggers
// another round only if the task moved, so that failures are not retried without a pause.
func (r *Runner) start(ctx context.Context, t work.Task, do func(context.Context, work.Task) (moved bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := ownerID(t) // the steps of a plan share their checkout, so they take turns
	if _, on := r.on[key]; on {
		r.on[key] = true
		return
	}
	r.on[key] = false
	r.work.Go(func() {
		moved := do(ctx, t)
		r.mu.Lock()
		again := r.on[key]
		delete(r.on, key)
		r.mu.Unlock()
		if moved || again {
			r.Changed()
		}
	})
}

// here reports whether the files of a project are on this machine.
func (r *Runner) here(ctx context.Context, project string) (bool, error) {
	if r.Here == nil {
		return true, nil
	}
	return r.Here(ctx, project)
}

// startHere is start for work on the repositories of a project: only where they are, and by one node at a time.
func (r *Runner) startHere(ctx context.Context, t work.Task, do func(context.Context, work.Task) (moved bool)) error {
	here, err := r.here(ctx, t.Project)
	if err != nil || !here {
		return err
	}
	r.start(ctx, t, func(ctx context.Context, t work.Task) bool {
		if r.Hold == nil {
			return do(ctx, t)
		}
		release := r.Hold(ctx, t.Project)
		if release == nil {
			return false // the next round tries again
		}
		defer release()
		return do(ctx, t)
	})
	return nil
}

// late records when something is retried, and how often it has failed.
type late struct {
	times int
	until time.Time
}

// after returns when a task that could not be finished is retried; zero means now.
func (r *Runner) after(task string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late[task].until
}

// busy reports whether this process is working on a task.
func (r *Runner) busy(task string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, on := r.on[task]
	return on
}

// gave reports whether this process has given the prompt of a task's attempt.
func (r *Runner) gave(t work.Task) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said[t.ID] == t.Attempt
}

// pullDue reports whether to check a task's pull request, at most once a minute.
func (r *Runner) pullDue(t work.Task, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := "pull " + t.ID
	if r.late[key].until.After(now) {
		return false
	}
	r.late[key] = late{until: now.Add(pullEvery)}
	return true
}

// assign gives tasks to free workers.
func (r *Runner) assign(ctx context.Context, now time.Time) error {
	if r.Workers <= 0 || r.draining.Load() {
		return nil
	}
	snap, err := r.Tasks.Snapshot(ctx, now, now.Add(-window))
	if err != nil {
		return err
	}
	if snap.Paused, err = r.Paused(ctx); err != nil {
		return err
	}
	snap.Slots, snap.Limit = r.Workers-snap.Holds[r.Self.Name], r.TokenLimit
	for i := range snap.Projects {
		p := &snap.Projects[i]
		here, err := r.here(ctx, p.ID)
		if err != nil {
			return err
		}
		if !here {
			p.Ready = nil
		}
		p.Ready = slices.DeleteFunc(p.Ready, func(c work.Candidate) bool { return !r.Self.Takes(p.ID, c.Agent) })
	}
	for _, a := range work.Plan(snap) {
		a.Worker = r.Self.Name
		t, err := r.Tasks.Task(ctx, a.Task)
		if err != nil {
			return err
		}
		tree, err := r.tree(ctx, t)
		if err != nil {
			return err
		}
		dir := r.dir(t)
		if tree != nil {
			dir = tree.Path
		}
		t, err = r.Tasks.Assign(ctx, a, r.Workers, r.Deadline, dir, tree)
		if errors.Is(err, work.ErrMoved) {
			continue // somebody was faster, or stopped it
		}
		if err != nil {
			return err
		}
		r.start(ctx, t, r.prepare)
	}
	return nil
}

// expire stops a task whose deadline has passed.
func (r *Runner) expire(ctx context.Context, t work.Task) error {
	moved, err := r.Tasks.Change(ctx, t.ID, func(now *work.Task, at time.Time) ([]work.Event, error) {
		if now.Attempt != t.Attempt || now.Deadline.IsZero() {
			return nil, nil
		}
		if now.State != work.InProgress && now.State != work.Assigned {
			now.Deadline = time.Time{}
			return nil, nil
		}
		e, err := now.Take(work.Timeout, system, at)
		now.Why = "it took longer than " + r.Deadline.String()
		return []work.Event{e}, err
	})
	if err != nil || moved.State != work.Blocked {
		return err
	}
	return r.Abort(ctx, t.Thread, system)
}

// system is the principal that moves tasks when no person does.
var system = chat.Principal{Kind: chat.TheSystem, ID: "queue"}.String()

// failed counts a failure before or after the run itself, so that nothing is retried forever.
func (r *Runner) failed(ctx context.Context, t work.Task, kind work.ErrorKind, problem error) {
	if ctx.Err() != nil {
		return // the next start continues with it
	}
	_, err := r.Tasks.Change(ctx, t.ID, func(now *work.Task, at time.Time) ([]work.Event, error) {
		if now.Attempt != t.Attempt || now.State != work.Assigned {
			return nil, nil
		}
		c := work.Failure(*now, kind, problem.Error(), at)
		step := work.ExecutionError
		if c.Step == work.MaxRetries {
			step = work.MaxRetries
		}
		e, err := now.Take(step, system, at)
		now.Retries, now.NotBefore, now.Why = c.Retries, c.NotBefore, c.Why
		return []work.Event{e}, err
	})
	if err != nil {
		r.Log.Warn("a task that failed cannot be moved on: "+err.Error(), "component", "work", "event", "task_not_moved", "task", t.ID)
	}
}

// Wait waits until everything that rounds have started is done.
func (r *Runner) Wait() { r.work.Wait() }
