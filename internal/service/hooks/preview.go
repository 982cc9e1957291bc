package hooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"chorus/internal/hook"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// testTime limits a test as a whole, because somebody waits for it.
const testTime = time.Minute

// PreviewHook implements the operation of that name.
func (o *Handler) PreviewHook(ctx context.Context, by operation.Caller, in operations.NewHook) (operations.HookPreview, error) {
	h, err := o.draftHook(ctx, by, in, "preview")
	if err != nil {
		return operations.HookPreview{}, err
	}
	out := operations.HookPreview{Starts: h.Trigger.String(), Next: h.Trigger.NextTimes(o.app.Now(), shownTimes), Does: h.Sentences()}
	out.Waits, err = o.waitsForYes(ctx, h)
	return out, err
}

// TestHook implements the operation of that name.
func (o *Handler) TestHook(ctx context.Context, by operation.Caller, in operations.HookRef) (operations.HookTest, error) {
	var out operations.HookTest
	h, err := o.findHook(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	run, err := hook.NewRun(h, "test", "test", by.Acting(), o.lastEvent(ctx, h.ID))
	if stopped, ok := errors.AsType[*hook.StoppedError](err); ok {
		return out, operation.Errorf(operation.Conflict, "%s", stopped.Why)
	}
	if err != nil {
		return out, err
	}
	does := worker{o}
	if out.Why, err = does.MayRun(ctx, h); err != nil || out.Why != "" {
		return out, err
	}
	timed, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	for at := range h.Steps {
		result := does.Step(timed, h, run, at).Bounded()
		result.Type = h.Steps[at].Type
		run.Results = append(run.Results, result)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case timed.Err() != nil:
			out.Why = fmt.Sprintf("step_%d: a test takes at most %s; run the hook to see the rest", at, testTime)
		case result.Denied:
			out.Why = fmt.Sprintf("step_%d: %s", at, result.Error)
		}
		if out.Why != "" {
			break
		}
	}
	if len(run.Results) > 0 {
		out.Steps = plainJSON(run.Results)
	}
	if out.Why != "" {
		return out, nil
	}
	if out.Skipped = hook.Skip(h.Steps, run.Results); out.Skipped != "" {
		return out, nil
	}
	if h.Template != "" {
		out.Prompt = does.Prompt(h, run)
	}
	out.Actions = hook.Hook{Definition: hook.Definition{Actions: h.Actions}}.Sentences()[1:]
	return out, nil
}

// lastEvent returns the event of the newest run that one triggered; nil: there was none.
func (o *Handler) lastEvent(ctx context.Context, id string) []byte {
	runs, err := o.rows.HookRuns(ctx, id, shownHookRuns)
	if err != nil {
		return nil // it is only an example
	}
	for _, r := range runs {
		if len(r.Event) > 0 {
			return r.Event
		}
	}
	return nil
}
