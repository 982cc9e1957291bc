package app

import (
	"context"
	"sync"
	"time"

	"chorus/internal/hook/runner"
	"chorus/internal/owner"
)

// runHooks runs hooks until the server stops. The returned function waits for that.
func (a *App) runHooks(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	sources, closeSources := runner.OpenSources(runner.SourceDeps{Journal: a.DB, Work: a.queue, Bus: a.Bus})
	a.hooks.Sources, a.hooks.Worker = sources, a.hooksOf(a.Service.Handler()).Worker()
	others := a.Bus.SubscribeTopic(runner.ChangedElsewhere)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-others.Wake():
				others.Take()
				a.hooks.Changed()
			}
		}
	})
	work.Go(func() { a.whileOwner(ctx, owner.Hooks, a.hooks.Run) })
	return func() { cancel(); work.Wait(); closeSources(); others.Close() }
}

// ownerLook is how often a process checks whether another one that does something for all has ended.
const ownerLook = 2 * time.Second

// whileOwner calls work, which only one process may do, while this process owns name.
func (a *App) whileOwner(ctx context.Context, name owner.Name, work func(context.Context)) {
	owner.While(ctx, a.owner, name, ownerLook, func(err error) {
		a.Log.Warn("what one process does for all cannot be taken: "+err.Error(), "component", "owner", "event", "not_taken", "name", string(name))
	}, work)
}
