package discordsim

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// longestWait is more than anything here takes, also on a busy machine.
const longestWait = 2 * time.Minute

// slowTime is the time scale of a guild in which nobody has to hurry: what Discord wants within three seconds
// is in time for half a minute.
const slowTime = 0.1

// Numbers of Discord's that bots send and see here.
const (
	forward      = 1  // a reference that takes a message along
	pollResult   = 46 // a message
	replyMessage = 4  // to an interaction
	replyChoices = 8
	replyModal   = 9
)

// handClock is a clock that goes only when it is told to.
type handClock struct {
	mu  sync.Mutex
	at  time.Time
	due []*scheduledCall
}

// scheduledCall is something that a clock calls once.
type scheduledCall struct {
	at   time.Time
	call func()
}

func newHandClock() *handClock { return &handClock{at: time.Now()} }

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &scheduledCall{at: c.at.Add(d), call: f}
	c.due = append(c.due, a)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.due, a)
		if i < 0 {
			return false
		}
		c.due = slices.Delete(c.due, i, i+1)
		return true
	}
}

// pass lets time pass, and calls what is due.
func (c *handClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.due = slices.DeleteFunc(c.due, func(a *scheduledCall) bool {
		if c.at.Before(a.at) {
			return false
		}
		go a.call()
		return true
	})
}

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// disgo's limiter cleans its buckets for ever, and cannot be told to stop.
		goleak.IgnoreAnyFunction("github.com/disgoorg/disgo/rest.(*rateLimiterImpl).cleanup"),
		// Nor can its gateway, once it connects again: that has no context, and Close does nothing while there is no connection.
		// It does so by itself on a busy machine, where it takes an answer to its heartbeat that comes before it has noted
		// sending it for none. The heartbeat of a connection that is closed at once has not stored how it is ended.
		goleak.IgnoreAnyFunction("github.com/disgoorg/disgo/gateway.(*gatewayImpl).reconnect"),
		goleak.IgnoreAnyFunction("github.com/disgoorg/disgo/gateway.(*gatewayImpl).heartbeat"))
}

// within is a context that ends when a test has waited too long.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
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
