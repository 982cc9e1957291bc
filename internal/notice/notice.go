// Package notice passes short sentences to the people in a session, for example that
// the configuration was read again or that a server is missing. If nobody subscribes,
// warnings go to a fallback. Posting never blocks.
package notice

import "sync"

// Notice is one sentence for people.
type Notice struct {
	Text string
	Bad  bool // something is wrong
}

// maxWaiting is how many notices wait for a subscriber. Nobody reads more than that at once.
const maxWaiting = 16

// Board passes notices on. The zero value is ready to use.
type Board struct {
	Fallback func(string) // receives warnings while nobody subscribes; nil drops them

	mu          sync.Mutex
	subscribers map[chan Notice]bool
	warned      map[string]bool
}

// Subscribe returns what is posted from now on, until cancel is called.
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

// Post passes a notice to every subscriber, and reports whether there is one.
func (b *Board) Post(n Notice) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ch := range b.subscribers {
		select {
		case ch <- n:
		default: // it is too slow; the log has everything
		}
	}
	return len(b.subscribers) > 0
}

// WarnOnce posts a text once that would otherwise appear before every run. It goes to an open
// session if there is one, since a terminal program controls its screen.
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
