package app

import (
	"context"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/work"
	"chorus/internal/workrun"
)

// Changes returns a channel that receives a value when something that the overview pages show has changed,
// when another process wrote anything, or when something about the work has changed. It is closed when ctx
// ends. Changes that come before the last value was received count as one.
func (a *App) Changes(ctx context.Context) <-chan struct{} {
	subscription := a.Bus.SubscribeAllProcesses(chat.KindReceived, chat.KindRefused, chat.KindRunStarted, chat.KindRunEnded, chat.KindApprovalAsked, chat.KindApprovalAnswered, chat.KindForked)
	tasks, elsewhere := a.Bus.Subscribe(work.EventsWritten), a.Bus.SubscribeTopic(workrun.ChangedElsewhere)
	out := make(chan struct{}, 1)
	go func() {
		defer close(out)
		defer subscription.Close()
		defer tasks.Close()
		defer elsewhere.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-subscription.Wake():
				subscription.Take() // what it was does not matter
			case <-tasks.Wake():
				tasks.Take()
			case <-elsewhere.Wake():
				elsewhere.Take()
			}
			await.Notify(out)
		}
	}()
	return out
}
