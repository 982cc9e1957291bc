package runner

import (
	"context"
	"errors"
	"fmt"

	"chorus/internal/hook"
	"chorus/internal/journal"
)

// errGone means that the hook was removed during its run.
var errGone = errors.New("the hook is gone")

// carry continues a run from its current state to its end.
func (r *Runner) carry(ctx context.Context, run hook.Run, freed func()) error {
	h, err := r.DB.Hook(ctx, run.Hook)
	if errors.Is(err, journal.ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	err = r.stages(ctx, h, &run, freed)
	switch {
	case errors.Is(err, errGone), ctx.Err() != nil:
		return nil // removed; or stopped, to continue at the next start
	case err != nil:
		return err
	}
	run.Ended = r.Now()
	return r.save(ctx, &run)
}

func (r *Runner) save(ctx context.Context, run *hook.Run) error {
	there, err := r.DB.SaveHookRun(context.WithoutCancel(ctx), *run)
	if err == nil && !there {
		err = errGone
	}
	return err
}

// stages runs the steps, the model and the actions. A nil error means that the run is over, in whatever state.
func (r *Runner) stages(ctx context.Context, h hook.Hook, run *hook.Run, freed func()) error {
	if run.State == hook.Failed { // it could not be read
		return nil
	}
	why, err := r.Worker.MayRun(ctx, h)
	if err != nil {
		return err
	}
	if why != "" {
		return fail(run, why)
	}
	if run.State == hook.Waiting {
		run.State, run.Stage, run.Started = hook.Running, hook.StageSteps, r.Now()
		if err := r.save(ctx, run); err != nil {
			return err
		}
	}
	for run.State == hook.Running {
		switch run.Stage {
		case hook.StageSteps:
			err = r.steps(ctx, h, run)
		case hook.StageModel:
			err = r.model(ctx, h, run, freed)
		default:
			return r.actions(ctx, h, run)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func fail(run *hook.Run, why string) error {
	run.State, run.Why = hook.Failed, why
	return nil
}

const cutOff = "chorus stopped while it ran; it is not run again, because it is not known what it had done by then. Fire the hook again if running it twice does no harm"

func (r *Runner) steps(ctx context.Context, h hook.Hook, run *hook.Run) error {
	for at := len(run.Results); at < len(h.Steps); at++ {
		if run.Begun {
			return fail(run, fmt.Sprintf("step_%d: %s", at, cutOff))
		}
		if h.Steps[at].Type == hook.Shell {
			run.Begun = true
			if err := r.save(ctx, run); err != nil {
				return err
			}
		}
		result := r.Worker.Step(ctx, h, *run, at).Bounded()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		result.Type = h.Steps[at].Type
		run.Results, run.Begun = append(run.Results, result), false
		if err := r.save(ctx, run); err != nil {
			return err
		}
		if result.Denied {
			return fail(run, fmt.Sprintf("step_%d: %s", at, result.Error))
		}
	}
	if why := hook.Skip(h.Steps, run.Results); why != "" {
		run.State, run.Why = hook.Skipped, why
		return nil
	}
	run.Stage = hook.StageModel
	if h.Template == "" {
		run.Stage = hook.StageActions
	} else if run.Prompt == "" {
		run.Prompt = r.Worker.Prompt(h, *run)
	}
	return r.save(ctx, run)
}

func (r *Runner) model(ctx context.Context, h hook.Hook, run *hook.Run, freed func()) error {
	if run.Seq == 0 {
		thread, seq, refused, err := r.Worker.Ask(ctx, h, *run)
		switch {
		case err != nil:
			return err
		case refused != "":
			return fail(run, refused)
		}
		run.Thread, run.Seq = thread, seq
		if err := r.save(ctx, run); err != nil {
			return err
		}
	}
	answer, err := r.Worker.Await(ctx, run.Thread, run.Seq, freed)
	if err != nil {
		return err
	}
	run.Answer, run.Tokens, run.Cost = answer.Text, answer.Tokens, answer.Cost
	if answer.Failed != "" {
		return fail(run, answer.Failed)
	}
	run.Stage = hook.StageActions
	return r.save(ctx, run)
}

func (r *Runner) actions(ctx context.Context, h hook.Hook, run *hook.Run) error {
	for at := len(run.Done); at < len(h.Actions); at++ {
		once := h.Actions[at].Type != hook.Say // what is said has a key, so it is said only once
		if run.Begun && once {
			return fail(run, fmt.Sprintf("action %d: %s", at, cutOff))
		}
		if once {
			run.Begun = true
			if err := r.save(ctx, run); err != nil {
				return err
			}
		}
		result := r.Worker.Act(ctx, h, *run, at).Bounded()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		result.Type = h.Actions[at].Type
		run.Done, run.Begun = append(run.Done, result), false
		if err := r.save(ctx, run); err != nil {
			return err
		}
		if result.Error != "" {
			return fail(run, fmt.Sprintf("action %d: %s", at, result.Error))
		}
	}
	run.State = hook.Completed
	return nil
}
