// Package deadline says how long a run waits for anything outside of it, and what it is
// waiting for. No wait is endless: a Wait tells the watchdog when it is over, and the
// watchdog then cancels the run's context with a Stuck.
package deadline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Bounds are how long a run waits. Zero means the default. What it waits for has shorter limits of
// its own, which give better errors. These bounds catch whatever does not keep to its own limit.
type Bounds struct {
	Model  time.Duration // without a usable piece of an answer
	Answer time.Duration // a whole answer, however steadily it arrives
	Tool   time.Duration // one call
	Store  time.Duration // one read from the database, or one commit
	Setup  time.Duration // settings, servers, sandbox, the request: everything before something is sent
	Grace  time.Duration // for something that was told to end
}

// Defaults are the default bounds.
func Defaults() Bounds {
	return Bounds{
		Model:  15 * time.Minute, // providers let a model think silently for ten
		Answer: time.Hour,        // 128k tokens of a slow model
		Tool:   15 * time.Minute, // longer than any tool's own limit; for tools that have none
		Store:  30 * time.Second, // longer than the store waits for another process
		Setup:  3 * time.Minute,  // servers have half a minute to start, and may be several
		Grace:  10 * time.Second, // longer than killing a process tree takes
	}
}

// Or replaces zero values with those of d.
func (b Bounds) Or(d Bounds) Bounds {
	return Bounds{cmp.Or(b.Model, d.Model), cmp.Or(b.Answer, d.Answer), cmp.Or(b.Tool, d.Tool),
		cmp.Or(b.Store, d.Store), cmp.Or(b.Setup, d.Setup), cmp.Or(b.Grace, d.Grace)}
}

// Longest is the longest that any single wait can block the thread, even
// if what it waits for ignores its cancellation.
func (b Bounds) Longest() time.Duration {
	return max(b.Answer, b.Model, b.Tool+b.Grace, b.Setup, b.Store) + 3*b.Grace
}

// Wait is what a run is waiting for.
type Wait struct {
	For   string        // "the model demo/echo"
	Quiet time.Duration // maximum time without progress
	Total time.Duration // maximum time in all; 0: no limit while there is progress
}

// Stuck is the cause with which a run's context is cancelled when it has waited too long.
type Stuck struct {
	Wait
	After time.Duration
}

// Error says, for people, what the run waited for.
func (s *Stuck) Error() string {
	return fmt.Sprintf("waited %s for %s without success", s.After.Round(time.Millisecond), s.For)
}

// Passed returns the Stuck that a context was cancelled with, or nil.
func Passed(ctx context.Context) *Stuck {
	var s *Stuck
	errors.As(context.Cause(ctx), &s)
	return s
}

// ErrStopping ends runs because the process is stopping. They continue at the next start.
var ErrStopping = errors.New("chorus is stopping")

// Stopping is ErrStopping with a grace period for tools: those that are
// running may finish within it, and nothing new begins.
type Stopping struct{ Tools time.Duration }

func (s *Stopping) Error() string { return ErrStopping.Error() }

// Is makes errors.Is(s, ErrStopping) true.
func (s *Stopping) Is(target error) bool { return target == ErrStopping }

// ForTool returns the context for a tool in a run with context ctx. If ctx ends because the
// process is stopping, the tool's context ends only after the grace period.
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
