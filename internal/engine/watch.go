package engine

import (
	"context"
	"iter"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
)

// Item is what a watcher sees: an event of the journal, or a live piece between
// two of them.
type Item struct {
	Event *chat.Event
	Live  chat.Live
}

// Watch yields the thread's events with a number greater than after, in order and
// without a gap or a double, and live pieces between them, until ctx ends. A
// watcher that comes late gets the answer in the making as one piece at offset 0.
// An error is one of the thread's actor; watching goes on after it.
func (e *Engine) Watch(ctx context.Context, thread chat.ThreadID, after int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		w := &watch{engine: e, thread: thread, seq: after, yield: yield}
		subscription, late := e.listen(thread)
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

// Gather is Watch for readers that can wait, such as mirrors: it yields the events since
// the last look each time look has a value, until ctx ends. Nothing wakes the reader, so
// that it costs a run nothing.
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

// listen subscribes and reads the answer in the making under one lock, so that no piece
// is missed between the two.
func (e *Engine) listen(thread chat.ThreadID) (*bus.Subscription, []chat.Live) {
	e.mu.Lock()
	a := e.actors[thread]
	e.mu.Unlock()
	if a == nil {
		return e.Bus.Subscribe(thread), nil
	}
	a.liveMu.Lock()
	defer a.liveMu.Unlock()
	var late []chat.Live
	t := a.partial
	for what, text := range map[chat.DeltaKind][]byte{chat.DeltaText: t.text, chat.DeltaThinking: t.thinking} {
		if len(text) > 0 && (what != chat.DeltaText || !t.held()) {
			late = append(late, chat.Delta{Run: t.run, Step: t.step, Attempt: t.attempt, What: what, Text: string(text)})
		}
	}
	return e.Bus.Subscribe(thread), late
}

type watch struct {
	engine *Engine
	thread chat.ThreadID
	seq    int64
	yield  func(Item, error) bool
}

// read yields what the journal has beyond seq.
func (w *watch) read(ctx context.Context) bool {
	for {
		events, err := w.engine.timed.Events(ctx, w.thread, w.seq, page)
		if err != nil {
			return ctx.Err() == nil && w.yield(Item{}, err)
		}
		for i := range events {
			w.seq = events[i].Seq
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
	if gap && !w.read(ctx) {
		return false
	}
	for _, n := range notes {
		for i := range n.Events {
			ev := &n.Events[i]
			switch {
			case ev.Seq <= w.seq:
				continue
			case ev.Seq == w.seq+1:
				w.seq = ev.Seq
				if !w.yield(Item{Event: ev}, nil) {
					return false
				}
			default:
				if !w.read(ctx) {
					return false
				}
			}
		}
		if n.Live != nil && !w.yield(Item{Live: n.Live}, nil) {
			return false
		}
		if n.Err != nil && !w.yield(Item{}, n.Err) {
			return false
		}
	}
	return true
}
