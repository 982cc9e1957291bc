package app

import (
	"context"
	"time"

	"chorus/internal/doctor/checks"
	"chorus/internal/owner"
	"chorus/internal/store/nodes"
)

// sweep removes what nobody needs any more, once a day. Each process of a home checks
// whether it is due. Among nodes, one of them does it for all.
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

// tidy removes what was said in sessions that were deleted long ago, what killed processes left of saved contexts, and bytes
// that nothing refers to.
func (a *App) tidy(ctx context.Context) {
	switch n, err := a.Service.EraseDeleted(ctx, a.DB.Now()); {
	case err != nil && ctx.Err() == nil:
		a.Log.Warn("deleted conversations were not erased; this is tried again: "+err.Error(), "component", "store", "event", "erase_failed")
	case n > 0:
		a.Log.Info("deleted conversations were erased", "component", "store", "event", "sessions_erased", "erased", n)
	}
	switch n, err := a.Service.Contexts.Sweep(ctx); {
	case err != nil && ctx.Err() == nil:
		a.Log.Warn("what is left of contexts whose saving was interrupted was not removed; this is tried again: "+err.Error(), "component", "contexts", "event", "sweep_failed")
	case n > 0:
		a.Log.Info("what was left of contexts whose saving was interrupted was removed", "component", "contexts", "event", "contexts_swept", "removed", n)
	}
	a.Checks.Sweep(ctx)
}

// indexEvery is how long words wait to be indexed if there are several
// nodes. A search that comes sooner indexes them itself.
const indexEvery = 10 * time.Second

// keepIndex keeps the word index up to date until ctx ends, on one node for all: they share it,
// and otherwise each node's first search would have to index what all of them wrote. On a single
// home the first search does that, and keepIndex does nothing.
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
