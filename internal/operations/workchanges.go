package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Between two tries to reach a server that does not answer.
const (
	changesRetry    = time.Second
	changesRetryMax = 30 * time.Second
)

// WorkChanges has a value when something of the work may have changed since it was read last, until ctx ends. Changes that come before
// the last one was received are one. A server that cannot be asked is asked again, less and less often; each try counts as a change, so
// that whoever reads learns what is wrong.
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
				select {
				case out <- struct{}{}:
				default:
				}
			}
			first = first && err != nil
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	return out
}
