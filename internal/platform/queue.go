package platform

import (
	"context"
	"sync"

	"chorus/internal/await"
)

// Queue passes values in order from a connection, which must not block, to their
// handler. It has no limit, because a platform's events cannot be refused.
type Queue[T any] struct {
	mu   sync.Mutex
	list []T
	wake chan struct{}
}

// NewQueue makes an empty queue.
func NewQueue[T any]() *Queue[T] { return &Queue[T]{wake: make(chan struct{}, 1)} }

// Put adds a value. It never blocks.
func (q *Queue[T]) Put(v T) {
	q.mu.Lock()
	q.list = append(q.list, v)
	q.mu.Unlock()
	await.Notify(q.wake)
}

// Take waits for values and returns all of them, in order; false: ctx ended.
func (q *Queue[T]) Take(ctx context.Context) ([]T, bool) {
	for {
		q.mu.Lock()
		list := q.list
		q.list = nil
		q.mu.Unlock()
		if len(list) > 0 {
			return list, ctx.Err() == nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}
