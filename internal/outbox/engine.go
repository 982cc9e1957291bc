// Package outbox delivers messages and reactions to a platform, each once.
//
// It promises: everything that is wanted ends on the platform exactly once, with its
// last text, or is recorded as failed with the reason; messages of a lane are made in the
// order in which they were asked for; a lane that cannot go on holds up no other; and a
// process that dies at any moment leaves nothing that the next one does not finish.
//
// What is wanted is in the store, so the engine remembers nothing that matters. Whoever
// writes there calls Wake.
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

// Options say whose lanes are run and how. Zero numbers mean the defaults.
type Options struct {
	Store    Store
	Platform Platform
	Name     string // of the platform, as in journal.Lane
	Bot      string

	Parallel    int           // calls at the same time; 8
	Pace        time.Duration // between edits of one message; 1 s
	BackoffMax  time.Duration // the longest wait after a failure, from 1 s on; 1 min
	CallTimeout time.Duration // 20 s
	Grace       time.Duration // how long a stop waits for calls that are on; 5 s
	Sweep       time.Duration // between looks for work that nobody rang for; 30 s
	// A thing on which the platform fails, though it answers, is given up: after GiveUp (5 min) if
	// others of its kind are done meanwhile, after GiveUpUnsure (6 h) if there are none. Time in
	// which the platform answers nothing does not count.
	GiveUp, GiveUpUnsure time.Duration
	// NonceWindow is how long the platform surely recognises a nonce. Within it a message
	// with an unknown outcome is simply sent again; after it, or if it is 0, it is looked
	// for first.
	NonceWindow time.Duration
	// Late is how long a call that was given up may still be done. A message that was looked
	// for and not found is made again only after that.
	Late      time.Duration
	AllCalls  Rate // of the bot
	LaneCalls Rate // of each kind of call in each lane

	// Failed hears of what cannot be shown, after it was recorded. May be nil; it holds up
	// its lane while it thinks. The store has it too, for whoever was not listening.
	Failed func(journal.Outgoing)
	Log    *slog.Logger // nil: silence
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

// Engine runs the lanes of one bot. There must be one at a time for a bot: who runs it
// holds the bot's lock.
type Engine struct {
	o      Options
	limits limits
	pulse  *pulse
	slots  chan struct{}

	mu    sync.Mutex
	on    context.Context // ended: begin nothing; nil: not running
	calls context.Context // of calls that are on
	lanes map[journal.Lane]*lane
	moved chan struct{} // closed and renewed when something was recorded
	wg    sync.WaitGroup
}

// New makes an engine that does nothing yet.
func New(o Options) *Engine {
	o = o.filled()
	return &Engine{o: o, limits: limits{all: o.AllCalls, each: o.LaneCalls}, pulse: newPulse(), slots: make(chan struct{}, o.Parallel),
		lanes: map[journal.Lane]*lane{}, moved: make(chan struct{})}
}

// Run works until the context ends, finishes or cuts off the calls that are on, and gives
// nil. It is called once. Its only error is a store that cannot be read at the start.
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

// stop lets nothing begin any more, waits for the lanes, and after the grace cuts their calls.
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

// Wake tells that there is something new in lanes. Those of other bots are left alone.
func (e *Engine) Wake(lanes ...journal.Lane) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range lanes {
		e.wake(id)
	}
}

// wake rings the lane's worker, or starts one; under mu. Nil if the engine is not running.
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

// Preview shows a passing state of a message that has been made, or will be. Nothing of it
// is kept: a newer one replaces it, a crash forgets it, and after the message's final text it
// is not shown. Only messages that will have a final text may be previewed.
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

// Echo tells that a message with this nonce was seen on the platform; often that is known
// before the answer to the call. Strangers' messages are no harm. It reports whether it
// was news.
func (e *Engine) Echo(ctx context.Context, nonce, messageID string) (bool, error) {
	id, ours, err := e.o.Store.Echo(ctx, e.o.Name, e.o.Bot, nonce, messageID)
	if err != nil || !ours {
		return false, err
	}
	e.tell()
	e.Wake(id)
	return true, nil
}

// Settled waits until the outcome of every message that was being made in the lane is
// known, so that whoever answers one of them finds its thread.
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

// failed passes a failure on.
func (e *Engine) failed(o journal.Outgoing, why Why, err error) {
	e.o.Log.Warn("outbox: cannot be shown", "lane", o.Lane.String(), "key", o.Key, "why", string(why), "error", err)
	if e.o.Failed != nil {
		o.State, o.Why, o.Error = journal.Failed, string(why), err.Error()
		e.o.Failed(o)
	}
}
