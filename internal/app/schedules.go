package app

import (
	"context"
	"sync"

	"chorus/internal/eventfile"
	"chorus/internal/owner"
	"chorus/internal/peernotify"
)

// keepSchedules says what schedules and event files say until the server stops; the function that it returns waits
// for that.
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

// changedSchedules is what processes tell each other when schedules change.
const changedSchedules = "schedules"

// schedulesChanged has the clock of this process, and of every other that keeps schedules, look at them.
func (a *App) schedulesChanged() {
	a.clock.Changed()
	a.schedulePeers().Notify(changedSchedules)
	if a.remotePeers() {
		a.Peers().Notify(changedSchedules)
	}
}

// followSchedules hears of changes in other processes; nil where that is not possible: the clock looks by itself, later.
func (a *App) followSchedules() *peernotify.Subscription {
	changes, err := a.schedulePeers().Subscribe()
	if err != nil {
		a.Log.Debug("other processes cannot tell of changed schedules", "component", "schedules", "event", "no_peer_notifications", "error", err)
		return nil
	}
	return changes
}

// schedulePeers are the processes on this home that keep schedules. They have sockets of their own: not every process that runs
// threads keeps schedules.
func (a *App) schedulePeers() peernotify.Peers {
	return peernotify.In(a.Home.ScheduleSockets())
}
