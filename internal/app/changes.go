package app

import (
	"context"

	"chorus/internal/chat"
)

// changes has a value when something that the pages about everything show has moved, or another
// process wrote anything, until ctx ends. Rings that come before the last was heard are one.
func (a *App) changes(ctx context.Context) <-chan struct{} {
	ear := a.Bus.HearAround(chat.KindReceived, chat.KindRefused, chat.KindRunStarted, chat.KindRunEnded, chat.KindApprovalAsked, chat.KindApprovalAnswered, chat.KindForked)
	out := make(chan struct{}, 1)
	go func() {
		defer ear.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ear.Bell():
				ear.Take() // what it was does not matter
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	}()
	return out
}
