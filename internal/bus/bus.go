// Package bus tells listeners in this process that a thread has new events, and carries
// what may be dropped: deltas and progress.
//
// It promises never to block a writer and never to be needed for correctness: a listener
// that missed something reads the journal from its own sequence number. The events in a note
// only save that read.
package bus

import (
	"slices"
	"sync"

	"chorus/internal/chat"
)

// Note is one notification.
type Note struct {
	Events []chat.Event // what was just committed, in order; may be empty
	Live   chat.Live    // may be nil
	Err    error        // the thread's actor failed in a way that it could not write to the journal
}

// maxNotes is how many notes a slow listener may have waiting before it is sent back to
// the journal: enough for a burst of deltas, little memory.
const maxNotes = 1024

// Bus notifies the listeners of threads. The zero value is ready.
type Bus struct {
	mu      sync.Mutex
	threads map[chat.ThreadID]map[*Listener]struct{}
	all     []*Listener // of every thread
}

// Listener receives the notes of one thread, or of all.
type Listener struct {
	bus    *Bus
	thread chat.ThreadID
	wake   chan struct{}
	lazy   bool // is not woken and gets no live pieces: it looks when it likes
	every  bool // receives the notes of every thread
	others bool // is also told that other processes wrote
	kinds  []chat.Kind

	mu    sync.Mutex
	notes []Note
	gap   bool
}

// Listen subscribes to a thread; Close ends it.
func (b *Bus) Listen(thread chat.ThreadID) *Listener {
	return b.listen(&Listener{bus: b, thread: thread, wake: make(chan struct{}, 1)})
}

// Gather is Listen for a listener in no hurry: notes wait until they are taken, and
// nothing wakes it.
func (b *Bus) Gather(thread chat.ThreadID) *Listener {
	return b.listen(&Listener{bus: b, thread: thread, wake: make(chan struct{}, 1), lazy: true})
}

// Hear subscribes to the events of every thread, without live pieces; with kinds, only to
// commits that have one of them. It covers what this process writes and nothing else, so a gap
// cannot be filled from one thread's journal.
func (b *Bus) Hear(kinds ...chat.Kind) *Listener {
	return b.listenAll(&Listener{bus: b, wake: make(chan struct{}, 1), every: true, kinds: kinds})
}

// HearAround is Hear for a listener that only wants to know that something changed: what other
// processes wrote wakes it too, whatever it was, and shows as a gap.
func (b *Bus) HearAround(kinds ...chat.Kind) *Listener {
	return b.listenAll(&Listener{bus: b, wake: make(chan struct{}, 1), every: true, others: true, kinds: kinds})
}

func (b *Bus) listenAll(l *Listener) *Listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, l)
	return l
}

// wants reports whether a listener to every thread is interested.
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
	if b.threads == nil {
		b.threads = map[chat.ThreadID]map[*Listener]struct{}{}
	}
	if b.threads[thread] == nil {
		b.threads[thread] = map[*Listener]struct{}{}
	}
	b.threads[thread][l] = struct{}{}
	return l
}

// Ring hands a note to the listeners of a thread. A listener that has too many waiting
// loses them and is told that it has a gap.
func (b *Bus) Ring(thread chat.ThreadID, note Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.threads[thread] {
		l.put(note)
	}
	for _, l := range b.all {
		if l.wants(note) {
			l.put(note)
		}
	}
}

// Stir tells the listeners of a thread that another process wrote to it: what it was
// is in the journal.
func (b *Bus) Stir(thread chat.ThreadID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.threads[thread] {
		l.changed()
	}
	b.othersWrote()
}

// RingAll tells every listener that another process may have written something.
func (b *Bus) RingAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, listeners := range b.threads {
		for l := range listeners {
			l.changed()
		}
	}
	b.othersWrote()
}

func (b *Bus) othersWrote() {
	for _, l := range b.all {
		if l.others {
			l.changed()
		}
	}
}

// changed sends a listener to the journal.
func (l *Listener) changed() {
	l.mu.Lock()
	l.gap = true
	l.mu.Unlock()
	l.notify()
}

func (l *Listener) put(note Note) {
	if l.lazy && note.Live != nil {
		return
	}
	l.mu.Lock()
	if len(l.notes) >= maxNotes {
		l.notes, l.gap = nil, true
	}
	l.notes = append(l.notes, note)
	l.mu.Unlock()
	l.notify()
}

func (l *Listener) notify() {
	if l.lazy {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Wake has a value when there is something to take. It holds one value, however many notes
// there are.
func (l *Listener) Wake() <-chan struct{} { return l.wake }

// Take removes and returns the notes that wait. gap says that some were dropped: read the
// journal first.
func (l *Listener) Take() (notes []Note, gap bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	notes, gap = l.notes, l.gap
	l.notes, l.gap = nil, false
	return notes, gap
}

// Close ends the subscription. It may be called twice.
func (l *Listener) Close() {
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	if l.every {
		l.bus.all = slices.DeleteFunc(l.bus.all, func(other *Listener) bool { return other == l })
		return
	}
	delete(l.bus.threads[l.thread], l)
	if len(l.bus.threads[l.thread]) == 0 {
		delete(l.bus.threads, l.thread)
	}
}
