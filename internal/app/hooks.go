package app

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"chorus/internal/hook/runner"
	"chorus/internal/lockfile"
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
	return a.waitForLock(ctx, "hooks")
}

// waitForLock waits until no other process holds a lock of this home.
func (a *App) waitForLock(ctx context.Context, name string) (unlock func(), err error) {
	for {
		lock, err := lockfile.Try(filepath.Join(a.Home.Locks(), name), nil)
		if err == nil {
			return func() { lock.Release() }, nil
		}
		if !errors.Is(err, lockfile.ErrHeld) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(hooksLock):
		}
	}
}
