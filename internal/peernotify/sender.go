package peernotify

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"chorus/internal/await"
)

// Sender is for implementations of Peers that send over a connection. It takes topics
// without blocking, collects them, and sends them from one goroutine. What could not
// be sent is sent again after increasing pauses.
type Sender struct {
	gather time.Duration
	send   func(ctx context.Context, topics []Topic, all bool) error
	kick   chan struct{} // buffer of one: there is something to send
	stop   context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	waiting topics
	closed  bool
}

// sendTimeout limits one attempt to send. lastTimeout limits the attempt at the end.
const (
	sendTimeout = 2 * time.Second
	lastTimeout = time.Second
)

// NewSender starts a Sender; Close ends it. Topics that arrive within gather are sent
// together. all means that there were too many topics to list.
func NewSender(gather time.Duration, send func(ctx context.Context, topics []Topic, all bool) error) *Sender {
	ctx, stop := context.WithCancel(context.Background())
	s := &Sender{gather: gather, send: send, kick: make(chan struct{}, 1), stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.run(ctx)
	}()
	return s
}

// Put sends a topic.
func (s *Sender) Put(t Topic) {
	if _, err := ParseTopic(string(t)); err != nil {
		return
	}
	s.mu.Lock()
	if !s.closed {
		s.waiting.add(t)
	}
	s.mu.Unlock()
	await.Notify(s.kick)
}

// Close sends what waits, once, and ends. It may be called twice.
func (s *Sender) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	<-s.ended
}

func (s *Sender) run(ctx context.Context) {
	var pause Backoff
	for {
		select {
		case <-ctx.Done():
			s.sendOnce(context.WithoutCancel(ctx), lastTimeout)
			return
		case <-s.kick:
		}
		await.For(ctx, s.gather)
		for !s.sendOnce(ctx, sendTimeout) && ctx.Err() == nil {
			await.For(ctx, pause.Next())
		}
		pause = Backoff{}
	}
}

// sendOnce tries to send what waits. It returns false if it still waits.
func (s *Sender) sendOnce(ctx context.Context, most time.Duration) bool {
	s.mu.Lock()
	taken := s.waiting
	s.waiting = topics{}
	s.mu.Unlock()
	if taken.empty() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if s.send(ctx, taken.list(), taken.all) == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic := range s.waiting.named {
		taken.add(topic)
	}
	taken.all = taken.all || s.waiting.all
	s.waiting = taken
	return false
}

// Backoff computes how long to wait before the next attempt: longer each
// time, and randomised. The zero value is ready to use.
type Backoff struct{ last time.Duration }

const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, firstPause), longestPause)
	return b.last/2 + rand.N(b.last/2)
}
