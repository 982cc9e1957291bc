package platform

import (
	"context"
	"log/slog"
	"time"

	"chorus/internal/await"
)

// Retry configures how a call is repeated.
type Retry struct {
	First, Max time.Duration // waits: the first, doubled up to the longest
	Call       time.Duration // time limit of one try
	Log        *slog.Logger
}

// Again repeats a repeatable call until it is answered, ctx ends, or the answer
// will not change.
func Again[T any](ctx context.Context, r Retry, what string, call func(context.Context) (T, error)) (T, error) {
	wait := r.First
	for {
		one, cancel := context.WithTimeout(ctx, r.Call)
		got, err := call(one)
		cancel()
		if err == nil || ctx.Err() != nil || !Passing(err) {
			return got, err
		}
		r.Log.Warn("the platform did not answer; trying again", "event", "call_failed", "call", what, "error", err, "wait", wait)
		if !await.For(ctx, wait) {
			return got, ctx.Err()
		}
		wait = min(2*wait, r.Max)
	}
}

// CallWithin is Again for callers that others wait for: it gives up if only this call is not
// answered in time. While the platform answers nothing at all there is nothing else to
// do, and it waits as long as it takes.
func CallWithin[T any](ctx context.Context, r Retry, wait time.Duration, answers func(context.Context) bool, what string, call func(context.Context) (T, error)) (T, error) {
	for {
		within, cancel := context.WithTimeout(ctx, wait)
		got, err := Again(within, r, what, call)
		late := within.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil || answered(ctx, r.Call, answers) {
			return got, err
		}
	}
}

func answered(ctx context.Context, within time.Duration, answers func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return answers(ctx)
}
