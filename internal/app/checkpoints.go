package app

import (
	"context"
	"errors"
	"time"

	"chorus/internal/checkpoint"
)

// lastCheckpoint is how long the end of a process waits for its last checkpoint to be kept.
const lastCheckpoint = 5 * time.Second

// keepCheckpoints keeps the head of the audit log elsewhere: at the start, from time to time
// and, without sending it, at the end.
func (a *App) keepCheckpoints(ctx context.Context) {
	keeper := a.Settings.Checkpoints(a.Shared)
	if err := a.Settings.MakeCheckpointKey(ctx, keeper); err != nil && ctx.Err() == nil {
		a.Log.Warn("the key of checkpoints is not shared with other nodes: "+err.Error(), "component", "audit", "event", "checkpoint_key_not_shared")
	}
	ticker := time.NewTicker(time.Duration(max(a.Shared.CheckpointEvery, 1)) * time.Minute)
	defer ticker.Stop()
	for {
		if point := a.keepCheckpoint(ctx, keeper); point != nil {
			if err := keeper.Send(ctx, *point); err != nil && ctx.Err() == nil {
				a.Log.Warn(err.Error(), "component", "audit", "event", "checkpoint_not_sent")
				a.Notices.WarnOnce(err.Error())
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpoint)
			defer cancel()
			a.keepCheckpoint(last, keeper)
			return
		}
	}
}

// keepCheckpoint keeps one and says what is wrong, once.
func (a *App) keepCheckpoint(ctx context.Context, keeper checkpoint.Keeper) *checkpoint.Point {
	point, err := keeper.Keep(ctx, a.DB)
	var broken *checkpoint.Broken
	switch {
	case err == nil || ctx.Err() != nil:
		return point
	case errors.As(err, &broken):
		a.Log.Error("the audit log is not whole: "+broken.Text, "component", "audit", "event", "audit_broken", "line", broken.Line)
		a.Notices.WarnOnce("the audit log is not whole: " + broken.Text)
	default:
		a.Log.Warn("no checkpoint of the audit log was kept: "+err.Error(), "component", "audit", "event", "checkpoint_not_kept")
	}
	return nil
}
