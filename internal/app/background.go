package app

import (
	"context"
	"log/slog"
	"sync"

	"chorus/internal/notice"
)

// StartBackground starts, once, the background work of a long-running process: it keeps the configuration and
// the list of models up to date, sweeps once a day, and keeps the head of the audit log elsewhere.
func (a *App) StartBackground() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopBackground != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	a.stopBackground = func() { cancel(); work.Wait() }
	work.Go(func() {
		say := func(r notice.Notice) {
			a.Notices.Post(r)
			level := slog.LevelInfo
			if r.Bad {
				level = slog.LevelWarn
			}
			a.Log.Log(ctx, level, r.Text, "component", "config")
		}
		if err := a.Settings.Live.Watch(ctx, a.Settings.Changed, say); err != nil {
			say(notice.Notice{Bad: true, Text: "changes of the configuration are not noticed: " + err.Error()})
		}
	})
	work.Go(func() {
		if !a.Models.Stale() {
			return
		}
		if _, err := a.Discovery.RefreshModels(ctx, nil); err != nil && ctx.Err() == nil {
			a.Log.Warn("the list of models was not updated: "+err.Error(), "component", "models", "event", "models_not_renewed")
		}
	})
	work.Go(func() { a.followDocuments(ctx) })
	if a.sharedDatabase {
		work.Go(func() { a.followForgotten(ctx) })
	}
	work.Go(func() { a.sweep(ctx) })
	work.Go(func() { a.keepIndex(ctx) })
	work.Go(func() { a.Processes.Run(ctx) })
	work.Go(func() { a.keepCheckpoints(ctx) })
}
