package connector

import (
	"context"
	"errors"
	"sync"

	"chorus/internal/platform"
)

// queue holds events from the platform or from us that are not in the journal yet.
type queue struct {
	*platform.Queue[any]

	mu       sync.Mutex
	count    int64 // how many were ever put
	done     int64 // how many were handled
	failures error // since somebody last asked
	moved    chan struct{}
}

func newQueue() *queue { return &queue{Queue: platform.NewQueue[any](), moved: make(chan struct{})} }

func (q *queue) put(e any) {
	q.mu.Lock()
	q.count++
	q.Put(e) // in the order in which they are counted
	q.mu.Unlock()
}

// finished records that so many events were handled.
func (q *queue) finished(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done += int64(n)
	close(q.moved)
	q.moved = make(chan struct{})
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failures = errors.Join(q.failures, err)
}

// Take implements platform.Sink.
func (b *Bot) Take(e platform.Event) { b.queue.put(e) }

// Journalled implements platform.Sink.
func (b *Bot) Journalled(ctx context.Context) error {
	q := b.queue
	q.mu.Lock()
	upTo := q.count
	q.mu.Unlock()
	for {
		q.mu.Lock()
		done, moved, err := q.done, q.moved, q.failures
		if done >= upTo {
			q.failures = nil
			q.mu.Unlock()
			return err
		}
		q.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
