package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"chorus/internal/tool"
)

// lockWait is how long a writer waits for another writer of the same file.
const lockWait = 30 * time.Second

// Locks keep two calls from changing one file at the same time. Share one among all Roots that may
// use the same directory. Give it a folder to lock out other processes too.
type Locks struct {
	dir string // folder of the lock files; "" locks only within this process

	mu   sync.Mutex
	held map[string]holding
}

// holding describes a held lock.
type holding struct {
	Who   string    `json:"who,omitempty"` // the thread that changes the file
	Since time.Time `json:"since"`
	Pid   int       `json:"pid,omitempty"` // 0: this process
	done  chan struct{}
}

// NewLocks returns a set of free locks for this process.
func NewLocks() *Locks { return &Locks{held: map[string]holding{}} }

// SharedLocks returns locks that also work across processes with the same folder.
// A lock ends with its process, however the process ends.
func SharedLocks(dir string) *Locks {
	l := NewLocks()
	l.dir = dir
	return l
}

// busyError means that somebody else held the file's lock for the whole wait.
type busyError struct {
	key  string
	held holding
}

func (e *busyError) Error() string {
	who := "another call"
	if e.held.Who != "" {
		who = "another conversation (" + e.held.Who + ")"
	}
	if e.held.Pid != 0 {
		who += fmt.Sprintf(" in process %d", e.held.Pid)
	}
	if e.held.Since.IsZero() {
		return fmt.Sprintf("%s is being changed by %s.", filepath.Base(e.key), who)
	}
	return fmt.Sprintf("%s is being changed by %s since %s.", filepath.Base(e.key), who, e.held.Since.UTC().Format("15:04:05 MST"))
}

// busy returns what a model is told about it.
func busy(err *busyError) error {
	return tool.Mistake(fmt.Sprintf("%s Waited %d s and changed nothing: do something else first and try again, or ask in that conversation how long it will take.",
		err.Error(), int(lockWait/time.Second)))
}

// acquire takes all keys, always in the same order so that there are no deadlocks.
// The error is an answer for the model, or the context's.
func (l *Locks) acquire(ctx context.Context, who string, keys ...string) (release func(), err error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	limited, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	var got []func()
	release = func() {
		for _, free := range slices.Backward(got) {
			free()
		}
	}
	for _, key := range keys {
		free, err := l.one(limited, who, key)
		if err == nil {
			got = append(got, free)
			continue
		}
		release()
		var held *busyError
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &held):
			return nil, busy(held)
		default:
			return nil, err
		}
	}
	return release, nil
}

// one takes one key: first within this process, then across processes. It gives up
// when ctx ends, and the error then says who holds the key.
func (l *Locks) one(ctx context.Context, who, key string) (free func(), err error) {
	for {
		l.mu.Lock()
		other, taken := l.held[key]
		mine := holding{Who: who, Since: time.Now(), done: make(chan struct{})}
		if !taken {
			l.held[key] = mine
		}
		l.mu.Unlock()
		if taken {
			select {
			case <-other.done:
				continue
			case <-ctx.Done():
				return nil, &busyError{key, other}
			}
		}
		back := func() {
			l.mu.Lock()
			delete(l.held, key)
			l.mu.Unlock()
			close(mine.done)
		}
		if l.dir == "" {
			return back, nil
		}
		file, err := waitFile(ctx, l.dir, key, mine)
		if err != nil {
			back()
			return nil, err
		}
		return func() { file.Release(); back() }, nil
	}
}
