package discord

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disgoorg/disgo/rest"
)

// Every call waits a second, then twice as long each time, up to the longest wait; a no is a no.
func TestCallsBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{options: Options{FirstBackoff: firstBackoff, BackoffMax: 8 * time.Second, Log: slog.New(slog.DiscardHandler)}}
		began := time.Now()
		var at []time.Duration
		_, err := again(t.Context(), c, "test", func(context.Context) (int, error) {
			at = append(at, time.Since(began)/time.Second)
			if len(at) < 7 {
				return 0, errors.New("connection reset")
			}
			return 1, nil
		})
		if want := []time.Duration{0, 1, 3, 7, 15, 23, 31}; err != nil || !slices.Equal(at, want) {
			t.Errorf("tried at %v, not at %v: %v", at, want, err)
		}
		tries := 0
		_, err = again(t.Context(), c, "test", func(context.Context) (int, error) {
			tries++
			return 0, said(t, http.StatusForbidden, `{"code":50013}`, nil)
		})
		if err == nil || tries != 1 {
			t.Errorf("a no was asked for %d times: %v", tries, err)
		}
	})
}

// Whoever looks into the log finds each rate limit that was hit.
func TestRateLimitsAreLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := newLimiter(slog.New(slog.NewTextHandler(&out, nil)))
	e := rest.CreateMessage.Compile(nil, 1)
	if err := l.Wait(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	_ = l.Unlock(e, &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"X-Ratelimit-Reset-After": {"0.1"}, "X-Ratelimit-Scope": {"user"}, "Via": {"1.1 x"}}})
	for _, want := range []string{"event=rate_limited", "scope=user", "/channels/{channel.id}/messages"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log has no %s: %s", want, out.String())
		}
	}
}
