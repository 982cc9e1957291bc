package model

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	overloaded := &Error{Kind: Overloaded}
	var b Backoff
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second} {
		if got, again := b.Pause(n, overloaded, 0); got != want || !again {
			t.Errorf("after failure %d: %v %v", n, got, again)
		}
	}
	for _, c := range []struct {
		b     Backoff
		n     int
		e     *Error
		pause time.Duration
		again bool
	}{
		{Backoff{}, 4, overloaded, 0, false},
		{Backoff{Retries: -1}, 1, overloaded, 0, false},
		{Backoff{Retries: 20}, 15, overloaded, 32 * time.Second, true},
		{Backoff{}, 1, &Error{Kind: Auth}, 0, false},
		{Backoff{}, 1, &Error{Kind: TooLong}, 0, false},
		{Backoff{}, 1, &Error{Kind: RateLimited, RetryAfter: 7 * time.Second}, 7 * time.Second, true},
		{Backoff{}, 1, &Error{Kind: RateLimited, RetryAfter: time.Hour}, time.Hour, false},
	} {
		if got, again := c.b.Pause(c.n, c.e, 0); got != c.pause || again != c.again {
			t.Errorf("%+v after failure %d of %s: %v %v", c.b, c.n, c.e.Kind, got, again)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, random := rapid.IntRange(1, 1000).Draw(t, "n"), rapid.Float64Range(0, 0.999).Draw(t, "random")
		if d, _ := (Backoff{Retries: 1000}).Pause(n, overloaded, random); d < time.Second || d > 40*time.Second {
			t.Fatalf("%v", d)
		}
	})
}
