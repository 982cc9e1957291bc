// Package engine runs threads. What people say goes into the journal, one actor per
// thread answers it from there, and watchers read it back.
//
// A thread has at most one actor among all processes (owner and epoch). An idle or suspended thread
// costs no goroutine. Work is picked up after one sweep at the latest, even if every notification
// is lost. Stopping loses nothing: a run that was active continues at the next start.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/agent"
	"chorus/internal/agent/deadline"
	"chorus/internal/approval"
	"chorus/internal/await"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/owner"
	"chorus/internal/peernotify"
	"chorus/internal/transcript"
)

// Writer is the part of the store that writes threads.
type Writer interface {
	Commit(ctx context.Context, c journal.Commit) (journal.Committed, error)
	Arrive(ctx context.Context, a journal.Arrival) (journal.Arrived, error)
	Take(ctx context.Context, thread chat.ThreadID) (journal.Thread, error)
	SaveSnapshot(ctx context.Context, s journal.Snapshot) error
}

// Reader is the part of the store that reads threads.
type Reader interface {
	Thread(ctx context.Context, thread chat.ThreadID) (journal.Thread, error)
	Events(ctx context.Context, thread chat.ThreadID, after int64, limit int) ([]chat.Event, error)
	Snapshot(ctx context.Context, thread chat.ThreadID, codec string) (journal.Snapshot, error)
	Blob(ctx context.Context, hash string) ([]byte, error)
}

// Watcher is the part of the store that shows what has changed and what is due.
type Watcher interface {
	ActiveThreads(ctx context.Context) ([]journal.Thread, error)
	DataVersion(ctx context.Context) (int64, error)
	LastRun(ctx context.Context, thread chat.ThreadID) (string, error)
	PendingPrompts(ctx context.Context, thread chat.ThreadID) ([]int64, error)
}

// ApprovalReader is the part of the store that reads approvals and the cost of runs.
type ApprovalReader interface {
	Approval(ctx context.Context, id string) (approval.Approval, error)
	Approvals(ctx context.Context, f approval.Filter) ([]approval.Approval, error)
	Overdue(ctx context.Context, now time.Time) ([]approval.Approval, error)
	RunCost(ctx context.Context, run string) (ledger.Nanos, error)
}

// Journal is the part of the store that the engine needs.
type Journal interface {
	Writer
	Reader
	Watcher
	ApprovalReader
}

// Gate decides whether a call may run. It is pure apart from reading configuration. The call
// names everybody whose words the run has taken so far; who pays for it.
type Gate interface {
	Judge(c agent.ProposedCall, who chat.Principal) approval.Ruling
}

// Work is what a setup is for: the current run or the next prompt.
type Work struct {
	Terms   chat.Terms
	Seq     int64 // the event it begins with
	Senders []transcript.Sender
}

// Setup says how to do a thread's next run.
type Setup struct {
	Agent *agent.Agent
	Gate  Gate
	// Price returns what a model costs and the most it can output.
	Price func(model string) (ledger.Price, int)
	// Budget is what may be spent; the zero value means no limit.
	Budget ledger.Budget
	Dir    string
	// Asking says how people are asked for approval.
	Asking Asking
}

// Config is what an engine is made of.
type Config struct {
	Journal Journal
	Bus     *bus.Bus
	// Setup is called before each run, so that changed settings take effect with the next run.
	Setup func(ctx context.Context, thread journal.Thread, work Work) (Setup, error)
	// Takes says whether this process starts a run with this prompt; nil means it takes any.
	Takes func(thread chat.ThreadID, prompt transcript.Waiting) bool
	// Adopt says which threads this process may run. To all others it only writes
	// events. A thread passed to Wake is run without asking.
	Adopt func(chat.ThreadID) bool
	// Here says why a thread cannot run in this process because its files are on
	// another machine, or returns nil. It returns ErrElsewhere if another process can
	// run it. A nil func means that all files are here.
	Here       func(journal.Thread) error
	Owner      owner.Owner      // gives threads to one process at a time
	Peers      peernotify.Peers // notifies other processes that use the same journal; nil: only the sweep sees what they do
	Elsewhere  Elsewhere        // brings live pieces from other processes; nil: none are fetched
	NotifyRuns bool             // also tells Peers what runs write, for watchers on other machines
	MaxWaiting int              // prompts waiting in a thread; 0: DefaultMaxWaiting
	MaxRuns    int              // runs at the same time, further ones wait; 0: no limit
	IdleAfter  time.Duration    // 0: DefaultIdleAfter
	SweepEvery time.Duration    // 0: DefaultSweep
	FirstSweep time.Duration    // delay of the first sweep, so that whoever came with a prompt is served first
	AfterRush  func()           // called when most of many actors have gone, to release what was kept for them; may be nil
	Bounds     deadline.Bounds  // limits for waiting on anything outside; an agent may have its own
	Now        func() time.Time
	Log        *slog.Logger
}

// The defaults.
const (
	DefaultMaxWaiting = 5
	DefaultIdleAfter  = 5 * time.Minute
	DefaultSweep      = 2 * time.Second
)

// ErrElsewhere means that the thread's files are on a machine whose process is alive and runs it.
var ErrElsewhere = errors.New("its files are on another machine")

// Engine runs threads. Create it with New and end it with Stop.
type Engine struct {
	Config
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	timed  Journal      // the journal with a timeout for each call; actors use their watchdog instead
	lost   atomic.Int64 // waits that were abandoned and have not ended
	fenced atomic.Int64 // runs that another process took over while they ran here
	slots  slots

	mu     sync.Mutex
	runs   context.Context         // context of the runs; ends before the engine's when threads are handed over
	endRun context.CancelCauseFunc // ends it
	actors map[chat.ThreadID]*actor
	// children are threads that agents started here. They run here whatever Adopt says.
	children map[chat.ThreadID]bool
	// remotes are threads that are watched here and may run in other processes.
	remotes map[chat.ThreadID]*remote
}

// New starts the engine and its sweep.
func New(c Config) *Engine {
	c.MaxWaiting = cmp.Or(c.MaxWaiting, DefaultMaxWaiting)
	c.IdleAfter = cmp.Or(c.IdleAfter, DefaultIdleAfter)
	c.SweepEvery = cmp.Or(c.SweepEvery, DefaultSweep)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Adopt == nil {
		c.Adopt = func(chat.ThreadID) bool { return true }
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	e := &Engine{Config: c, actors: map[chat.ThreadID]*actor{}, children: map[chat.ThreadID]bool{}, remotes: map[chat.ThreadID]*remote{}}
	e.slots.most = c.MaxRuns
	e.Bounds = e.Bounds.Or(deadline.Defaults())
	e.timed = timedJournal{c.Journal, e}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	e.runs, e.endRun = context.WithCancelCause(e.ctx)
	e.wg.Go(e.sweep)
	return e
}

// Stop interrupts all runs and waits for them, at most until ctx ends. A run that was
// active continues at the next start. Stop may be called twice.
func (e *Engine) Stop(ctx context.Context) error { return e.StopGently(ctx, 0) }

// StopGently is Stop, but gives running tools up to the given time to finish.
func (e *Engine) StopGently(ctx context.Context, tools time.Duration) error {
	e.cancel(&deadline.Stopping{Tools: tools})
	done := make(chan struct{})
	go func() { e.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop: some threads did not end in time: %w", ctx.Err())
	}
}

// Receipt says what became of a prompt.
type Receipt struct {
	Seq     int64
	Waiting int    // prompts waiting now, including this one
	Refused string // why it will not be answered; "" if it will
	Again   bool   // it had been delivered before
}

// Deliver writes what somebody said into the journal and wakes whoever must
// answer. When it returns without an error, the message is durable. create
// describes threads that do not exist yet; it may be nil.
func (e *Engine) Deliver(ctx context.Context, in chat.Inbound, create func(chat.ThreadID) journal.Thread) ([]Receipt, error) {
	if len(in.Threads) == 0 {
		return nil, errors.New("deliver: no thread would get this")
	}
	if in.PlatformID == "" {
		in.Platform, in.PlatformID = "local", id.New()
	}
	in.Intake = cmp.Or(in.Intake, chat.Queue)
	arrival := journal.Arrival{Platform: in.Platform, What: "message", PlatformID: in.PlatformID, Version: in.Version}
	for _, thread := range in.Threads {
		c := e.guest(thread, in.Principal.String(), chat.Received{From: in.From, Principal: in.Principal, Blocks: in.Blocks,
			ReplyTo: in.ReplyTo, Intake: in.Intake, Prompt: in.Prompt, Terms: in.Terms, Channel: in.Channel, Post: in.Post, Together: in.Together})
		c.Events[0].Platform, c.Events[0].PlatformID, c.Events[0].Version = in.Platform, in.PlatformID, in.Version
		if !in.Fired {
			c.MaxWaiting = e.MaxWaiting
		}
		if create != nil {
			row := create(thread)
			c.Create = &row
		}
		arrival.Commits = append(arrival.Commits, c)
	}
	done, err := e.timed.Arrive(ctx, arrival)
	if err != nil {
		return nil, fmt.Errorf("deliver: %w", err)
	}
	if done.Again {
		return []Receipt{{Again: true}}, nil
	}
	receipts := make([]Receipt, len(done.Commits))
	for i, c := range done.Commits {
		thread := arrival.Commits[i].Thread
		receipts[i] = Receipt{Seq: c.Events[0].Seq, Waiting: c.Waiting}
		for _, ev := range c.Events {
			if r, ok := ev.Body.(chat.Refused); ok {
				receipts[i].Refused = r.Why
			}
		}
		e.moved(thread, c.Events)
	}
	return receipts, nil
}

// guest returns a commit by somebody who does not run the thread.
func (e *Engine) guest(thread chat.ThreadID, who string, bodies ...chat.Body) journal.Commit {
	c := journal.Commit{Thread: thread}
	for _, b := range bodies {
		c.Events = append(c.Events, chat.Event{Thread: thread, Who: who, Body: b, Platform: "local", PlatformID: id.New()})
	}
	return c
}

// moved notifies readers, actors and other processes of what a guest wrote.
func (e *Engine) moved(thread chat.ThreadID, events []chat.Event) {
	e.Bus.Publish(thread, bus.Note{Events: events})
	if !e.adopts(thread) {
		e.NotifyPeers(peernotify.Thread(thread))
		return
	}
	e.notifyWatchers(thread)
	for _, ev := range events {
		if journal.Wakes(ev.Body) {
			e.wake(thread, true)
			return
		}
	}
}

// Steer gives words to the current run. asPrompt reports that there was none,
// so they will be answered as a prompt of their own.
func (e *Engine) Steer(ctx context.Context, thread chat.ThreadID, s chat.Steered) (asPrompt bool, err error) {
	row, err := e.timed.Thread(ctx, thread)
	if err != nil {
		return false, fmt.Errorf("steer: %w", err)
	}
	s.Mode = cmp.Or(s.Mode, chat.Interrupt)
	done, err := e.timed.Commit(ctx, e.guest(thread, s.Principal.String(), s))
	if err != nil {
		return false, fmt.Errorf("steer: %w", err)
	}
	e.moved(thread, done.Events)
	return !row.Status.On(), nil
}

// Abort ends the current run. With all, it also refuses what waits.
// It reports whether there was anything to end.
func (e *Engine) Abort(ctx context.Context, thread chat.ThreadID, by string, all bool) (bool, error) {
	row, err := e.timed.Thread(ctx, thread)
	if err != nil {
		return false, fmt.Errorf("abort: %w", err)
	}
	if row.Status.On() {
		run, err := e.timed.LastRun(ctx, thread)
		if err != nil {
			return false, fmt.Errorf("abort: %w", err)
		}
		c := e.guest(thread, by, chat.AbortAsked{Run: run, By: by, All: all})
		c.Approvals = []approval.Change{{CancelRun: run}}
		done, err := e.timed.Commit(ctx, c)
		if err != nil {
			return false, fmt.Errorf("abort: %w", err)
		}
		e.moved(thread, done.Events)
		return true, nil
	}
	if !all || row.Waiting == 0 {
		return false, nil
	}
	seqs, err := e.timed.PendingPrompts(ctx, thread)
	if err != nil {
		return false, fmt.Errorf("abort: %w", err)
	}
	var bodies []chat.Body
	for _, seq := range seqs {
		bodies = append(bodies, chat.Refused{Seq: seq, Why: "stopped by " + by})
	}
	if len(bodies) == 0 {
		return false, nil
	}
	c := e.guest(thread, by, bodies...)
	c.Beside = e.settles(row, "stopped by "+by+" before it began", true)
	done, err := e.timed.Commit(ctx, c)
	if err != nil {
		return false, fmt.Errorf("abort: %w", err)
	}
	e.moved(thread, done.Events)
	if e.inQueue(thread) {
		e.Wake(thread) // it need not wait any longer
	}
	e.wroteBeside(c.Beside, done.Beside)
	return true, nil
}

// sweep makes up for lost notifications. It wakes threads that have work, notices what other
// processes wrote, reminds people of approvals and ends overdue ones.
func (e *Engine) sweep() {
	if e.FirstSweep > 0 {
		if !await.For(e.ctx, e.FirstSweep) {
			return
		}
	}
	peers := e.subscribePeers() // before the first check, so that nothing is missed between the two
	defer peers.Close()
	tick := time.NewTicker(e.SweepEvery)
	defer tick.Stop()
	rush := rush{release: func() {
		e.wg.Go(func() { // next to the sweep, since releasing may hang on a server that does not stop
			if e.AfterRush != nil {
				e.AfterRush()
			}
			debug.FreeOSMemory()
		})
	}}
	var seen int64 = -1
	for {
		if version, err := e.timed.DataVersion(e.ctx); err == nil && version != seen {
			if seen >= 0 || e.FirstSweep > 0 { // others may have written while it waited
				e.wakeAll()
			}
			seen = version
		}
		// Always, not only after a write: a process that died leaves a
		// running thread behind and writes nothing any more.
		e.wakeActive()
		e.expire(e.ctx)
		e.remind()
		rush.see(e.Actors(), e.Now())
		if !e.waitForPeers(peers, tick.C) {
			return
		}
	}
}

// LookAgain looks for work at once, as the next sweep would, because threads held by others may be free now.
func (e *Engine) LookAgain() {
	if e.ctx.Err() == nil {
		go e.wakeActive()
	}
}

// wakeActive wakes every thread that has work.
func (e *Engine) wakeActive() {
	threads, err := e.timed.ActiveThreads(e.ctx)
	if err != nil {
		if e.ctx.Err() == nil {
			e.Log.Warn("sweep could not read the threads that have work", "component", "engine", "event", "sweep_failed", "error", err)
		}
		return
	}
	try := func(owner.Name) bool { return true }
	if shared, ok := e.Owner.(owner.Shared); ok && len(threads) > 0 {
		if try, err = shared.Sweep(e.ctx); err != nil {
			if e.ctx.Err() == nil {
				e.Log.Warn("sweep could not read who has which thread", "component", "engine", "event", "sweep_failed", "error", err)
			}
			return
		}
	}
	for _, t := range threads {
		if e.adopts(t.ID) && !e.inQueue(t.ID) && try(owner.Thread(t.ID)) {
			e.Wake(t.ID)
		}
	}
}

// inQueue reports whether the thread's actor waits for a slot. The actor checks the journal when it gets one.
func (e *Engine) inQueue(thread chat.ThreadID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.actors[thread]
	return a != nil && a.queued.Load()
}

// wakeAll wakes every reader and actor of this process.
func (e *Engine) wakeAll() {
	e.Bus.AllChanged()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.actors {
		a.wake()
	}
}

// Wake makes the thread's actor look for work. It creates the actor if there is none.
func (e *Engine) Wake(thread chat.ThreadID) { e.wake(thread, false) }

// wake is Wake; news says that this process has just written what there is to see.
func (e *Engine) wake(thread chat.ThreadID, news bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return
	}
	a := e.actors[thread]
	if a == nil {
		a = e.newActor(thread)
	}
	if news {
		a.news.Store(true)
	}
	a.wake()
}

// Actors returns how many threads have an actor now.
func (e *Engine) Actors() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.actors)
}

// Fenced returns how often another process has taken a thread from this one in the middle of a run.
func (e *Engine) Fenced() int64 { return e.fenced.Load() }
