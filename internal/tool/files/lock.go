package files

import (
	"context"
	"slices"
	"sync"
	"time"

	"chorus/internal/tool"
)

// lockWait is how long a writer waits for another one of the same file.
const lockWait = 30 * time.Second

// Locks keep two calls from changing one file at the same time. Share one among
// all Roots that may meet in a directory.
type Locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the holder is done
}

// NewLocks is a set of locks, all free.
func NewLocks() *Locks { return &Locks{held: map[string]chan struct{}{}} }

// acquire takes all keys, in one order for everybody so that nobody waits in a
// circle. The error is an answer for the model, or the context's.
func (l *Locks) acquire(ctx context.Context, keys ...string) (release func(), err error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	timer := time.NewTimer(lockWait)
	defer timer.Stop()
	done := make(chan struct{})
	var got []string
	release = func() {
		l.mu.Lock()
		for _, key := range got {
			delete(l.held, key)
		}
		l.mu.Unlock()
		close(done)
	}
	for _, key := range keys {
		for {
			l.mu.Lock()
			busy := l.held[key]
			if busy == nil {
				l.held[key] = done
				got = append(got, key)
			}
			l.mu.Unlock()
			if busy == nil {
				break
			}
			select {
			case <-busy:
				continue
			case <-ctx.Done():
				err = ctx.Err()
			case <-timer.C:
				err = tool.Mistake("Another call has been changing the same file for 30 s; try again later.")
			}
			release()
			return nil, err
		}
	}
	return release, nil
}
