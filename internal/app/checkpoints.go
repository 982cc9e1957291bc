package app

import (
	"context"
	"time"

	"chorus/internal/checkpoint"
)

// keepCheckpoints seals the audit log and keeps its head elsewhere until ctx ends.
func (a *App) keepCheckpoints(ctx context.Context) {
	keeper := a.Settings.Checkpoints(a.Shared)
	if err := a.Settings.MakeCheckpointKey(ctx, keeper); err != nil && ctx.Err() == nil {
		a.Log.Warn("the key of checkpoints is not shared with other nodes: "+err.Error(), "component", "audit", "event", "checkpoint_key_not_shared")
	}
	checkpoint.Follower{Keeper: keeper, Audit: a.DB, Every: time.Duration(a.Shared.CheckpointEvery) * time.Minute, Log: a.Log, Warn: a.Notices.WarnOnce}.Run(ctx)
}
