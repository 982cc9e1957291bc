package workrun

import (
	"context"
	"time"

	"chorus/internal/work"
)

// lookForDead is the interval of checks whether the workers that have tasks are alive.
const lookForDead = 2 * time.Second

// own advances the tasks of this process, and those of workers that are gone.
func (r *Runner) own(ctx context.Context, now time.Time) (next time.Time, err error) {
	held, err := r.Tasks.Held(ctx)
	if err != nil {
		return next, err
	}
	free := r.Workers
	for _, t := range held {
		if t.Worker == r.Self.Name && t.State != work.WaitingInput {
			free--
		}
	}
	for _, t := range held {
		if t.Worker != r.Self.Name {
			next = now.Add(lookForDead)
			took, err := r.takeOver(ctx, t, free)
			if err != nil {
				return next, err
			}
			if !took {
				continue
			}
			if t.State != work.WaitingInput {
				free--
			}
		}
		if t.State != work.Assigned || r.gave(t) {
			continue // it is running, or waits for its turn in the engine
		}
		if until := r.after(t.ID); until.After(now) {
			next = earliest(next, until)
			continue
		}
		r.start(ctx, t, r.prepare)
	}
	return next, nil
}

// takeOver takes over a task of a worker that is gone, if this one has a free
// slot. A task that only has to end its run needs no slot.
func (r *Runner) takeOver(ctx context.Context, t work.Task, free int) (bool, error) {
	ending := !t.State.Running() && t.State != work.WaitingInput
	switch {
	case r.draining.Load(), r.Alive != nil && r.Alive(t.Worker), !r.Self.Takes(t.Project, t.Agent):
		return false, nil
	case t.State.Running() && free <= 0, r.Workers <= 0 && !ending:
		return false, nil
	}
	if here, err := r.here(ctx, t.Project); err != nil || !here {
		return false, err
	}
	took, err := r.Tasks.TakeOver(ctx, t, r.Self.Name)
	if took {
		r.Log.Info("a task of a worker that is gone goes on here", "component", "work", "event", "task_taken_over", "task", t.ID, "from", t.Worker, "worker", r.Self.Name)
		if r.Adopted != nil {
			r.Adopted(t.Thread)
		}
	}
	return took, err
}
