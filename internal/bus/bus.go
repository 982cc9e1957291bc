// Package bus is the bell: it tells whoever listens that a thread has moved, and
// carries what may be dropped.
//
// It promises never to block a writer and never to be needed for truth: a listener
// that missed a ring reads the journal from its own number. Events that ride along
// are a courtesy that saves a read.
package bus

import (
	"slices"
	"sync"

	"chorus/internal/chat"
)

// Note is one ring.
type Note struct {
	Events []chat.Event // what was just committed, in order; may be empty
	Live   chat.Live    // may be nil
	Err    error        // the thread's actor ran into trouble it could not write down
}

// room is how many notes a slow listener may have lying before it is sent back to
// the journal: enough for a burst of deltas, little memory.
const room = 1024

// Bus rings for threads. The zero value is ready.
type Bus struct {
	mu   sync.Mutex
	subs map[chat.ThreadID]map[*Listener]struct{}
	ears []*Listener // of those who hear every thread
}

// Listener hears one thread.
type Listener struct {
	bus    *Bus
	thread chat.ThreadID
	bell   chan struct{}
	calm   bool // is not rung, and gets no live pieces: it looks when it likes
	every  bool // hears every thread
	abroad bool // is also told that others wrote
	kinds  []chat.Kind

	mu    sync.Mutex
	notes []Note
	gap   bool
}

// Listen starts listening; Close ends it.
func (b *Bus) Listen(thread chat.ThreadID) *Listener {
	return b.listen(&Listener{bus: b, thread: thread, bell: make(chan struct{}, 1)})
}

// Gather is Listen for somebody who is in no hurry: events lie there until they are
// taken, and nobody is woken for them.
func (b *Bus) Gather(thread chat.ThreadID) *Listener {
	return b.listen(&Listener{bus: b, thread: thread, bell: make(chan struct{}, 1), calm: true})
}

// Hear listens to the events of every thread, without live pieces; with kinds, only to
// commits that hold one of them. It hears what this process writes and nothing else, so a gap
// is one that no single journal can fill.
func (b *Bus) Hear(kinds ...chat.Kind) *Listener {
	return b.hear(&Listener{bus: b, bell: make(chan struct{}, 1), every: true, kinds: kinds})
}

// HearAround is Hear for whoever only wants to know that something moved: what other
// processes wrote rings too, whatever it was, and shows as a gap.
func (b *Bus) HearAround(kinds ...chat.Kind) *Listener {
	return b.hear(&Listener{bus: b, bell: make(chan struct{}, 1), every: true, abroad: true, kinds: kinds})
}

func (b *Bus) hear(l *Listener) *Listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ears = append(b.ears, l)
	return l
}

// wants reports whether a listener to everything is interested.
func (l *Listener) wants(note Note) bool {
	if len(l.kinds) == 0 {
		return len(note.Events) > 0
	}
	return slices.ContainsFunc(note.Events, func(ev chat.Event) bool { return slices.Contains(l.kinds, ev.Body.Kind()) })
}

func (b *Bus) listen(l *Listener) *Listener {
	thread := l.thread
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs = map[chat.ThreadID]map[*Listener]struct{}{}
	}
	if b.subs[thread] == nil {
		b.subs[thread] = map[*Listener]struct{}{}
	}
	b.subs[thread][l] = struct{}{}
	return l
}

// Ring tells the listeners of a thread. A note that finds no room is dropped, and
// the listener is told that it has a gap.
func (b *Bus) Ring(thread chat.ThreadID, note Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.subs[thread] {
		l.put(note)
	}
	for _, l := range b.ears {
		if l.wants(note) {
			l.put(note)
		}
	}
}

// Stir tells the listeners of a thread that somebody else wrote to it: what it was
// stands in the journal.
func (b *Bus) Stir(thread chat.ThreadID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.subs[thread] {
		l.stir()
	}
	b.stirEars()
}

// RingAll tells every listener that something may have moved.
func (b *Bus) RingAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, subs := range b.subs {
		for l := range subs {
			l.stir()
		}
	}
	b.stirEars()
}

func (b *Bus) stirEars() {
	for _, l := range b.ears {
		if l.abroad {
			l.stir()
		}
	}
}

func (l *Listener) stir() {
	l.mu.Lock()
	l.gap = true
	l.mu.Unlock()
	l.ring()
}

func (l *Listener) put(note Note) {
	if l.calm && note.Live != nil {
		return
	}
	l.mu.Lock()
	if len(l.notes) >= room {
		l.notes, l.gap = nil, true
	}
	l.notes = append(l.notes, note)
	l.mu.Unlock()
	l.ring()
}

func (l *Listener) ring() {
	if l.calm {
		return
	}
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// Bell has a value when there is something to take. It has room for one ring.
func (l *Listener) Bell() <-chan struct{} { return l.bell }

// Take empties what lies there. gap says that something was dropped: read the
// journal first.
func (l *Listener) Take() (notes []Note, gap bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	notes, gap = l.notes, l.gap
	l.notes, l.gap = nil, false
	return notes, gap
}

// Close stops listening. It may be called twice.
func (l *Listener) Close() {
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	if l.every {
		l.bus.ears = slices.DeleteFunc(l.bus.ears, func(other *Listener) bool { return other == l })
		return
	}
	delete(l.bus.subs[l.thread], l)
	if len(l.bus.subs[l.thread]) == 0 {
		delete(l.bus.subs, l.thread)
	}
}
