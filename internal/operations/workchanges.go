package operations

import (
	"context"
	"time"

	"chorus/internal/await"
	"chorus/internal/operation"
)

// The pauses between two attempts to reach a server.
const (
	changesRetry    = time.Second
	changesRetryMax = 30 * time.Second
)

// WorkChanges sends a value when the work may have changed since the last read, until ctx ends. Changes before the last
// value was received are merged. If the server cannot be reached, it is tried again at growing intervals; each attempt
// counts as a change, so that the reader learns what is wrong.
func WorkChanges(ctx context.Context, to operation.Executor, by operation.Caller, of WorkWait) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() {
		retry, first := changesRetry, true
		for ctx.Err() == nil {
			news, err := WaitForWork.Call(ctx, to, by, of)
			pause := time.Duration(0)
			if err != nil {
				pause, retry = retry, min(2*retry, changesRetryMax)
			} else {
				of.After, retry = news.After, changesRetry
			}
			if err != nil || first || len(news.Items) > 0 {
				await.Notify(out)
			}
			first = first && err != nil
			await.For(ctx, pause)
		}
	}()
	return out
}
