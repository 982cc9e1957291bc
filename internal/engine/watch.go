package engine

import (
	"context"
	"iter"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
)

// Item is what a watcher sees: an event of the journal, or a live piece between two of them.
type Item struct {
	Event *chat.Event
	Live  chat.Live
}

// Watch yields the thread's events with a number greater than after, in order, without
// gaps or duplicates, and live pieces between them, until ctx ends. A watcher that joins
// late gets the unfinished answer as one piece at offset 0. An error is one of the
// thread's actor; watching continues after it.
func (e *Engine) Watch(ctx context.Context, thread chat.ThreadID, after int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		w := &watch{engine: e, thread: thread, seq: after, yield: yield, remote: e.followElsewhere(thread)}
		defer e.leaveElsewhere(thread, w.remote)
		subscription, late := e.listen(thread, w.remote)
		defer subscription.Close()
		if !w.read(ctx) {
			return
		}
		for _, d := range late {
			if !yield(Item{Live: d}, nil) {
				return
			}
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-subscription.Wake():
			}
			if !w.take(ctx, subscription) {
				return
			}
		}
	}
}

// Gather is Watch for readers that can wait, such as mirrors. Each time look has
// a value, it yields the events since the last time, until ctx ends. Nothing
// wakes the reader, so it costs a run nothing.
func (e *Engine) Gather(ctx context.Context, thread chat.ThreadID, after int64, look <-chan time.Time) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		w := &watch{engine: e, thread: thread, seq: after, yield: yield}
		subscription := e.Bus.SubscribeLazy(thread)
		defer subscription.Close()
		if !w.read(ctx) {
			return
		}
		for {
			select {
			case <-ctx.Done():
				return
			case <-look:
			}
			if !w.take(ctx, subscription) {
				return
			}
		}
	}
}

// listen subscribes and reads the unfinished answer under one lock, so that no piece is missed
// between the two. r is what another process publishes; nil if there is none.
func (e *Engine) listen(thread chat.ThreadID, r *remote) (*bus.Subscription, []chat.Live) {
	e.mu.Lock()
	a := e.actors[thread]
	e.mu.Unlock()
	var late []chat.Live
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		late = r.text.late()
	}
	if a != nil {
		a.liveMu.Lock()
		defer a.liveMu.Unlock()
		if here := a.partial.late(); len(here) > 0 {
			late = here
		}
	}
	return e.Bus.Subscribe(thread), late
}

type watch struct {
	engine *Engine
	thread chat.ThreadID
	seq    int64
	yield  func(Item, error) bool
	remote *remote // nil: live pieces come only from this process
	passed passed
}

// read yields the journal's events after seq.
func (w *watch) read(ctx context.Context) bool {
	for {
		events, err := w.engine.timed.Events(ctx, w.thread, w.seq, page)
		if err != nil {
			return ctx.Err() == nil && w.yield(Item{}, err)
		}
		for i := range events {
			w.seq = events[i].Seq
			w.passed.see(&events[i])
			if !w.yield(Item{Event: &events[i]}, nil) {
				return false
			}
		}
		if len(events) < page {
			return true
		}
	}
}

func (w *watch) take(ctx context.Context, subscription *bus.Subscription) bool {
	notes, gap := subscription.Take()
	if gap {
		w.remote.lookElsewhere()
		if !w.read(ctx) {
			return false
		}
	}
	for _, n := range notes {
		for i := range n.Events {
			ev := &n.Events[i]
			switch {
			case ev.Seq <= w.seq:
				continue
			case ev.Seq == w.seq+1:
				w.seq = ev.Seq
				w.passed.see(ev)
				if !w.yield(Item{Event: ev}, nil) {
					return false
				}
			default:
				if !w.read(ctx) {
					return false
				}
			}
		}
		if n.Live != nil && !w.live(ctx, n.Live) {
			return false
		}
		if n.Err != nil && !w.yield(Item{}, n.Err) {
			return false
		}
	}
	return true
}

// live yields a piece at its place among the events. Pieces of another process
// do not arrive together with its events: they may arrive before their run
// begins, or after the answer that they are part of.
func (w *watch) live(ctx context.Context, piece chat.Live) bool {
	if d, ok := piece.(chat.Delta); ok && w.remote != nil {
		if d.Run != w.passed.run && !w.read(ctx) {
			return false
		}
		if w.passed.over(d) {
			return true
		}
		w.passed.run = d.Run
	}
	return w.yield(Item{Live: piece}, nil)
}

// passed is how far a watcher has come.
type passed struct {
	run, ended, saidIn string
	step, attempt      int
}

func (p *passed) see(ev *chat.Event) {
	switch body := ev.Body.(type) {
	case chat.RunStarted:
		p.run = body.Run
	case chat.Said:
		p.saidIn, p.step, p.attempt = ev.Run, body.Step, body.Attempt
	case chat.RunEnded:
		p.ended = body.Run
	}
}

// over reports whether the answer that the piece belongs to is already complete.
func (p *passed) over(d chat.Delta) bool {
	return d.Run == p.ended || d.Run == p.saidIn && (d.Step < p.step || d.Step == p.step && d.Attempt <= p.attempt)
}
