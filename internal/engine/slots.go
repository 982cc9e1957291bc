package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// slots limits how many runs are active in this process at the same time. The others wait in a
// queue. Owners take turns, so nobody waits behind everything that somebody else has started, and
// the conversations of one owner are served in order of arrival. None of this is on disk: what
// waits is in the journal, where a new process finds it.
type slots struct {
	most int // 0: no limit

	mu     sync.Mutex
	taken  int
	turn   int64 // counts granted slots
	came   int64 // counts requests
	owners map[string]*share
	back   []*slot // runs whose approval was answered; they are active already and continue first
}

// share is one owner's part of the slots.
type share struct {
	taken  int
	served int64 // the turn in which the owner was last given a slot
	queue  []*slot
}

// slot is a run's place among the active runs, or in the queue.
type slot struct {
	slots  *slots
	thread chat.ThreadID
	owner  string

	// Guarded by the lock of slots.
	number  int64
	granted chan struct{} // closed when the slot is given
	holds   bool
	queued  bool
	over    bool
	lent    int // approvals that the run waits for
}

// take requests a slot. The caller must release it, even without having waited for it.
func (s *slots) take(thread chat.ThreadID, owner string) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came++
	w := &slot{slots: s, thread: thread, owner: owner, number: s.came, granted: make(chan struct{})}
	own := s.of(owner)
	w.queued, own.queue = true, append(own.queue, w)
	s.serve()
	return w
}

func (s *slots) of(owner string) *share {
	if s.owners == nil {
		s.owners = map[string]*share{}
	}
	own := s.owners[owner]
	if own == nil {
		own = &share{}
		s.owners[owner] = own
	}
	return own
}

// serve grants free slots.
func (s *slots) serve() {
	for s.most <= 0 || s.taken < s.most {
		w := s.next()
		if w == nil {
			return
		}
		s.dequeue(w)
		own := s.of(w.owner)
		s.turn++
		s.taken, own.taken, own.served = s.taken+1, own.taken+1, s.turn
		w.holds = true
		close(w.granted)
	}
}

// next returns whose turn it is: among the owners with the fewest
// slots, the one who has waited longest for a turn.
func (s *slots) next() *slot {
	if len(s.back) > 0 {
		return s.back[0]
	}
	var best *share
	for _, own := range s.owners {
		if len(own.queue) > 0 && (best == nil || cmp.Or(cmp.Compare(own.taken, best.taken), cmp.Compare(own.served, best.served), cmp.Compare(own.queue[0].number, best.queue[0].number)) < 0) {
			best = own
		}
	}
	if best == nil {
		return nil
	}
	return best.queue[0]
}

func (s *slots) dequeue(w *slot) {
	if !w.queued {
		return
	}
	w.queued = false
	is := func(other *slot) bool { return other == w }
	s.back = slices.DeleteFunc(s.back, is)
	own := s.of(w.owner)
	own.queue = slices.DeleteFunc(own.queue, is)
	s.forget(w.owner)
}

// forget drops an owner with no active and no waiting runs.
func (s *slots) forget(owner string) {
	if own := s.owners[owner]; own != nil && own.taken == 0 && len(own.queue) == 0 {
		delete(s.owners, owner)
	}
}

// contended reports whether somebody waits.
func (s *slots) contended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next() != nil
}

// waiting returns the threads whose runs wait, in order of arrival.
func (s *slots) waiting() []chat.ThreadID {
	s.mu.Lock()
	list := slices.Clone(s.back)
	for _, own := range s.owners {
		list = append(list, own.queue...)
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *slot) int { return cmp.Compare(a.number, b.number) })
	out := make([]chat.ThreadID, len(list))
	for i, w := range list {
		out[i] = w.thread
	}
	return out
}

// free passes a held slot to the next in the queue.
func (w *slot) free() {
	s := w.slots
	if w.holds {
		w.holds = false
		s.taken--
		s.of(w.owner).taken--
		s.forget(w.owner)
	}
	s.serve()
}

// release ends the slot, held or queued. A nil slot and a second call do nothing.
func (w *slot) release() {
	if w == nil {
		return
	}
	w.slots.mu.Lock()
	defer w.slots.mu.Unlock()
	w.over = true
	w.slots.dequeue(w)
	w.free()
}

// lend gives the slot to others while the run waits for a person's
// answer. back waits until the run has one again.
func (w *slot) lend() (back func(context.Context)) {
	if w == nil {
		return func(context.Context) {}
	}
	s := w.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.lent++; w.holds {
		w.free()
	}
	return func(ctx context.Context) {
		s.mu.Lock()
		if w.lent--; w.lent == 0 && !w.holds && !w.queued && !w.over {
			w.queued, w.granted = true, make(chan struct{})
			s.back = append(s.back, w)
			s.serve()
		}
		granted, queued := w.granted, w.queued
		s.mu.Unlock()
		if queued {
			select {
			case <-granted:
			case <-ctx.Done():
			}
		}
	}
}

// Queued returns the threads whose runs wait for a slot, in order of arrival.
func (e *Engine) Queued() []chat.ThreadID { return e.slots.waiting() }

// awaitSlot waits until the thread may run. Meanwhile it reacts to wake-ups: an
// abort needs no slot, nor does a thread whose prompts were deleted. run is false
// when there is nothing left to do or the engine stops.
func (a *actor) awaitSlot(ctx context.Context, row journal.Thread) (run, stay bool) {
	e := a.engine
	slot := e.slots.take(a.thread, row.Owner.Person().String())
	a.slot.Store(slot)
	select {
	case <-slot.granted:
		return true, true
	default:
	}
	a.watchdog.rest() // however long this takes, nothing is stuck
	a.queued.Store(true)
	defer a.queued.Store(false)
	seen := row.Next - 1
	for {
		select {
		case <-slot.granted:
			return true, true
		case <-e.ctx.Done():
			return false, false
		case <-a.wakeUp:
		}
		row, err := e.timed.Thread(ctx, a.thread)
		if err != nil {
			continue // checked again when there is a slot
		}
		switch {
		case row.Status != chat.Running && !row.Wake:
			return false, true
		case row.Status == chat.Idle && row.Waiting == 0:
			slot.release()
			return true, true
		}
		events, err := e.timed.Events(ctx, a.thread, seen, page)
		if err != nil {
			continue
		}
		for _, ev := range events {
			seen = ev.Seq
			if _, abort := ev.Body.(chat.AbortAsked); abort {
				slot.release()
				return true, true
			}
		}
	}
}

// lendSlot lets others run while a thread's run waits for a person's answer.
func (e *Engine) lendSlot(thread chat.ThreadID) (back func(context.Context)) {
	e.mu.Lock()
	a := e.actors[thread]
	e.mu.Unlock()
	if a == nil {
		return func(context.Context) {}
	}
	return a.slot.Load().lend()
}
