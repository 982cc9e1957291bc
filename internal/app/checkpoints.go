package app

import (
	"context"
	"errors"
	"time"

	"chorus/internal/checkpoint"
)

// lastCheckpoint is how long the end of a process waits for its last checkpoint to be kept.
const lastCheckpoint = 5 * time.Second

// sealEvery is how often the audit log is sealed: what somebody cuts off the end of a thread's lines before the next seal is not
// missed.
const sealEvery = time.Minute

// keepCheckpoints seals the audit log and keeps its head elsewhere: at the start, from time to time
// and, without sending it, at the end.
func (a *App) keepCheckpoints(ctx context.Context) {
	keeper := a.Settings.Checkpoints(a.Shared)
	if err := a.Settings.MakeCheckpointKey(ctx, keeper); err != nil && ctx.Err() == nil {
		a.Log.Warn("the key of checkpoints is not shared with other nodes: "+err.Error(), "component", "audit", "event", "checkpoint_key_not_shared")
	}
	ticker := time.NewTicker(time.Duration(max(a.Shared.CheckpointEvery, 1)) * time.Minute)
	defer ticker.Stop()
	seals := time.NewTicker(sealEvery)
	defer seals.Stop()
	for {
		if point := a.keepCheckpoint(ctx, keeper); point != nil {
			if err := keeper.Send(ctx, *point); err != nil && ctx.Err() == nil {
				a.Log.Warn(err.Error(), "component", "audit", "event", "checkpoint_not_sent")
				a.Notices.WarnOnce(err.Error())
			}
		}
		for due := false; !due; {
			select {
			case <-ticker.C:
				due = true
			case <-seals.C:
				a.sealAudit(ctx)
			case <-ctx.Done():
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCheckpoint)
				defer cancel()
				a.sealAudit(last)
				a.keepCheckpoint(last, keeper)
				return
			}
		}
	}
}

// sealAudit seals what was written since the last time.
func (a *App) sealAudit(ctx context.Context) {
	if _, _, err := a.DB.SealAudit(ctx); err != nil && ctx.Err() == nil {
		a.Log.Warn(err.Error(), "component", "audit", "event", "audit_not_sealed")
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
		a.Log.Error("the audit log is not whole: "+broken.Text, "component", "audit", "event", "audit_broken", "seal", broken.Seal, "line", broken.Line)
		a.Notices.WarnOnce("the audit log is not whole: " + broken.Text)
	default:
		a.Log.Warn("no checkpoint of the audit log was kept: "+err.Error(), "component", "audit", "event", "checkpoint_not_kept")
	}
	return nil
}
