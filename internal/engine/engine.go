// Package engine keeps threads alive: what people say goes into the journal, an
// actor per thread takes it from there, and whoever watches reads it back.
//
// It promises that a thread has at most one actor in the world (lock and epoch),
// that an idle or suspended one costs no goroutine, that nothing that could move
// stays asleep longer than a sweep, and that stopping loses nothing: a run that was
// on goes on at the next start.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/agent"
	"chorus/internal/agent/deadline"
	"chorus/internal/approval"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/ledger"
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

// Watcher is the part of the store that shows what has moved and what is due.
type Watcher interface {
	ActiveThreads(ctx context.Context) ([]journal.Thread, error)
	DataVersion(ctx context.Context) (int64, error)
	LastRun(ctx context.Context, thread chat.ThreadID) (string, error)
	PendingPrompts(ctx context.Context, thread chat.ThreadID) ([]int64, error)
}

// Books is the part of the store that keeps approvals and money.
type Books interface {
	Approval(ctx context.Context, id string) (approval.Approval, error)
	Approvals(ctx context.Context, f approval.Filter) ([]approval.Approval, error)
	Overdue(ctx context.Context, now time.Time) ([]approval.Approval, error)
	RunCost(ctx context.Context, run string) (ledger.Nanos, error)
}

// Journal is the store as the engine needs it.
type Journal interface {
	Writer
	Reader
	Watcher
	Books
}

// Gate judges a call before it runs. Pure apart from reading configuration. The
// question names everybody whose words the run has taken so far; who pays for it.
type Gate interface {
	Judge(q agent.ProposedCall, who chat.Principal) approval.Ruling
}

// Work is what a setup is for: the run that is on, or the prompt that is next.
type Work struct {
	Terms   chat.Terms
	Seq     int64 // the event it begins with
	Senders []transcript.Sender
}

// Setup is how one thread's next run is to be done.
type Setup struct {
	Agent *agent.Agent
	Gate  Gate
	// Price is what a model costs, and the most it can put out.
	Price func(model string) (ledger.Price, int)
	// Budget is what may be spent; the zero value: anything.
	Budget ledger.Budget
	Dir    string
	// Asking is how people are asked.
	Asking Asking
}

// Config is what an engine is made of.
type Config struct {
	Journal Journal
	Bus     *bus.Bus
	// Setup is called before each run, so that a change of settings takes effect with the next.
	Setup func(ctx context.Context, thread journal.Thread, work Work) (Setup, error)
	// Takes says whether this process begins a run with this prompt; nil: with any.
	Takes func(thread chat.ThreadID, prompt transcript.Waiting) bool
	// Adopt says which threads this process may run: those of others only hear
	// what is written here. A thread named in Wake needs no leave.
	Adopt      func(chat.ThreadID) bool
	LockDir    string
	Neighbours *peernotify.Peers // rings between the processes of this home; nil: only the sweep sees what others do
	MaxWaiting int               // prompts waiting in a thread; 0: DefaultMaxWaiting
	IdleAfter  time.Duration     // 0: DefaultIdleAfter
	SweepEvery time.Duration     // 0: DefaultSweep
	FirstSweep time.Duration     // how long the first one waits, so that whoever came with a prompt is served before
	Bounds     deadline.Bounds   // how long anything outside is waited for; an agent may have its own
	Now        func() time.Time
	Log        *slog.Logger
}

// The defaults.
const (
	DefaultMaxWaiting = 5
	DefaultIdleAfter  = 5 * time.Minute
	DefaultSweep      = 2 * time.Second
)

// Engine runs threads. Make it with New, end it with Stop.
type Engine struct {
	Config
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	quick  Journal      // the journal, never waited for too long; actors have their watchdog instead
	lost   atomic.Int64 // waits that were left behind and have not ended
	fenced atomic.Int64 // runs that another process took over while they were on here

	mu     sync.Mutex
	actors map[chat.ThreadID]*actor
	desks  map[chan struct{}]bool // rung when an approval may have changed
}

// New starts the engine and its sweep.
func New(c Config) *Engine {
	if c.MaxWaiting == 0 {
		c.MaxWaiting = DefaultMaxWaiting
	}
	if c.IdleAfter == 0 {
		c.IdleAfter = DefaultIdleAfter
	}
	if c.SweepEvery == 0 {
		c.SweepEvery = DefaultSweep
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Adopt == nil {
		c.Adopt = func(chat.ThreadID) bool { return true }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{Config: c, actors: map[chat.ThreadID]*actor{}, desks: map[chan struct{}]bool{}}
	e.Bounds = e.Bounds.Or(deadline.Defaults())
	e.quick = impatient{c.Journal, e}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	e.wg.Go(e.sweep)
	return e
}

// Stop ends every run where it stands and waits, at most until ctx ends. A run that
// was on goes on at the next start. It may be called twice.
func (e *Engine) Stop(ctx context.Context) error {
	e.cancel(agent.ErrStopping)
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
	Thread  chat.ThreadID
	Seq     int64
	Waiting int    // prompts waiting now, this one included
	Refused string // why it will not be answered; empty: it will
	Again   bool   // it had been delivered before
}

// Deliver puts what somebody said into the journal and wakes whoever must answer.
// When it returns without an error, it is durable. create describes threads that
// are not there yet; it may be nil.
func (e *Engine) Deliver(ctx context.Context, in chat.Inbound, create func(chat.ThreadID) journal.Thread) ([]Receipt, error) {
	if len(in.Threads) == 0 {
		return nil, errors.New("deliver: nobody would hear this")
	}
	if in.PlatformID == "" {
		in.Platform, in.PlatformID = "local", id.New()
	}
	if in.Intake == "" {
		in.Intake = chat.Queue
	}
	arrival := journal.Arrival{Platform: in.Platform, What: "message", PlatformID: in.PlatformID, Version: in.Version}
	for _, thread := range in.Threads {
		c := e.guest(thread, in.Principal.String(), chat.Received{From: in.From, Principal: in.Principal, Blocks: in.Blocks,
			ReplyTo: in.ReplyTo, Intake: in.Intake, Prompt: in.Prompt, Terms: in.Terms})
		c.Events[0].Platform, c.Events[0].PlatformID, c.Events[0].Version = in.Platform, in.PlatformID, in.Version
		c.MaxWaiting = e.MaxWaiting
		if create != nil {
			row := create(thread)
			c.Create = &row
		}
		arrival.Commits = append(arrival.Commits, c)
	}
	done, err := e.quick.Arrive(ctx, arrival)
	if err != nil {
		return nil, fmt.Errorf("deliver: %w", err)
	}
	if done.Again {
		return []Receipt{{Thread: in.Threads[0], Again: true}}, nil
	}
	receipts := make([]Receipt, len(done.Commits))
	for i, c := range done.Commits {
		thread := arrival.Commits[i].Thread
		receipts[i] = Receipt{Thread: thread, Seq: c.Events[0].Seq, Waiting: c.Waiting}
		for _, ev := range c.Events {
			if r, ok := ev.Body.(chat.Refused); ok {
				receipts[i].Refused = r.Why
			}
		}
		e.moved(thread, c.Events)
	}
	return receipts, nil
}

func (e *Engine) guest(thread chat.ThreadID, who string, bodies ...chat.Body) journal.Commit {
	c := journal.Commit{Thread: thread}
	for _, b := range bodies {
		c.Events = append(c.Events, chat.Event{Thread: thread, Who: who, Body: b, Platform: "local", PlatformID: id.New()})
	}
	return c
}

// moved tells everybody that guests wrote something.
func (e *Engine) moved(thread chat.ThreadID, events []chat.Event) {
	e.Bus.Ring(thread, bus.Note{Events: events})
	e.ringDesks()
	if !e.Adopt(thread) {
		e.Neighbours.Notify(thread)
		return
	}
	for _, ev := range events {
		if journal.Wakes(ev.Body) {
			e.wake(thread, true)
			return
		}
	}
}

// Steer gives words to the run that is on. asPrompt reports that none was, so
// that they will be answered as a prompt of their own.
func (e *Engine) Steer(ctx context.Context, thread chat.ThreadID, s chat.Steered) (asPrompt bool, err error) {
	row, err := e.quick.Thread(ctx, thread)
	if err != nil {
		return false, fmt.Errorf("steer: %w", err)
	}
	if s.Mode == "" {
		s.Mode = chat.Interrupt
	}
	done, err := e.quick.Commit(ctx, e.guest(thread, s.Principal.String(), s))
	if err != nil {
		return false, fmt.Errorf("steer: %w", err)
	}
	e.moved(thread, done.Events)
	return row.Status != chat.Running && row.Status != chat.Waiting, nil
}

// Abort ends the run that is on; with all, what waits is refused too. It reports
// whether there was anything to end.
func (e *Engine) Abort(ctx context.Context, thread chat.ThreadID, by string, all bool) (bool, error) {
	row, err := e.quick.Thread(ctx, thread)
	if err != nil {
		return false, fmt.Errorf("abort: %w", err)
	}
	if row.Status == chat.Running || row.Status == chat.Waiting {
		run, err := e.quick.LastRun(ctx, thread)
		if err != nil {
			return false, fmt.Errorf("abort: %w", err)
		}
		c := e.guest(thread, by, chat.AbortAsked{Run: run, By: by, All: all})
		c.Approvals = []approval.Change{{CancelRun: run}}
		done, err := e.quick.Commit(ctx, c)
		if err != nil {
			return false, fmt.Errorf("abort: %w", err)
		}
		e.moved(thread, done.Events)
		return true, nil
	}
	if !all || row.Waiting == 0 {
		return false, nil
	}
	seqs, err := e.quick.PendingPrompts(ctx, thread)
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
	done, err := e.quick.Commit(ctx, e.guest(thread, by, bodies...))
	if err != nil {
		return false, fmt.Errorf("abort: %w", err)
	}
	e.moved(thread, done.Events)
	return true, nil
}

// sweep stands behind every bell: it wakes what a lost ring left asleep, notices
// what other processes wrote, reminds of approvals and ends those whose time is over.
func (e *Engine) sweep() {
	if e.FirstSweep > 0 {
		select {
		case <-time.After(e.FirstSweep):
		case <-e.ctx.Done():
			return
		}
	}
	ear := e.listenAround() // before the first look, so that nothing falls between the two
	defer ear.Close()
	tick := time.NewTicker(e.SweepEvery)
	defer tick.Stop()
	var seen int64 = -1
	for {
		if version, err := e.quick.DataVersion(e.ctx); err == nil && version != seen {
			if seen >= 0 || e.FirstSweep > 0 { // others may have written while it waited
				e.ringAll()
			}
			seen = version
		}
		// Every time, not only after a write: a process that died leaves a running
		// thread behind and writes nothing any more.
		e.stir()
		e.expire(e.ctx)
		e.remind()
		if !e.hear(ear, tick.C) {
			return
		}
	}
}

func (e *Engine) stir() {
	threads, err := e.quick.ActiveThreads(e.ctx)
	if err != nil {
		if e.ctx.Err() == nil {
			e.Log.Warn("sweep could not read the threads that moved", "component", "engine", "event", "sweep_failed", "error", err)
		}
		return
	}
	for _, t := range threads {
		if e.Adopt(t.ID) {
			e.Wake(t.ID)
		}
	}
}

// ringAll lets everybody look who waits for anything.
func (e *Engine) ringAll() {
	e.Bus.RingAll()
	e.ringDesks()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.actors {
		a.ring()
	}
}

// Wake lets the thread's actor look, making one if there is none.
func (e *Engine) Wake(thread chat.ThreadID) { e.wake(thread, false) }

// wake is Wake; news: this process has just written what there is to see.
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
	a.ring()
}

// Actors is how many threads have an actor now.
func (e *Engine) Actors() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.actors)
}

// Fenced is how often another process has taken a thread from this one in mid-run.
func (e *Engine) Fenced() int64 { return e.fenced.Load() }
