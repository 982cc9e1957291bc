// Package deadline says how long a run waits for anything outside of it, and what it is
// waiting for. It promises that no wait is without an end: whoever watches a run can tell
// from a Wait when it is over, and cancels the run's context with a Stuck.
package deadline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Bounds are how long a run waits. Zero means the default. Those who are waited for have
// shorter limits of their own, which give better errors; these are for the ones that do
// not keep them.
type Bounds struct {
	Model  time.Duration // without a usable piece of an answer
	Answer time.Duration // a whole answer, however steadily it trickles
	Tool   time.Duration // one call
	Store  time.Duration // one look into the database, or one commit
	Setup  time.Duration // settings, servers, sandbox, the request: what comes before something is sent
	Grace  time.Duration // for what was told to end
}

// Defaults are the bounds when nothing else is said.
func Defaults() Bounds {
	return Bounds{
		Model:  15 * time.Minute, // providers let a model think silently for ten
		Answer: time.Hour,        // 128k tokens of a slow model
		Tool:   15 * time.Minute, // longer than any tool's own limit: it is for those that have none
		Store:  30 * time.Second, // longer than the store waits for another process
		Setup:  3 * time.Minute,  // servers have half a minute to start, and may be several
		Grace:  10 * time.Second, // longer than killing a process tree takes
	}
}

// Or fills in what is zero.
func (b Bounds) Or(d Bounds) Bounds {
	return Bounds{cmp.Or(b.Model, d.Model), cmp.Or(b.Answer, d.Answer), cmp.Or(b.Tool, d.Tool),
		cmp.Or(b.Store, d.Store), cmp.Or(b.Setup, d.Setup), cmp.Or(b.Grace, d.Grace)}
}

// Longest is the most that any one wait may take until the thread is free again,
// also when what is waited for ignores its cancellation.
func (b Bounds) Longest() time.Duration {
	return max(b.Answer, b.Model, b.Tool+b.Grace, b.Setup, b.Store) + 3*b.Grace
}

// Wait is what a run is waiting for.
type Wait struct {
	For   string        // "the model demo/echo"
	Quiet time.Duration // may pass without anything coming of it
	Total time.Duration // may pass in all; 0: as long as something comes
}

// Stuck is the cause a run's context is cancelled with when it has waited too long.
type Stuck struct {
	Wait
	After time.Duration
}

// Error says what was waited for, for people.
func (s *Stuck) Error() string {
	return fmt.Sprintf("waited %s for %s in vain", s.After.Round(time.Millisecond), s.For)
}

// Passed is the Stuck that a context was cancelled with; nil: none.
func Passed(ctx context.Context) *Stuck {
	var s *Stuck
	errors.As(context.Cause(ctx), &s)
	return s
}

// ErrStopping is why runs end that go on at the next start: the process is stopping.
var ErrStopping = errors.New("chorus is stopping")

// Stopping is ErrStopping with a grace for tools: what runs already may end within it, and
// nothing new is begun.
type Stopping struct{ Tools time.Duration }

// Error says so.
func (s *Stopping) Error() string { return ErrStopping.Error() }

// Is makes it an ErrStopping.
func (s *Stopping) Is(target error) bool { return target == ErrStopping }

// ForTool is the context of a tool in a run whose context is ctx: when that ends because the
// process stops, the tool's ends only after the grace.
func ForTool(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		var s *Stopping
		if cause := context.Cause(ctx); !errors.As(cause, &s) || s.Tools <= 0 {
			cancel(cause)
			return
		}
		grace := time.AfterFunc(s.Tools, func() { cancel(s) })
		context.AfterFunc(inner, func() { grace.Stop() })
	})
	return inner, func() { stop(); cancel(context.Canceled) }
}
