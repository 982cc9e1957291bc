package workservice

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// moved describes the effect of a step on a task and on those that wait for it.
func (h *Handler) moved(ctx context.Context, before, after work.Task) (operations.TaskMove, error) {
	h.changed()
	out := operations.TaskMove{ID: after.ID, Title: after.Title, Status: string(after.State), PreviousStatus: string(before.State)}
	if after.State == work.Blocked {
		stuck, err := work.Stuck(after.ID, func(id string) ([]work.Task, error) { return h.o.Tasks.Dependents(ctx, id) })
		out.Stuck = briefs(stuck)
		return out, err
	}
	return out, nil
}

// step makes a task take a step on behalf of somebody, and returns the result.
func (h *Handler) step(ctx context.Context, by operation.Caller, id string, may func(t work.Task) error, step work.Step, with func(*work.Task)) (operations.TaskMove, error) {
	before, _, err := h.task(ctx, by, id)
	if err != nil {
		return operations.TaskMove{}, err
	}
	after, err := h.o.Tasks.Change(ctx, id, func(t *work.Task, now time.Time) ([]work.Event, error) {
		if before = *t; may != nil {
			if err := may(*t); err != nil {
				return nil, err
			}
		}
		e, err := t.Take(step, by.Principal.String(), now)
		if err != nil {
			return nil, err
		}
		with(t)
		return []work.Event{e}, nil
	})
	if err != nil {
		return operations.TaskMove{}, explained(err)
	}
	return h.moved(ctx, before, after)
}

// StopTask implements the operation of the same name. The words that stop the run move the task.
func (h *Handler) StopTask(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskMove, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.TaskMove{}, err
	}
	if _, err := work.Next(t.State, work.AdminStop); err != nil {
		return operations.TaskMove{}, operation.Errorf(operation.Conflict, "Task is not in progress (status: %s)", t.State)
	}
	after, err := h.stop(ctx, by, t)
	if err == nil {
		err = h.stopSteps(ctx, by, after)
	}
	if err != nil {
		return operations.TaskMove{}, explained(err)
	}
	return h.moved(ctx, t, after)
}

// RestartTask implements the operation of the same name.
func (h *Handler) RestartTask(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskMove, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.TaskMove{}, err
	}
	if t.State == work.Ready {
		return operations.TaskMove{ID: t.ID, Title: t.Title, Status: string(t.State), PreviousStatus: string(t.State)}, nil
	}
	if resumed, is, err := h.o.Plans.ResumePlan(ctx, t.ID, by.Principal.String()); is || err != nil {
		if err != nil {
			return operations.TaskMove{}, explained(err)
		}
		return h.moved(ctx, t, resumed) // the steps of its plan continue
	}
	return h.step(ctx, by, in.ID, idle, work.AdminRestart, fresh)
}

// idle refuses a task that has a worker.
func idle(t work.Task) error {
	if t.State == work.InProgress || t.State == work.Assigned || t.Run != "" {
		return operation.Errorf(operation.Conflict, "Task is currently in progress. Stop it first.")
	}
	return nil
}

// fresh gives a task all its tries again.
func fresh(t *work.Task) { t.Retries, t.NotBefore, t.Why = 0, time.Time{}, "" }

// ReopenTask implements the operation of the same name.
func (h *Handler) ReopenTask(ctx context.Context, by operation.Caller, in operations.TaskFeedback) (operations.TaskMove, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.TaskMove{}, err
	}
	if err := idle(t); err != nil {
		return operations.TaskMove{}, err
	}
	if t.State == work.AwaitingPlanApproval {
		return h.RejectPlan(ctx, by, in)
	}
	if err := h.unfinished(ctx, t, "reopen one of those, or restart the task to continue its plan"); err != nil {
		return operations.TaskMove{}, err
	}
	return h.step(ctx, by, in.ID, idle, work.AdminRestart, func(t *work.Task) {
		fresh(t)
		t.Description += "\n\n---\n**QA Feedback:**\n" + in.Feedback
	})
}

// ResolveConflict implements the operation of the same name.
func (h *Handler) ResolveConflict(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.Task, error) {
	t, p, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.Task{}, err
	}
	if !t.Conflicted() {
		return operations.Task{}, operation.Errorf(operation.Conflict, "task %s has no merge conflict (status: %s)", t.ID, t.State)
	}
	n := work.Resolution(t)
	n.Owner, n.Origin = by.Acting(), by.Session
	made, err := h.o.Tasks.Create(ctx, n)
	if err != nil {
		return operations.Task{}, explained(err)
	}
	h.changed()
	return h.whole(ctx, made, p)
}

// DeleteTask implements the operation of the same name.
func (h *Handler) DeleteTask(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskMove, error) {
	if _, _, err := h.task(ctx, by, in.ID); err != nil {
		return operations.TaskMove{}, err
	}
	gone, err := h.o.Tasks.Delete(ctx, in.ID, by.Principal.String(), func(t work.Task, subtasks int) error {
		if subtasks > 0 {
			return operation.Errorf(operation.Conflict, "Task '%s' has %d subtask(s); delete those first", t.ID, subtasks)
		}
		if err := idle(t); err != nil || t.State == work.Verifying || t.State == work.WaitingInput {
			return cmp.Or(err, error(operation.Errorf(operation.Conflict, "Task is currently in progress. Stop it first.")))
		}
		return nil
	})
	if err != nil {
		return operations.TaskMove{}, err
	}
	h.changed()
	return operations.TaskMove{ID: gone.ID, Title: gone.Title, PreviousStatus: string(gone.State)}, nil
}

// ApproveTask implements the operation of the same name. The approval requests the merge, and the
// task becomes COMPLETED with it. If a plan waits for approval, it approves the plan.
func (h *Handler) ApproveTask(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskMove, error) {
	t, p, err := h.task(ctx, by, in.ID)
	if err == nil {
		err = h.mayApprove(ctx, by, p)
	}
	if err != nil {
		return operations.TaskMove{}, err
	}
	if t.State == work.AwaitingPlanApproval {
		plan, err := h.ApprovePlan(ctx, by, in)
		return operations.TaskMove{ID: plan.ID, Title: plan.Title, Status: plan.Status, PreviousStatus: string(t.State)}, err
	}
	return h.step(ctx, by, in.ID, func(t work.Task) error {
		if t.State != work.AwaitingApproval {
			return operation.Errorf(operation.Conflict, "Task is not awaiting approval (status: %s)", t.State)
		}
		return nil
	}, work.Approved, func(t *work.Task) { t.Why = "" })
}

// SkipTask implements the operation of the same name.
func (h *Handler) SkipTask(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskMove, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err == nil {
		err = h.unfinished(ctx, t, "skip or delete those; the task continues when none is left")
	}
	if err != nil {
		return operations.TaskMove{}, err
	}
	waiting, err := h.o.Tasks.Dependents(ctx, in.ID)
	if err != nil {
		return operations.TaskMove{}, err
	}
	out, err := h.step(ctx, by, in.ID, func(t work.Task) error {
		if t.State != work.Blocked && t.State != work.Failed {
			return operation.Errorf(operation.Conflict, "Task is not BLOCKED or FAILED (status: %s). Only blocked/failed tasks can be skipped.", t.State)
		}
		return nil
	}, work.AdminSkip, func(t *work.Task) { t.Why = "skipped by " + by.Principal.String() })
	if err != nil {
		return out, err
	}
	for _, t := range waiting {
		now, err := h.o.Tasks.Task(ctx, t.ID)
		if err == nil && t.State == work.Defined && now.State != work.Defined {
			out.Unblocked = append(out.Unblocked, brief(now))
		}
	}
	return out, nil
}

// SetTaskStatus implements the operation of the same name.
func (h *Handler) SetTaskStatus(ctx context.Context, by operation.Caller, in operations.TaskStatusChange) (operations.TaskMove, error) {
	before, p, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.TaskMove{}, err
	}
	after, err := h.o.Tasks.Change(ctx, in.ID, func(t *work.Task, now time.Time) ([]work.Event, error) {
		if t.State.AsksForYes() && work.State(in.Status) == work.Completed {
			if err := h.mayApprove(ctx, by, p); err != nil {
				return nil, err
			}
		}
		if before = *t; t.Run != "" {
			return nil, operation.Errorf(operation.Conflict, "a worker is on the task; stop it first")
		}
		e := t.Override(work.State(in.Status), by.Principal.String(), now)
		t.Why = "set by " + by.Principal.String()
		if t.State == work.Paused {
			t.NotBefore = now // nothing else would ever wake it
		}
		return []work.Event{e}, nil
	})
	if err != nil {
		return operations.TaskMove{}, explained(err)
	}
	out, err := h.moved(ctx, before, after)
	if !work.Legal(before.State, after.State) {
		out.Warning = fmt.Sprintf("no rule leads from %s to %s: the move is marked as an override", before.State, after.State)
	}
	if err == nil && h.o.Audit != nil {
		err = h.o.Audit(ctx, by, "task set-status", fmt.Sprintf("%s of %s: %s instead of %s", after.ID, p.ID, after.State, before.State))
	}
	return out, err
}
