// Package outbox delivers messages and reactions to a platform, each exactly once.
//
// Everything that is wanted reaches the platform exactly once, with its last text, or is
// recorded as failed with the reason. Messages of a lane are made in the order in which
// they were requested. A blocked lane does not block others. If a process dies at any
// moment, the next one completes its work.
//
// What is wanted is in the store, so the engine remembers nothing important. Writers to the store call Wake.
package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"chorus/internal/journal"
)

// Store is what the engine needs of the store.
type Store interface {
	OpenLanes(ctx context.Context, platform, bot string) ([]journal.Lane, error)
	OpenRows(ctx context.Context, lane journal.Lane, limit int) ([]journal.Outgoing, error)
	Outgoing(ctx context.Context, lane journal.Lane, key string) (journal.Outgoing, error)
	BeginSend(context.Context, journal.Outgoing) (journal.Outgoing, error)
	EndSend(context.Context, journal.Outcome) error
	Echo(ctx context.Context, platform, bot, nonce, messageID string) (journal.Lane, bool, error)
	LastMade(ctx context.Context, lane journal.Lane, before int64) (string, error)
}

// Options say whose lanes to run and how. Zero numbers mean the defaults.
type Options struct {
	Store    Store
	Platform Platform
	Name     string // of the platform, as in journal.Lane
	Bot      string

	Parallel    int           // concurrent calls; 8
	Pace        time.Duration // between edits of one message; 1 s
	BackoffMax  time.Duration // the longest wait after a failure, from 1 s on; 1 min
	CallTimeout time.Duration // 20 s
	Grace       time.Duration // how long a stop waits for calls in progress; 5 s
	Sweep       time.Duration // interval of checks for work without a wake-up; 30 s
	// A thing on which the platform keeps failing, although it answers otherwise, is given up:
	// after GiveUp (5 min) if others of its kind succeed meanwhile, after GiveUpUnsure (6 h) if
	// there are none. Time in which the platform answers nothing does not count.
	GiveUp, GiveUpUnsure time.Duration
	// NonceWindow is how long the platform reliably recognises a nonce. Within it, a message with
	// an unknown outcome is simply sent again; after it, or if it is 0, it is searched for first.
	NonceWindow time.Duration
	// Late is how long a call that was given up may still succeed. A message that was
	// searched for and not found is made again only after that.
	Late      time.Duration
	AllCalls  Rate // of the bot
	LaneCalls Rate // of each kind of call in each lane

	// Failed is called with what cannot be shown, after that was recorded. It may be nil. It blocks
	// its lane while it runs. The store has the failures too, for callers that missed them.
	Failed func(journal.Outgoing)
	Log    *slog.Logger // nil: no logging
}

func (o Options) filled() Options {
	if o.Parallel <= 0 {
		o.Parallel = 8
	}
	for _, d := range []struct {
		at   *time.Duration
		what time.Duration
	}{
		{&o.Pace, time.Second}, {&o.BackoffMax, time.Minute}, {&o.CallTimeout, 20 * time.Second},
		{&o.Grace, 5 * time.Second}, {&o.Sweep, 30 * time.Second}, {&o.GiveUp, 5 * time.Minute}, {&o.GiveUpUnsure, 6 * time.Hour},
	} {
		if *d.at <= 0 {
			*d.at = d.what
		}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// Engine runs the lanes of one bot. Only one may run for a bot at a time: its owner holds the bot's lock.
type Engine struct {
	o      Options
	limits limits
	pulse  *pulse
	slots  chan struct{}

	mu    sync.Mutex
	on    context.Context // when it ends, begin nothing more; nil: not running
	calls context.Context // context of calls in progress
	lanes map[journal.Lane]*lane
	moved chan struct{} // closed and replaced when something was recorded
	wg    sync.WaitGroup
}

// New creates an engine that is not running yet.
func New(o Options) *Engine {
	o = o.filled()
	return &Engine{o: o, limits: limits{all: o.AllCalls, each: o.LaneCalls}, pulse: newPulse(), slots: make(chan struct{}, o.Parallel),
		lanes: map[journal.Lane]*lane{}, moved: make(chan struct{})}
}

// Run works until the context ends, finishes or cancels the calls in progress, and returns nil. It
// is called once. Its only error is that the store cannot be read at the start.
func (e *Engine) Run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	e.mu.Lock()
	if e.on != nil {
		e.mu.Unlock()
		end()
		return errors.New("the outbox runs already")
	}
	e.on, e.calls = ctx, calls
	e.mu.Unlock()
	defer e.stop(end, cut)
	if err := e.look(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	sweep := time.NewTicker(e.o.Sweep)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sweep.C:
			if err := e.look(ctx); err != nil {
				e.o.Log.Warn("outbox: cannot look for work; trying again", "bot", e.o.Bot, "error", err)
			}
		}
	}
}

// stop prevents new calls, waits for the lanes, and cancels their calls after the grace period.
func (e *Engine) stop(end, cut context.CancelFunc) {
	end()
	timer := time.AfterFunc(e.o.Grace, cut)
	defer timer.Stop()
	e.mu.Lock()
	for _, l := range e.lanes {
		l.notify()
	}
	e.mu.Unlock()
	e.wg.Wait()
}

func (e *Engine) look(ctx context.Context) error {
	lanes, err := e.o.Store.OpenLanes(ctx, e.o.Name, e.o.Bot)
	e.Wake(lanes...)
	return err
}

// Wake signals that there is something new in lanes. It ignores lanes of other bots.
func (e *Engine) Wake(lanes ...journal.Lane) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range lanes {
		e.wake(id)
	}
}

// wake wakes the lane's worker, or starts one. It returns nil if the
// engine is not running. The caller holds mu.
func (e *Engine) wake(id journal.Lane) *lane {
	if e.on == nil || e.on.Err() != nil || id.Platform != e.o.Name || id.Bot != e.o.Bot {
		return nil
	}
	l, ok := e.lanes[id]
	if !ok {
		l = &lane{e: e, id: id, wake: make(chan struct{}, 1), edited: map[string]time.Time{}, doubts: map[string]doubt{}, stumbled: map[string]int{}, solos: map[string]*solo{}}
		e.lanes[id] = l
		e.wg.Go(func() { l.work(e.on) })
	}
	l.notify()
	return l
}

// Preview shows a temporary state of a message that has been made, or will be. Previews are not
// stored: a newer one replaces an older one, a crash loses them, and after the message's final text
// none is shown. Only messages that will have a final text may be previewed.
func (e *Engine) Preview(id journal.Lane, key string, body json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.wake(id); l != nil {
		if l.previews == nil {
			l.previews = map[string]json.RawMessage{}
		}
		l.previews[key] = body
	}
}

// Echo reports that a message with this nonce was seen on the platform, which is often known before
// the call returns. Messages of others do no harm. It returns whether this was new.
func (e *Engine) Echo(ctx context.Context, nonce, messageID string) (bool, error) {
	id, ours, err := e.o.Store.Echo(ctx, e.o.Name, e.o.Bot, nonce, messageID)
	if err != nil || !ours {
		return false, err
	}
	e.tell()
	e.Wake(id)
	return true, nil
}

// Settled waits until the outcome of every message that was being made in the lane
// is known, so that a reply to one of them finds its thread.
func (e *Engine) Settled(ctx context.Context, id journal.Lane) error {
	for {
		e.mu.Lock()
		moved := e.moved
		e.mu.Unlock()
		rows, err := e.o.Store.OpenRows(ctx, id, maxRows)
		if err != nil {
			return err
		}
		open := false
		for _, o := range rows {
			open = open || actionOf(o) == create && o.State == journal.Sending
		}
		if !open {
			return nil
		}
		e.Wake(id)
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell wakes those who wait in Settled.
func (e *Engine) tell() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.moved)
	e.moved = make(chan struct{})
}

// failed reports a failure.
func (e *Engine) failed(o journal.Outgoing, why Why, err error) {
	e.o.Log.Warn("outbox: cannot be shown", "lane", o.Lane.String(), "key", o.Key, "why", string(why), "error", err)
	if e.o.Failed != nil {
		o.State, o.Why, o.Error = journal.Failed, string(why), err.Error()
		e.o.Failed(o)
	}
}
