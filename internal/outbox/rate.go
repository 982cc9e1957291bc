package outbox

import (
	"sync"
	"time"

	"chorus/internal/journal"
)

// Rate is a number of calls per time; zero means no limit.
type Rate struct {
	Calls int
	Per   time.Duration
}

// route is what a platform counts together: one kind of call in one lane.
type route struct {
	lane journal.Lane
	kind action
}

// maxBuckets is the number at which buckets that are full again are dropped.
const maxBuckets = 1024

// limits enforces the configured rates and what the platform has said.
type limits struct {
	all, each Rate

	mu      sync.Mutex
	global  bucket
	buckets map[route]*bucket
}

// bucket holds the times at which calls of one period become available again.
type bucket struct {
	used  []time.Time // of the last calls, oldest first; at most Rate.Calls
	until time.Time   // as told by the platform
}

// next returns when another call may be made.
func (b *bucket) next(r Rate, now time.Time) time.Time {
	at := b.until
	if r.Calls > 0 && len(b.used) >= r.Calls {
		if free := b.used[len(b.used)-r.Calls].Add(r.Per); free.After(at) {
			at = free
		}
	}
	if at.After(now) {
		return at
	}
	return time.Time{}
}

func (b *bucket) take(r Rate, now time.Time) {
	if r.Calls <= 0 {
		return
	}
	if len(b.used) >= r.Calls {
		b.used = append(b.used[:0], b.used[len(b.used)-r.Calls+1:]...)
	}
	b.used = append(b.used, now)
}

// idle reports whether the bucket no longer limits anything.
func (b *bucket) idle(r Rate, now time.Time) bool {
	return !b.until.After(now) && (len(b.used) == 0 || !b.used[len(b.used)-1].Add(r.Per).After(now))
}

func (l *limits) bucket(r route, now time.Time) *bucket {
	b, ok := l.buckets[r]
	if ok {
		return b
	}
	if l.buckets == nil {
		l.buckets = map[route]*bucket{}
	}
	if len(l.buckets) >= maxBuckets {
		for k, old := range l.buckets {
			if old.idle(l.each, now) {
				delete(l.buckets, k)
			}
		}
	}
	b = &bucket{}
	l.buckets[r] = b
	return b
}

// when returns when a call on the route may be made; zero means now.
func (l *limits) when(r route, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.locked(r, now)
}

func (l *limits) locked(r route, now time.Time) time.Time {
	return later(l.global.next(l.all, now), l.bucket(r, now).next(l.each, now))
}

// take counts a call that is about to be made, or returns when it may be made.
func (l *limits) take(r route, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.locked(r, now); !at.IsZero() {
		return at
	}
	l.global.take(l.all, now)
	l.bucket(r, now).take(l.each, now)
	return time.Time{}
}

// hold applies a limit told by the platform.
func (l *limits) hold(r route, e *RateLimited, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(r, now)
	if e.Global {
		b = &l.global
	}
	b.until = later(b.until, now.Add(e.After))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
