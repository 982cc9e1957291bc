package discord

import (
	"context"
	"sync"
)

// queue keeps events in order between the socket, which must not wait, and the journal.
type queue struct {
	mu   sync.Mutex
	list []any
	bell chan struct{}
}

func newQueue() *queue { return &queue{bell: make(chan struct{}, 1)} }

func (q *queue) put(e any) {
	q.mu.Lock()
	q.list = append(q.list, e)
	q.mu.Unlock()
	select {
	case q.bell <- struct{}{}:
	default:
	}
}

// take gives what there is, in order; false: ctx ended.
func (q *queue) take(ctx context.Context) ([]any, bool) {
	for {
		q.mu.Lock()
		list := q.list
		q.list = nil
		q.mu.Unlock()
		if len(list) > 0 {
			return list, ctx.Err() == nil
		}
		select {
		case <-q.bell:
		case <-ctx.Done():
			return nil, false
		}
	}
}
