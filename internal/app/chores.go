package app

import (
	"context"
	"time"

	"chorus/internal/doctor/checks"
	"chorus/internal/owner"
	"chorus/internal/store/nodes"
)

// sweep removes what nobody needs any more, once a day. Each process of a home looks whether it is due, as they always did; among nodes one
// of them does it for all.
func (a *App) sweep(ctx context.Context) {
	if a.member == nil {
		checks.Daily(ctx, a.tidy)
		return
	}
	a.whileOwner(ctx, owner.Sweeps, func(ctx context.Context) {
		checks.Daily(ctx, func(ctx context.Context) {
			if err := nodes.Tidy(ctx, a.DB); err != nil && ctx.Err() == nil {
				a.Log.Warn(err.Error(), "component", "nodes", "event", "nodes_not_tidied")
			}
			a.tidy(ctx)
		})
	})
}

// tidy removes what was said in sessions that were deleted long ago, and bytes that nothing refers to.
func (a *App) tidy(ctx context.Context) {
	switch n, err := a.Service.EraseDeleted(ctx, a.DB.Now()); {
	case err != nil && ctx.Err() == nil:
		a.Log.Warn("deleted conversations were not erased; it is tried again: "+err.Error(), "component", "store", "event", "erase_failed")
	case n > 0:
		a.Log.Info("deleted conversations were erased", "component", "store", "event", "sessions_erased", "erased", n)
	}
	a.Checks.Sweep(ctx)
}

// indexEvery is how long words wait for the index among nodes. Whoever searches sooner adds them then.
const indexEvery = 10 * time.Second

// keepIndex brings the index of words up to date among nodes, on one of them, until ctx ends: they share it, and each would find what all of them
// wrote at its first search. On one home the first search does that, and nothing happens here.
func (a *App) keepIndex(ctx context.Context) {
	if a.member == nil {
		return
	}
	a.whileOwner(ctx, owner.Search, func(ctx context.Context) {
		tick := time.NewTicker(indexEvery)
		defer tick.Stop()
		failed := false
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			_, err := a.DB.IndexNew(ctx)
			if err != nil && !failed && ctx.Err() == nil {
				a.Log.Warn("words are not indexed; a search does it: "+err.Error(), "component", "search", "event", "index_failed")
			}
			failed = err != nil
		}
	})
}
