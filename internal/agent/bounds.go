package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/transcript"
)

// Bounds are how long a run waits for anything outside of it. Zero means the default.
// Those who are waited for have shorter limits of their own, which say more; these
// are for the ones that do not keep them.
type Bounds struct {
	Model  time.Duration // without a usable piece of an answer
	Answer time.Duration // a whole answer, however steadily it trickles
	Tool   time.Duration // one call
	Store  time.Duration // one look into the database, or one commit
	Setup  time.Duration // settings, servers, sandbox, the request: what comes before something is sent
	Grace  time.Duration // for what was told to end
}

// The defaults.
const (
	DefaultModelBound  = 15 * time.Minute // providers let a model think silently for ten
	DefaultAnswerBound = time.Hour        // 128k tokens of a slow model
	DefaultToolBound   = 15 * time.Minute // longer than any tool's own limit: it is for those that have none
	DefaultStoreBound  = 30 * time.Second // longer than the store waits for another process
	DefaultSetupBound  = 3 * time.Minute  // servers have half a minute to start, and may be several
	DefaultGrace       = 10 * time.Second // longer than killing a process tree takes
)

// Or fills in what is zero.
func (b Bounds) Or(d Bounds) Bounds {
	return Bounds{cmp.Or(b.Model, d.Model), cmp.Or(b.Answer, d.Answer), cmp.Or(b.Tool, d.Tool),
		cmp.Or(b.Store, d.Store), cmp.Or(b.Setup, d.Setup), cmp.Or(b.Grace, d.Grace)}
}

// Defaults are the bounds when nothing else is said.
func Defaults() Bounds {
	return Bounds{DefaultModelBound, DefaultAnswerBound, DefaultToolBound, DefaultStoreBound, DefaultSetupBound, DefaultGrace}
}

// Longest is the most that any one wait may take until the thread is free again,
// whoever does not listen.
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

// stuckBy is the cause of a context's end, if it is that.
func stuckBy(ctx context.Context) *Stuck {
	var s *Stuck
	errors.As(context.Cause(ctx), &s)
	return s
}

// waits tells whoever watches over the run what it is about to wait for.
func (r *runner) waits(what string, quiet, total time.Duration) {
	if r.Waits != nil {
		r.Waits(Wait{what, quiet, total})
	}
}

// Fail ends the run that is on, or answers the oldest prompt if none is, because of
// cause; newRun is the id of a run that must be made for that. It needs nothing but the host: everything else may be
// what hangs.
func Fail(ctx context.Context, log *transcript.Log, h Host, newRun string, cause error) error {
	r := &runner{Agent: &Agent{}, log: log, host: h}
	for {
		err := r.failNow(ctx, newRun, cause)
		if !errors.Is(err, journal.ErrMoved) {
			return err
		}
	}
}

func (r *runner) failNow(ctx context.Context, newRun string, cause error) error {
	switch run := r.log.Run(); {
	case run != nil && run.Aborted:
		return r.end(ctx, chat.RunEnded{Reason: chat.EndAborted, Text: "Stopped."})
	case run != nil:
		return r.fail(ctx, failure(cause))
	case len(r.log.Waiting()) > 0:
		return r.stillborn(ctx, Beginning{Run: newRun}, r.log.Waiting()[0], cause)
	default:
		return nil
	}
}
