// Package notice carries short sentences to whoever sits at a session: the configuration
// was read again, a server is missing. A notice that nobody is there to see goes to the
// fallback. Posting never waits.
package notice

import "sync"

// Notice is one sentence for people.
type Notice struct {
	Text string
	Bad  bool // something is wrong
}

// maxWaiting is how many wait for a subscriber; nobody reads more than that at once.
const maxWaiting = 16

// Board passes notices on. The zero value works.
type Board struct {
	Fallback func(string) // hears warnings while nobody subscribes; nil: they are dropped

	mu          sync.Mutex
	subscribers map[chan Notice]bool
	warned      map[string]bool
}

// Subscribe gives what is posted from now on, until cancel is called.
func (b *Board) Subscribe() (notices <-chan Notice, cancel func()) {
	ch := make(chan Notice, maxWaiting)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subscribers == nil {
		b.subscribers = map[chan Notice]bool{}
	}
	b.subscribers[ch] = true
	return ch, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.subscribers, ch)
	}
}

// Post tells every subscriber, and reports whether there is one.
func (b *Board) Post(n Notice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ch := range b.subscribers {
		select {
		case ch <- n:
		default: // it has more than it reads; the log has them all
		}
	}
	return len(b.subscribers) > 0
}

// WarnOnce says something once that would otherwise be said before every run: where a
// session is open in it, since a terminal program owns its screen.
func (b *Board) WarnOnce(text string) {
	b.mu.Lock()
	said := b.warned[text]
	if b.warned == nil {
		b.warned = map[string]bool{}
	}
	b.warned[text] = true
	b.mu.Unlock()
	if !said && !b.Post(Notice{Text: text, Bad: true}) && b.Fallback != nil {
		b.Fallback(text)
	}
}
