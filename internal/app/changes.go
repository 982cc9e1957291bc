package app

import (
	"context"

	"chorus/internal/chat"
	"chorus/internal/work"
)

// changes has a value when something that the overview pages show has changed, or another process
// wrote anything, until ctx ends. Changes that come before the last one was received are one.
func (a *App) changes(ctx context.Context) <-chan struct{} {
	subscription := a.Bus.SubscribeAllProcesses(chat.KindReceived, chat.KindRefused, chat.KindRunStarted, chat.KindRunEnded, chat.KindApprovalAsked, chat.KindApprovalAnswered, chat.KindForked)
	tasks := a.Bus.Subscribe(work.EventsWritten)
	out := make(chan struct{}, 1)
	go func() {
		defer subscription.Close()
		defer tasks.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-subscription.Wake():
				subscription.Take() // what it was does not matter
			case <-tasks.Wake():
				tasks.Take()
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}
