package model

import (
	"cmp"
	"time"
)

// Backoff says how often and how long to wait between attempts.
type Backoff struct {
	Retries       int           // attempts after the first; 0 means DefaultRetries, negative none
	Base          time.Duration // first pause, which doubles each time
	Max           time.Duration
	MaxRetryAfter time.Duration // a provider that asks for a longer pause counts as failed
}

// The defaults: 1, 2, 4 … 32 s, four attempts in all.
const (
	DefaultRetries       = 3
	defaultBase          = time.Second
	defaultMax           = 32 * time.Second
	defaultMaxRetryAfter = 5 * time.Minute
)

// Pause returns how long to wait after the n-th failure in a row (from 1), and whether to try again at all.
func (b Backoff) Pause(n int, e *Error, random float64) (time.Duration, bool) {
	retries := cmp.Or(b.Retries, DefaultRetries)
	if !e.Retryable() || n > retries {
		return 0, false
	}
	if e.RetryAfter > 0 {
		return e.RetryAfter, e.RetryAfter <= or(b.MaxRetryAfter, defaultMaxRetryAfter)
	}
	return b.spread(n, random), true
}

// OutagePause returns how long to wait after the n-th failure in a row if a provider is down for longer
// than the ordinary attempts take. It is never less than the provider asks for.
func (b Backoff) OutagePause(n int, e *Error, random float64) time.Duration {
	return max(e.RetryAfter, b.spread(n, random))
}

func (b Backoff) spread(n int, random float64) time.Duration {
	d := or(b.Base, defaultBase) << min(n-1, 16)
	d = min(d, or(b.Max, defaultMax))
	// Up to a quarter more, so that many threads do not retry at the same moment.
	return d + time.Duration(float64(d)/4*random)
}

func or(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}
