package connector

import (
	"context"
	"time"

	"chorus/internal/platform"
)

func (b *Bot) retry() platform.Retry {
	return platform.Retry{First: b.FirstBackoff, Max: b.BackoffMax, Call: callTime, Log: b.Log}
}

// Again repeats a call to the platform until it is answered.
func Again[T any](ctx context.Context, b *Bot, what string, call func(context.Context) (T, error)) (T, error) {
	return platform.Again(ctx, b.retry(), what, call)
}

// callWithin is Again for callers that others wait for: see platform.CallWithin.
func callWithin[T any](ctx context.Context, b *Bot, wait time.Duration, what string, call func(context.Context) (T, error)) (T, error) {
	return platform.CallWithin(ctx, b.retry(), wait, b.Platform.Answers, what, call)
}

// readOn reads a channel's history from its cursor on. If that fails now, it is left
// to the recheck, and later channels get less time. An error is the end of ctx.
func (b *Bot) readOn(ctx context.Context, channel string, wait *time.Duration) error {
	_, err := b.readNews(ctx, channel, *wait)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	b.Log.Warn("a channel could not be read; looking again later", "event", "catch_up_failed", "channel", channel, "error", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.active[channel]; !there {
		b.active[channel] = time.Now()
	}
	*wait = min(*wait, b.FirstBackoff)
	return nil
}
