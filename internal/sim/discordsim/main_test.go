package discordsim

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is more than anything here needs, also on a busy machine.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// disgo's limiter cleans its buckets for ever, and cannot be told to stop.
		goleak.IgnoreAnyFunction("github.com/disgoorg/disgo/rest.(*rateLimiterImpl).cleanup"))
}

// within is a context that outlasts every hope of a test.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// next takes one value that must come.
func next[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-within(t).Done():
		t.Fatalf("there was no %s", what)
		panic("unreachable")
	}
}
