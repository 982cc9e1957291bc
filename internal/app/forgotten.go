package app

import (
	"context"
	"os"
	"time"

	"chorus/internal/settings"
)

// forgetEvery is how often a node checks, without a notification, what was forgotten elsewhere.
const forgetEvery = 30 * time.Second

// followForgotten removes from this home what was forgotten on other nodes, until ctx ends.
func (a *App) followForgotten(ctx context.Context) {
	changes := a.Bus.SubscribeTopic(changedDocuments)
	defer changes.Close()
	again := time.NewTicker(forgetEvery)
	defer again.Stop()
	for {
		if err := a.Settings.FollowForgotten(ctx, a.forgetHere); err != nil && ctx.Err() == nil {
			a.Log.Warn("what was forgotten elsewhere is not forgotten here yet: "+err.Error(), "component", "documents", "event", "not_forgotten")
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		case <-changes.Wake():
			changes.Take()
		}
	}
}

// forgetHere removes this home's files of what was forgotten.
func (a *App) forgetHere(ctx context.Context, f settings.Forgotten) error {
	for _, file := range f.Files {
		if err := a.Settings.RemoveSaved(file); err != nil {
			return err
		}
	}
	for _, thread := range f.Threads {
		if _, err := os.Stat(a.Home.ThreadDir(thread)); err != nil {
			continue // nothing of it is here
		}
		if err := a.Mirrors.CatchUp(ctx, thread); err != nil {
			return err
		}
	}
	for _, thread := range f.Erased {
		if err := a.Service.RemoveFiles(ctx, thread); err != nil {
			return err
		}
	}
	return a.Service.Images.Clear()
}
