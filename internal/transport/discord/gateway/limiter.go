package gateway

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/disgoorg/disgo/rest"
)

// limiter keeps requests within the platform's rate limits: one at a time per bucket,
// and none before the bucket or the whole bot may send again. Unlike the library's own it counts
// fractions of seconds and leaves no goroutine behind.
type limiter struct {
	log *slog.Logger

	mu      sync.Mutex
	global  time.Time
	buckets map[string]*bucket
}

var _ rest.RateLimiter = (*limiter)(nil)

// bucket is one route with its major parameter. The holder of the token may send.
type bucket struct {
	token chan struct{}
	free  time.Time // not before
	used  time.Time
}

// maxBuckets is the size at which old buckets are removed; a guild has some for each busy channel.
const maxBuckets = 2000

// tries is how often a request over a limit is sent.
const tries = 8

func newLimiter(log *slog.Logger) *limiter {
	return &limiter{log: log, buckets: map[string]*bucket{}}
}

// MaxRetries implements rest.RateLimiter.
func (l *limiter) MaxRetries() int { return tries }

// Close implements rest.RateLimiter.
func (l *limiter) Close(context.Context) {}

// Reset implements rest.RateLimiter.
func (l *limiter) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.global = time.Time{}
	clear(l.buckets)
}

func (l *limiter) bucket(e *rest.CompiledEndpoint) *bucket {
	key := e.Endpoint.Method + " " + e.Endpoint.Route + " " + e.MajorParams
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if len(l.buckets) >= maxBuckets {
		for k, b := range l.buckets {
			if len(b.token) == 0 && b.free.Before(now) && now.Sub(b.used) > time.Minute {
				delete(l.buckets, k)
			}
		}
	}
	b := l.buckets[key]
	if b == nil {
		b = &bucket{token: make(chan struct{}, 1)}
		l.buckets[key] = b
	}
	b.used = now
	return b
}

// Wait implements rest.RateLimiter.
func (l *limiter) Wait(ctx context.Context, e *rest.CompiledEndpoint) error {
	b := l.bucket(e)
	select {
	case b.token <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		l.mu.Lock()
		until := b.free
		if l.global.After(until) {
			until = l.global
		}
		l.mu.Unlock()
		wait := time.Until(until)
		if wait <= 0 {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			<-b.token
			return ctx.Err()
		}
	}
}

// Unlock implements rest.RateLimiter.
func (l *limiter) Unlock(e *rest.CompiledEndpoint, rs *http.Response) error {
	b := l.bucket(e)
	if rs != nil {
		l.learn(b, e, rs)
	}
	select {
	case <-b.token:
	default: // it was removed meanwhile
	}
	return nil
}

func (l *limiter) learn(b *bucket, e *rest.CompiledEndpoint, rs *http.Response) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if rs.StatusCode == http.StatusTooManyRequests {
		wait := Seconds(rs.Header.Get("X-RateLimit-Reset-After"))
		if wait <= 0 {
			wait = Seconds(rs.Header.Get("Retry-After"))
		}
		wait = max(wait, 50*time.Millisecond)
		scope := rs.Header.Get("X-RateLimit-Scope")
		// Without Via the answer came from a proxy and not from the API.
		if rs.Header.Get("X-RateLimit-Global") != "" || rs.Header.Get("Via") == "" && scope == "" {
			l.global = now.Add(max(wait, Seconds(rs.Header.Get("Retry-After"))))
			scope = "global"
		} else {
			b.free = now.Add(wait)
		}
		l.log.Warn("over a rate limit", "event", "rate_limited", "route", e.Endpoint.Method+" "+e.Endpoint.Route, "scope", scope, "wait", wait)
		return
	}
	if rs.Header.Get("X-RateLimit-Remaining") == "0" {
		b.free = now.Add(Seconds(rs.Header.Get("X-RateLimit-Reset-After")))
	}
}

// Seconds parses a number of seconds, which may have a fraction.
func Seconds(s string) time.Duration {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > 1e6 {
		return 0
	}
	return time.Duration(n * float64(time.Second))
}
