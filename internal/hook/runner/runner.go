// Package runner runs hooks: it reads events, starts runs and completes them.
//
// It guarantees:
//   - A trigger becomes one run, whatever is killed and restarted in between.
//   - An interrupted run continues where it was; a command that had begun is not run a second time.
//   - It sleeps until something happens or a time comes, and does not call models by itself.
//   - A hook that fails, hangs or cannot be read does not block others.
package runner

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/hook"
)

// Store keeps hooks and their runs.
type Store interface {
	Hook(ctx context.Context, id string) (hook.Hook, error)
	EventHooks(context.Context) ([]hook.Hook, error)
	DueHooks(ctx context.Context, now time.Time, limit int) ([]hook.Hook, error)
	NextHook(context.Context) (time.Time, error)
	TriggerHook(context.Context, hook.Triggered) (hook.Outcome, error)
	UnfinishedHookRuns(context.Context) ([]hook.Run, error)
	SaveHookRun(context.Context, hook.Run) (bool, error)
}

// Source supplies events.
type Source interface {
	// Wake returns a channel that has a value when there may be something to read.
	Wake() <-chan struct{}
	// Read returns what happened since the last read, in order within a thread.
	// The first read returns what happened since an instant and was not handled
	// before. What take fails on is read again.
	Read(ctx context.Context, since time.Time, take func(Happened) error) error
	// Pass skips what has happened so far.
	Pass(context.Context) error
}

// Happened is one position in a thread or, without a thread, in the events
// of the work queue, with the hook events for it.
type Happened struct {
	Reader string
	Thread chat.ThreadID
	Seq    int64
	Events []hook.Event
	// Cause returns the authority on which it happened. It is called only if a hook is triggered.
	Cause func() (chat.Principal, error)
}

// Answer is the result of a prompt.
type Answer struct {
	Text   string
	Failed string // why there is no answer
	Tokens int
	Cost   int64
}

// Worker carries out the parts of runs, with the current rights of a hook's owner.
type Worker interface {
	// Sees reports whether a hook's owner may see an event.
	Sees(ctx context.Context, owner chat.Principal, e hook.Event) (bool, error)
	// MayRun says why a hook's owner may no longer have it run, or returns "".
	MayRun(ctx context.Context, h hook.Hook) (string, error)
	Step(ctx context.Context, h hook.Hook, r hook.Run, at int) hook.Result
	// Prompt returns what to ask the model.
	Prompt(h hook.Hook, r hook.Run) string
	// Ask passes a run's prompt to the model, only once however often it is
	// called. refused says why it was not accepted.
	Ask(ctx context.Context, h hook.Hook, r hook.Run) (thread chat.ThreadID, seq int64, refused string, err error)
	// Await waits for the answer. It calls waits while the run waits for a person.
	Await(ctx context.Context, thread chat.ThreadID, seq int64, waits func()) (Answer, error)
	// Act carries out an action, only once however often it is called, if the kind of action allows that.
	Act(ctx context.Context, h hook.Hook, r hook.Run, at int) hook.Result
}

// Runner runs the hooks of a home.
type Runner struct {
	DB      Store
	Sources []Source
	Worker  Worker
	Now     func() time.Time
	Log     *slog.Logger

	changed chan struct{}
	once    sync.Once

	listening atomic.Bool // whether it listens to events

	mu     sync.Mutex
	active map[string]context.CancelFunc // by hook id
	slots  int                           // number of taken slots
	work   sync.WaitGroup
}

const (
	// tryAgain is the pause before something that failed is retried.
	tryAgain = 15 * time.Second
	// lookAgain is the longest sleep while a time is to come, because the machine's clock may be set.
	lookAgain = time.Minute
	batch     = 1000
)

func (r *Runner) news() chan struct{} {
	r.once.Do(func() { r.changed = make(chan struct{}, 1) })
	return r.changed
}

// ChangedElsewhere is the topic that tells other processes that hooks have changed.
const ChangedElsewhere = "hooks"

// Changed tells the runner that hooks or runs were added or changed in this process.
func (r *Runner) Changed() { await.Notify(r.news()) }

// Cancel ends the current run of a hook.
func (r *Runner) Cancel(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.active[id]; cancel != nil {
		cancel()
	}
}

// Run runs hooks until the context ends, and returns once no run is active. Only one process may do this.
func (r *Runner) Run(ctx context.Context) {
	defer r.work.Wait()
	wake := make(chan struct{}, 1)
	for _, s := range r.Sources {
		go r.forward(ctx, s.Wake(), wake)
	}
	for ctx.Err() == nil {
		next, err := r.Look(ctx)
		wait := lookAgain
		switch {
		case err != nil:
			r.failed(ctx, err)
			wait = tryAgain
		case !next.IsZero():
			wait = min(max(next.Sub(r.Now()), 0), lookAgain)
		}
		var timer <-chan time.Time // with nothing scheduled, only news wakes it
		if err != nil || !next.IsZero() {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
		case <-timer:
		case <-wake:
		case <-r.news():
		}
	}
}

// forward passes news on while some hook is triggered by events; without one, writing costs nothing extra.
func (r *Runner) forward(ctx context.Context, from <-chan struct{}, to chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-from:
			if !r.listening.Load() {
				continue
			}
			await.Notify(to)
		}
	}
}

func (r *Runner) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		r.Log.Warn("hooks cannot be run: "+err.Error(), "component", "hooks", "event", "hooks_failed")
	}
}

// Look triggers what is due and starts runs whose turn it is. next is when something is due, or zero.
func (r *Runner) Look(ctx context.Context) (next time.Time, err error) {
	if err := r.due(ctx); err != nil {
		return next, err
	}
	if err := r.events(ctx); err != nil {
		return next, err
	}
	if err := r.begin(ctx); err != nil {
		return next, err
	}
	return r.DB.NextHook(ctx)
}

// Wait waits for the current runs.
func (r *Runner) Wait() { r.work.Wait() }

// due triggers the hooks whose time has come. If several times have passed, it triggers once.
func (r *Runner) due(ctx context.Context) error {
	hooks, err := r.DB.DueHooks(ctx, r.Now(), batch)
	for _, h := range hooks {
		if !h.Enabled {
			continue
		}
		now := r.Now()
		t := hook.Triggered{Hook: h, Due: h.Due, Next: h.Trigger.Next(now), At: now}
		if t.Run, err = hook.NewRun(h, hook.Periodic, h.Due.UTC().Format(time.RFC3339), chat.Principal{}, nil); err != nil {
			return err
		}
		if _, err := r.DB.TriggerHook(ctx, t); err != nil {
			return err
		}
	}
	return err
}

// events triggers the hooks for what has happened.
func (r *Runner) events(ctx context.Context) error {
	hooks, err := r.DB.EventHooks(ctx)
	if err != nil {
		return err
	}
	var since time.Time
	var enabled []hook.Hook
	for _, h := range hooks {
		if h.Enabled {
			enabled = append(enabled, h)
			if since.IsZero() || h.Since.Before(since) {
				since = h.Since
			}
		}
	}
	r.listening.Store(len(enabled) > 0)
	for _, s := range r.Sources {
		if len(enabled) == 0 {
			err = s.Pass(ctx)
		} else {
			err = s.Read(ctx, since, func(what Happened) error { return r.happened(ctx, enabled, what) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type match struct {
	hook  hook.Hook
	event hook.Event
}

func (r *Runner) happened(ctx context.Context, hooks []hook.Hook, what Happened) error {
	var matches []match
	for _, e := range what.Events {
		for _, h := range hooks {
			if e.At.Before(h.Since) || !h.Trigger.Matches(e) || e.Project != "" && h.Project != "" && e.Project != h.Project {
				continue
			}
			sees, err := r.Worker.Sees(ctx, h.Owner, e)
			if err != nil {
				return err
			}
			if sees {
				matches = append(matches, match{h, e})
			}
		}
	}
	for i, m := range matches {
		cause, err := what.Cause()
		if err != nil {
			return err
		}
		seq := what.Seq
		if i < len(matches)-1 {
			seq-- // the other events of this position must not be lost with this process
		}
		run, err := hook.NewRun(m.hook, "event:"+m.event.Type, m.event.Key, cause, m.event.Data)
		var stopped *hook.StoppedError
		if errors.As(err, &stopped) {
			run.Ended = r.Now()
			r.Log.Warn(stopped.Why, "component", "hooks", "event", "hook_stopped", "hook", m.hook.ID, "thread", m.event.Thread)
		} else if err != nil {
			return err
		}
		if _, err := r.DB.TriggerHook(ctx, hook.Triggered{Hook: m.hook, Run: run, Reader: what.Reader, Thread: what.Thread, Seq: seq, At: r.Now()}); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the runs whose turn it is: oldest first, one at a time per hook.
func (r *Runner) begin(ctx context.Context) error {
	r.mu.Lock()
	before := maps.Clone(r.active) // a run that ends while the list is read may be listed as unfinished
	r.mu.Unlock()
	runs, err := r.DB.UnfinishedHookRuns(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == nil {
		r.active = map[string]context.CancelFunc{}
	}
	for _, run := range runs {
		if r.slots >= hook.AtOnce || ctx.Err() != nil {
			return nil
		}
		if before[run.Hook] != nil || r.active[run.Hook] != nil {
			continue // when it ends, the list is read again
		}
		runCtx, cancel := context.WithCancel(ctx)
		r.active[run.Hook] = cancel
		r.slots++
		freed := sync.OnceFunc(func() {
			r.mu.Lock()
			r.slots--
			r.mu.Unlock()
			r.Changed()
		})
		r.work.Go(func() {
			defer func() {
				cancel()
				r.mu.Lock()
				delete(r.active, run.Hook)
				r.mu.Unlock()
				freed()
				r.Changed()
			}()
			if err := r.carry(runCtx, run, freed); err != nil {
				r.failed(runCtx, err)
				await.For(runCtx, tryAgain) // it stays unfinished, and is not retried in a loop
			}
		})
	}
	return nil
}
