package platform

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/outbox"
)

func TestButtonsAreOpaqueAndVersioned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in       string
		what, id string
		ok       bool
	}{
		{ButtonValue(PressYes, "01ABC"), "yes", "01ABC", true},
		{ButtonValue(PressStop, "a:b"), "stop", "a:b", true},
		{"c2:yes:01ABC", "", "", false},
		{"yes:01ABC", "", "", false},
		{"c1:yes:", "yes", "", false},
		{"c1", "", "", false},
		{"", "", "", false},
	} {
		what, id, ok := ReadButton(c.in)
		if ok != c.ok || ok && (what != c.what || id != c.id) {
			t.Errorf("%q is read as %q, %q, %v", c.in, what, id, ok)
		}
	}
}

// Every call waits a second, then twice as long each time, up to the longest wait; a no is a no.
func TestCallsBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := Retry{First: time.Second, Max: 8 * time.Second, Call: time.Minute, Log: slog.New(slog.DiscardHandler)}
		began := time.Now()
		var at []time.Duration
		_, err := Again(t.Context(), r, "test", func(context.Context) (int, error) {
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
		_, err = Again(t.Context(), r, "test", func(context.Context) (int, error) {
			tries++
			return 0, &outbox.Trouble{Why: outbox.Forbidden, Err: errors.New("no")}
		})
		if err == nil || tries != 1 {
			t.Errorf("a no was asked for %d times: %v", tries, err)
		}
	})
}
