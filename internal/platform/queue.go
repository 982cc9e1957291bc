package platform

import (
	"context"
	"sync"
)

// Queue keeps values in order between a connection, which must not wait, and whoever deals
// with them. It has no limit: what a platform reported cannot be refused.
type Queue[T any] struct {
	mu   sync.Mutex
	list []T
	wake chan struct{}
}

// NewQueue makes an empty queue.
func NewQueue[T any]() *Queue[T] { return &Queue[T]{wake: make(chan struct{}, 1)} }

// Put adds a value. It never waits.
func (q *Queue[T]) Put(v T) {
	q.mu.Lock()
	q.list = append(q.list, v)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Take waits for values and gives all there are, in order; false: ctx ended.
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
