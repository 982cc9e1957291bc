package app

import (
	"context"
	"sync"

	"chorus/internal/eventfile"
	"chorus/internal/owner"
	"chorus/internal/peernotify"
)

// keepSchedules runs schedules and event files until the server stops. The returned function waits for that.
func (a *App) keepSchedules(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	events := eventfile.Folder{Dir: a.Home.Events(), Handler: a.Schedules(a.Service.Handler()).EventFiles(a.Me()), Log: a.Log}
	var work sync.WaitGroup
	changes, elsewhere := a.followSchedules(), a.Bus.SubscribeTopic(changedSchedules)
	work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changes.Woken():
				changes.Take() // which ones does not matter
			case <-elsewhere.Wake():
				elsewhere.Take()
			}
			a.clock.Changed()
		}
	})
	work.Go(func() { a.whileOwner(ctx, owner.Schedules, a.clock.Run) })
	work.Go(func() { events.Run(ctx) })
	return func() { cancel(); work.Wait(); changes.Close(); elsewhere.Close() }
}

// changedSchedules is the topic by which processes tell each other that schedules have changed.
const changedSchedules = "schedules"

// schedulesChanged makes the clock of this process, and of every other that runs schedules, check them.
func (a *App) schedulesChanged() {
	a.clock.Changed()
	a.schedulePeers().Notify(changedSchedules)
	if a.remotePeers() {
		a.Peers().Notify(changedSchedules)
	}
}

// followSchedules subscribes to changes in other processes. It returns nil if that
// is not possible: then the clock finds them later by itself.
func (a *App) followSchedules() *peernotify.Subscription {
	changes, err := a.schedulePeers().Subscribe()
	if err != nil {
		a.Log.Debug("other processes cannot tell of changed schedules", "component", "schedules", "event", "no_peer_notifications", "error", err)
		return nil
	}
	return changes
}

// schedulePeers returns the processes on this home that run schedules. They have their
// own sockets: not every process that runs threads runs schedules.
func (a *App) schedulePeers() peernotify.Peers {
	return peernotify.In(a.Home.ScheduleSockets())
}
