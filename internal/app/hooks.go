package app

import (
	"context"
	"sync"
	"time"

	"chorus/internal/hook/runner"
	"chorus/internal/owner"
)

// runHooks runs hooks until the server stops; the function that it returns waits for that.
func (a *App) runHooks(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	sources, closeSources := runner.OpenSources(runner.SourceDeps{Journal: a.DB, Work: a.queue, Bus: a.Bus})
	a.hooks.Sources, a.hooks.Worker = sources, a.Service.Handler().HookWorker()
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
	work.Go(func() { a.hooks.Run(ctx) })
	return func() { cancel(); work.Wait(); closeSources(); others.Close() }
}

// hooksLock is how often a server looks whether another one that held a lock of this home has ended.
const hooksLock = 5 * time.Second

// lockHooks waits until no other process runs the hooks of this home.
func (a *App) lockHooks(ctx context.Context) (unlock func(), err error) {
	return a.waitForLock(ctx, owner.Hooks)
}

// waitForLock waits until no other process holds a lock of this home.
func (a *App) waitForLock(ctx context.Context, name owner.Name) (unlock func(), err error) {
	held, err := owner.Await(ctx, a.owner, name, hooksLock)
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}
