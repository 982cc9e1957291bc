package peernotify

import (
	"sync"

	"chorus/internal/await"
)

// Subscription receives the notifications of other processes. A nil Subscription receives nothing.
type Subscription struct {
	wake chan struct{} // buffer of one: there is something to take
	stop func()        // stops whatever puts

	mu   sync.Mutex
	seen topics
}

// NewSubscription is for implementations of Peers: the receiver puts topics in, and stop ends the receiver.
func NewSubscription(stop func()) *Subscription {
	return &Subscription{wake: make(chan struct{}, 1), stop: stop}
}

// Put adds a topic from a notification.
func (s *Subscription) Put(t Topic) {
	s.mu.Lock()
	s.seen.add(t)
	s.mu.Unlock()
	s.woken()
}

// PutAll makes the subscriber check everything, because notifications may have been lost.
func (s *Subscription) PutAll() {
	s.mu.Lock()
	s.seen = topics{all: true}
	s.mu.Unlock()
	s.woken()
}

func (s *Subscription) woken() { await.Notify(s.wake) }

// Woken returns a channel that has a value when there is something to take.
func (s *Subscription) Woken() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.wake
}

// Take returns the topics of notifications since the last call, each once. all means that there
// were too many to remember, or some may have been lost; the subscriber must then check everything.
func (s *Subscription) Take() (seen []Topic, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.seen
	s.seen = topics{}
	return taken.list(), taken.all
}

// Close ends the subscription and waits for that. It may be called twice.
func (s *Subscription) Close() {
	if s != nil {
		s.stop()
	}
}

// maxTopics is how many topics may wait to be taken.
const maxTopics = 256

// topics is a set of topics. Too many of them count as everything.
type topics struct {
	named map[Topic]struct{}
	all   bool
}

func (t *topics) add(topic Topic) {
	switch {
	case t.all:
		return
	case t.named == nil:
		t.named = map[Topic]struct{}{}
	}
	t.named[topic] = struct{}{}
	if len(t.named) > maxTopics {
		t.named, t.all = nil, true
	}
}

func (t *topics) empty() bool { return !t.all && len(t.named) == 0 }

func (t *topics) list() (out []Topic) {
	for topic := range t.named {
		out = append(out, topic)
	}
	return out
}
