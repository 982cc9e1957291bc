package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// Fold says what a thread's events make of its messages. It must be a function of what it is
// given: after a crash the same events are folded again.
type Fold interface {
	// Codec names the version of the state. With another one the state is made anew from
	// the thread's first event.
	Codec() string
	// Fold takes the state after the events before (nil: there are none), and the events
	// that follow. It gives the new state and what is wished now.
	Fold(t journal.Thread, state []byte, events []chat.Event) ([]byte, []journal.Desired, error)
}

// Plain is a Fold that remembers nothing.
type Plain func(events []chat.Event) []journal.Desired

// Codec of no state.
func (Plain) Codec() string { return "" }

// Fold calls the function.
func (f Plain) Fold(_ journal.Thread, _ []byte, events []chat.Event) ([]byte, []journal.Desired, error) {
	return nil, f(events), nil
}

var _ Fold = Plain(nil)

// Journal is what the planner needs of the store.
type Journal interface {
	Thread(context.Context, chat.ThreadID) (journal.Thread, error)
	Events(ctx context.Context, thread chat.ThreadID, after int64, limit int) ([]chat.Event, error)
	Reader(ctx context.Context, name string, thread chat.ThreadID) (int64, error)
	BehindIn(ctx context.Context, reader, transport string, limit int) ([]chat.ThreadID, error)
	Snapshot(ctx context.Context, thread chat.ThreadID, codec string) (journal.Snapshot, error)
	Plan(context.Context, journal.Plan) error
}

// PlannerOptions say what is read and whom to tell.
type PlannerOptions struct {
	Journal   Journal
	Reader    string // the name under which its places are kept
	Transport string // whose threads
	Fold      Fold
	Wake      func(...journal.Lane) // Engine.Wake, or one for several engines
	Sweep     time.Duration         // between looks that nobody rang for; 0: 30 s
	Log       *slog.Logger          // nil: silence
}

// Planner is a durable reader of the journal: it folds what is new in threads and writes
// the wishes, in one transaction with its place.
type Planner struct {
	o    PlannerOptions
	bell chan struct{}

	mu    sync.Mutex
	rung  map[chat.ThreadID]bool
	order []chat.ThreadID
}

// NewPlanner makes a planner that does nothing yet.
func NewPlanner(o PlannerOptions) *Planner {
	if o.Sweep <= 0 {
		o.Sweep = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Planner{o: o, bell: make(chan struct{}, 1), rung: map[chat.ThreadID]bool{}}
}

// Look tells that a thread has moved. It never waits; it may be called before Run.
func (p *Planner) Look(thread chat.ThreadID) {
	p.mu.Lock()
	if !p.rung[thread] {
		p.rung[thread] = true
		p.order = append(p.order, thread)
	}
	p.mu.Unlock()
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

// Run reads until the context ends and gives nil. A thread that cannot be read is tried
// again at the next ring or sweep and holds up no other.
func (p *Planner) Run(ctx context.Context) error {
	sweep := time.NewTicker(p.o.Sweep)
	defer sweep.Stop()
	p.sweep(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sweep.C:
			p.sweep(ctx)
		case <-p.bell:
			p.mu.Lock()
			threads := p.order
			p.order = nil
			clear(p.rung)
			p.mu.Unlock()
			for _, t := range threads {
				p.tryOne(ctx, t)
			}
		}
	}
}

func (p *Planner) sweep(ctx context.Context) {
	if err := p.CatchUp(ctx); err != nil && ctx.Err() == nil {
		p.o.Log.Warn("outbox: cannot read the journal; trying again", "reader", p.o.Reader, "error", err)
	}
}

func (p *Planner) tryOne(ctx context.Context, thread chat.ThreadID) {
	if err := p.Thread(ctx, thread); err != nil && ctx.Err() == nil {
		p.o.Log.Warn("outbox: cannot plan", "thread", string(thread), "error", err)
	}
}

// sweepPage is how many threads one look lists.
const sweepPage = 200

// CatchUp reads every thread to its end, once. Threads that fail are passed over; the
// first error of all is given.
func (p *Planner) CatchUp(ctx context.Context) error {
	var first error
	tried := map[chat.ThreadID]bool{}
	for {
		threads, err := p.o.Journal.BehindIn(ctx, p.o.Reader, p.o.Transport, sweepPage+len(tried))
		if err != nil {
			return errors.Join(first, err)
		}
		threads = slices.DeleteFunc(threads, func(t chat.ThreadID) bool { return tried[t] })
		if len(threads) == 0 {
			return first
		}
		for _, t := range threads {
			if err := p.Thread(ctx, t); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				tried[t] = true
				if first == nil {
					first = err
				}
			}
		}
	}
}

// Thread reads one thread to its end.
func (p *Planner) Thread(ctx context.Context, id chat.ThreadID) error {
	t, err := p.o.Journal.Thread(ctx, id)
	if err != nil {
		return err
	}
	for {
		more, err := p.page(ctx, t)
		if err != nil && !errors.Is(err, journal.ErrMoved) { // moved: somebody else has planned it; read on from there
			return err
		}
		if err == nil && !more {
			return nil
		}
	}
}

// page plans one page of events; more tells whether there may be another.
func (p *Planner) page(ctx context.Context, t journal.Thread) (more bool, err error) {
	at, err := p.o.Journal.Reader(ctx, p.o.Reader, t.ID)
	if err != nil {
		return false, err
	}
	events, err := p.o.Journal.Events(ctx, t.ID, at, 0)
	if err != nil || len(events) == 0 {
		return false, err
	}
	state, err := p.state(ctx, t, at)
	if err != nil {
		return false, err
	}
	state, wishes, err := p.o.Fold.Fold(t, state, events)
	if err != nil {
		return false, fmt.Errorf("fold events %d to %d of thread %s: %w", events[0].Seq, events[len(events)-1].Seq, t.ID, err)
	}
	plan := journal.Plan{Reader: p.o.Reader, Thread: t.ID, From: at, UpTo: events[len(events)-1].Seq, Wishes: wishes}
	if p.o.Fold.Codec() != "" {
		plan.State = &journal.Snapshot{Codec: p.codec(), Seq: plan.UpTo, State: state}
	}
	if err := p.o.Journal.Plan(ctx, plan); err != nil {
		return false, err
	}
	if len(wishes) > 0 && p.o.Wake != nil {
		lanes := make([]journal.Lane, 0, len(wishes))
		for _, w := range wishes {
			if !slices.Contains(lanes, w.Lane) {
				lanes = append(lanes, w.Lane)
			}
		}
		p.o.Wake(lanes...)
	}
	return true, nil
}

func (p *Planner) codec() string { return p.o.Reader + "/" + p.o.Fold.Codec() }

// state reads the state at a place, or makes it from the events before, whose wishes were
// written long ago.
func (p *Planner) state(ctx context.Context, t journal.Thread, at int64) ([]byte, error) {
	if at == 0 || p.o.Fold.Codec() == "" {
		return nil, nil
	}
	s, err := p.o.Journal.Snapshot(ctx, t.ID, p.codec())
	if err == nil && s.Seq == at {
		return s.State, nil
	}
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		return nil, err
	}
	var state []byte
	for seq := int64(0); seq < at; {
		events, err := p.o.Journal.Events(ctx, t.ID, seq, 0)
		if err != nil {
			return nil, err
		}
		events = slices.DeleteFunc(events, func(e chat.Event) bool { return e.Seq > at })
		if len(events) == 0 {
			return nil, fmt.Errorf("thread %s ends before event %d", t.ID, at)
		}
		if state, _, err = p.o.Fold.Fold(t, state, events); err != nil {
			return nil, fmt.Errorf("fold events of thread %s again: %w", t.ID, err)
		}
		seq = events[len(events)-1].Seq
	}
	return state, nil
}
