// Package bus tells subscribers in this process that a thread has new events,
// and carries what may be dropped: deltas and progress.
//
// It never blocks a writer and is never needed for correctness: a subscriber that missed something
// reads the journal from its own sequence number. The events in a note only save that read.
package bus

import (
	"slices"
	"sync"

	"chorus/internal/await"
	"chorus/internal/chat"
)

// Note is one notification.
type Note struct {
	Events []chat.Event // what was just committed, in order; may be empty
	Live   chat.Live    // may be nil
	Err    error        // an error of the thread's actor that could not be written to the journal
}

// maxNotes is how many notes a slow subscriber may have waiting before it must read
// the journal: enough for a burst of deltas, and little memory.
const maxNotes = 1024

// Bus notifies the subscribers of threads. The zero value is ready to use.
type Bus struct {
	mu      sync.Mutex
	threads map[chat.ThreadID]map[*Subscription]struct{}
	all     []*Subscription // subscriptions to every thread
}

// Subscription receives the notes of one thread, or of all.
type Subscription struct {
	bus    *Bus
	thread chat.ThreadID
	wake   chan struct{}
	lazy   bool // is not woken and gets no live pieces; it checks when it likes
	every  bool // receives the notes of every thread
	others bool // only learns that something changed, also by other processes
	kinds  []chat.Kind

	mu    sync.Mutex
	notes []Note
	gap   bool
}

// Subscribe subscribes to a thread; Close ends it.
func (b *Bus) Subscribe(thread chat.ThreadID) *Subscription {
	return b.add(&Subscription{bus: b, thread: thread, wake: make(chan struct{}, 1)})
}

// SubscribeLazy is Subscribe for a reader that can wait: notes wait until they are taken, and nothing wakes it.
func (b *Bus) SubscribeLazy(thread chat.ThreadID) *Subscription {
	return b.add(&Subscription{bus: b, thread: thread, wake: make(chan struct{}, 1), lazy: true})
}

// SubscribeAll subscribes to the events of every thread, without live pieces; with
// kinds, only to commits that have one of them. It covers only what this process
// writes, and a gap cannot be filled from one thread's journal.
func (b *Bus) SubscribeAll(kinds ...chat.Kind) *Subscription {
	return b.addAll(&Subscription{bus: b, wake: make(chan struct{}, 1), every: true, kinds: kinds})
}

// SubscribeAllProcesses is SubscribeAll for a reader that only wants to know that something
// changed. Any write of another process wakes it too. It gets no notes, which would keep events
// in memory until it takes them; every change appears as a gap.
func (b *Bus) SubscribeAllProcesses(kinds ...chat.Kind) *Subscription {
	return b.addAll(&Subscription{bus: b, wake: make(chan struct{}, 1), every: true, others: true, kinds: kinds})
}

func (b *Bus) addAll(l *Subscription) *Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, l)
	return l
}

// wants reports whether a subscription to every thread wants this note.
func (l *Subscription) wants(note Note) bool {
	if len(l.kinds) == 0 {
		return len(note.Events) > 0
	}
	return slices.ContainsFunc(note.Events, func(ev chat.Event) bool { return slices.Contains(l.kinds, ev.Body.Kind()) })
}

func (b *Bus) add(l *Subscription) *Subscription {
	thread := l.thread
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.threads == nil {
		b.threads = map[chat.ThreadID]map[*Subscription]struct{}{}
	}
	if b.threads[thread] == nil {
		b.threads[thread] = map[*Subscription]struct{}{}
	}
	b.threads[thread][l] = struct{}{}
	return l
}

// Publish passes a note to the subscriptions of a thread. A subscription with too
// many waiting notes loses them and is told that it has a gap.
func (b *Bus) Publish(thread chat.ThreadID, note Note) {
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

// PublishAll passes a note to the subscriptions of every thread.
func (b *Bus) PublishAll(note Note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, subscriptions := range b.threads {
		for l := range subscriptions {
			l.put(note)
		}
	}
}

// ThreadChanged tells the subscriptions of a thread that another process
// wrote to it. What it wrote is in the journal.
func (b *Bus) ThreadChanged(thread chat.ThreadID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.threads[thread] {
		l.changed()
	}
	b.peersWrote()
}

// SubscribeTopic subscribes to something other than a thread, such as "settings". The subscription
// has a gap whenever another process has changed it, or may have. Close ends it.
func (b *Bus) SubscribeTopic(topic string) *Subscription { return b.Subscribe(chat.ThreadID(topic)) }

// TopicChanged tells the subscriptions of a topic, or of a single thread, that another process has changed it.
func (b *Bus) TopicChanged(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.threads[chat.ThreadID(topic)] {
		l.changed()
	}
}

// AllChanged tells every subscription that another process may have written something.
func (b *Bus) AllChanged() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, subscriptions := range b.threads {
		for l := range subscriptions {
			l.changed()
		}
	}
	b.peersWrote()
}

// OthersWrote tells subscribers of all threads that another process wrote something.
func (b *Bus) OthersWrote() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.peersWrote()
}

func (b *Bus) peersWrote() {
	for _, l := range b.all {
		if l.others {
			l.changed()
		}
	}
}

// changed makes a subscriber read the journal.
func (l *Subscription) changed() {
	l.mu.Lock()
	l.gap = true
	l.mu.Unlock()
	l.notify()
}

func (l *Subscription) put(note Note) {
	if l.lazy && note.Live != nil {
		return
	}
	if l.others {
		l.changed()
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

func (l *Subscription) notify() {
	if l.lazy {
		return
	}
	await.Notify(l.wake)
}

// Wake returns a channel that has a value when there is something to take.
// It holds one value, however many notes there are.
func (l *Subscription) Wake() <-chan struct{} { return l.wake }

// Take removes and returns the waiting notes. gap says that some were
// dropped; the subscriber must then read the journal first.
func (l *Subscription) Take() (notes []Note, gap bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	notes, gap = l.notes, l.gap
	l.notes, l.gap = nil, false
	return notes, gap
}

// Close ends the subscription. It may be called twice.
func (l *Subscription) Close() {
	l.bus.mu.Lock()
	defer l.bus.mu.Unlock()
	if l.every {
		l.bus.all = slices.DeleteFunc(l.bus.all, func(other *Subscription) bool { return other == l })
		return
	}
	delete(l.bus.threads[l.thread], l)
	if len(l.bus.threads[l.thread]) == 0 {
		delete(l.bus.threads, l.thread)
	}
}
