package checkpoint

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

const (
	// lastTime is how long a process waits at its end for its last checkpoint to be kept.
	lastTime = 5 * time.Second
	// sealEvery is how often the audit log is sealed. If somebody cuts off the end of a
	// thread's lines before the next seal, that is not detected.
	sealEvery = time.Minute
)

// Follower seals the audit log and keeps its head elsewhere while a process runs.
type Follower struct {
	Keeper Keeper
	Audit  Log
	Every  time.Duration // between checkpoints
	Log    *slog.Logger
	Warn   func(string) // receives what people must know, once each
}

// Run keeps a checkpoint at the start, periodically, and, without sending it, at the end of ctx.
func (f Follower) Run(ctx context.Context) {
	ticker := time.NewTicker(max(f.Every, time.Minute))
	defer ticker.Stop()
	seals := time.NewTicker(sealEvery)
	defer seals.Stop()
	for {
		if point := f.keep(ctx); point != nil {
			if err := f.Keeper.Send(ctx, *point); err != nil && ctx.Err() == nil {
				f.Log.Warn(err.Error(), "component", "audit", "event", "checkpoint_not_sent")
				f.Warn(err.Error())
			}
		}
		for due := false; !due; {
			select {
			case <-ticker.C:
				due = true
			case <-seals.C:
				f.seal(ctx)
			case <-ctx.Done():
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
				defer cancel()
				f.seal(last)
				f.keep(last)
				return
			}
		}
	}
}

// seal seals what was written since the last time.
func (f Follower) seal(ctx context.Context) {
	if _, _, err := f.Audit.SealAudit(ctx); err != nil && ctx.Err() == nil {
		f.Log.Warn(err.Error(), "component", "audit", "event", "audit_not_sealed")
	}
}

// keep keeps a checkpoint and reports what is wrong, once.
func (f Follower) keep(ctx context.Context) *Point {
	point, err := f.Keeper.Keep(ctx, f.Audit)
	var broken *Broken
	switch {
	case err == nil || ctx.Err() != nil:
		return point
	case errors.As(err, &broken):
		f.Log.Error("the audit log is not whole: "+broken.Text, "component", "audit", "event", "audit_broken", "seal", broken.Seal, "line", broken.Line)
		f.Warn("the audit log is not whole: " + broken.Text)
	default:
		f.Log.Warn("no checkpoint of the audit log was kept: "+err.Error(), "component", "audit", "event", "checkpoint_not_kept")
	}
	return nil
}
