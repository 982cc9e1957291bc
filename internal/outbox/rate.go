package outbox

import (
	"sync"
	"time"

	"chorus/internal/journal"
)

// Rate is so many calls in so much time; zero: no limit.
type Rate struct {
	Calls int
	Per   time.Duration
}

// route is what a platform counts together: one kind of call in one lane.
type route struct {
	lane journal.Lane
	kind action
}

// maxBuckets is when buckets that are full again are thrown away.
const maxBuckets = 1024

// limits keeps to the rates that were configured and to what the platform has said.
type limits struct {
	all, each Rate

	mu      sync.Mutex
	global  bucket
	buckets map[route]*bucket
}

// bucket holds the times at which calls of one period become free again.
type bucket struct {
	used  []time.Time // of the last calls, oldest first; at most Rate.Calls
	until time.Time   // the platform's own word
}

// next is when another call may be made.
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

// idle reports whether the bucket says nothing any more.
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

// when tells when a call on the route may be made; zero: now.
func (l *limits) when(r route, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.locked(r, now)
}

func (l *limits) locked(r route, now time.Time) time.Time {
	return later(l.global.next(l.all, now), l.bucket(r, now).next(l.each, now))
}

// take counts a call that is about to be made, or tells when it may be.
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

// hold keeps to the platform's word.
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
