package workservice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// Plans stores the plans that tasks produce.
type Plans interface {
	PlanOf(ctx context.Context, task string) (work.Proposal, error)
	ApprovePlan(ctx context.Context, id, by string) (parent work.Task, steps []work.Task, err error)
	RejectPlan(ctx context.Context, id, by, feedback string) (work.Task, error)
	DeletePlan(ctx context.Context, id, by string) (work.Task, error)
	ResumePlan(ctx context.Context, id, by string) (parent work.Task, resumed bool, err error)
}

var _ operations.Plans = (*Handler)(nil)

// maxSteps is how many steps of a plan are read: more than a plan can have, including earlier plans.
const maxSteps = 1000

// GetTaskPlan implements the operation of the same name.
func (h *Handler) GetTaskPlan(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskPlan, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.TaskPlan{}, err
	}
	return h.plan(ctx, t)
}

func (h *Handler) plan(ctx context.Context, t work.Task) (operations.TaskPlan, error) {
	p, err := h.o.Plans.PlanOf(ctx, t.ID)
	if errors.Is(err, journal.ErrUnknown) {
		return operations.TaskPlan{}, operation.Errorf(operation.NotFound, "Task '%s' gave no plan", t.ID)
	}
	if err != nil {
		return operations.TaskPlan{}, err
	}
	out := operations.TaskPlan{ID: t.ID, Title: t.Title, Status: string(t.State), State: p.State, Source: p.Source, Background: p.Background, Steps: []operations.PlanStep{}, DecidedBy: p.By}
	for i, s := range p.Steps {
		out.Steps = append(out.Steps, operations.PlanStep{Number: i + 1, Title: s.Title, Text: s.Text})
	}
	steps, err := h.steps(ctx, t)
	out.Subtasks = briefs(steps)
	return out, err
}

func (h *Handler) steps(ctx context.Context, t work.Task) ([]work.Task, error) {
	return h.o.Tasks.List(ctx, work.Filter{Parent: t.ID, All: true, Limit: maxSteps})
}

// notWaiting says that a task has no plan to decide on.
func notWaiting(t work.Task) error {
	if t.State == work.AwaitingPlanApproval {
		return nil
	}
	return operation.Errorf(operation.Conflict, "Task has no plan that waits for approval (status: %s)", t.State)
}

// notWorker refuses approvals by workers of the queue, for themselves or each other. Only people may approve.
func notWorker(by operation.Caller) error {
	if by.Session.Transport() == chat.WorkTransport || by.Principal.Kind == chat.TaskWorker {
		return operation.Errorf(operation.Forbidden, "workers cannot approve the results of tasks; only a person can")
	}
	return nil
}

// ApprovePlan implements the operation of the same name.
func (h *Handler) ApprovePlan(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskPlan, error) {
	t, p, err := h.task(ctx, by, in.ID)
	if err == nil {
		err = h.mayApprove(ctx, by, p)
	}
	if err == nil {
		err = notWaiting(t)
	}
	if err != nil {
		return operations.TaskPlan{}, err
	}
	plan, err := h.o.Plans.PlanOf(ctx, t.ID)
	if err != nil {
		return operations.TaskPlan{}, err
	}
	if n := len(plan.Steps); n > work.MaxPlanSteps {
		return operations.TaskPlan{}, operation.Errorf(operation.Conflict, "the plan has %d steps, and at most %d can become tasks; reject it and say how to shorten it: chorus task reject-plan %s", n, work.MaxPlanSteps, t.ID)
	}
	if t, _, err = h.o.Plans.ApprovePlan(ctx, t.ID, by.Principal.String()); err != nil {
		return operations.TaskPlan{}, explained(err)
	}
	h.changed()
	return h.plan(ctx, t)
}

// RejectPlan implements the operation of the same name.
func (h *Handler) RejectPlan(ctx context.Context, by operation.Caller, in operations.TaskFeedback) (operations.TaskMove, error) {
	return h.decided(ctx, by, in.ID, func(id string) (work.Task, error) {
		return h.o.Plans.RejectPlan(ctx, id, by.Principal.String(), in.Feedback)
	})
}

// DeletePlan implements the operation of the same name.
func (h *Handler) DeletePlan(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskMove, error) {
	_, p, err := h.task(ctx, by, in.ID)
	if err == nil {
		err = h.mayApprove(ctx, by, p) // what waits for approval of the plan continues without it
	}
	if err != nil {
		return operations.TaskMove{}, err
	}
	return h.decided(ctx, by, in.ID, func(id string) (work.Task, error) { return h.o.Plans.DeletePlan(ctx, id, by.Principal.String()) })
}

func (h *Handler) decided(ctx context.Context, by operation.Caller, id string, decide func(id string) (work.Task, error)) (operations.TaskMove, error) {
	before, _, err := h.task(ctx, by, id)
	if err == nil {
		err = notWaiting(before)
	}
	if err != nil {
		return operations.TaskMove{}, err
	}
	after, err := decide(before.ID)
	if err != nil {
		return operations.TaskMove{}, explained(err)
	}
	return h.moved(ctx, before, after)
}

// unfinished refuses actions that would leave the steps of a task's plan without a parent.
func (h *Handler) unfinished(ctx context.Context, t work.Task, instead string) error {
	steps, err := h.steps(ctx, t)
	if err != nil {
		return err
	}
	var open []string
	for _, s := range steps {
		if s.State != work.Completed {
			open = append(open, s.ID)
		}
	}
	if len(open) == 0 {
		return nil
	}
	names := strings.Join(open[:min(len(open), 5)], ", ")
	if len(open) > 5 {
		names += " …"
	}
	return operation.Errorf(operation.Conflict, "%d step(s) of the plan of task %s are not completed (%s): %s", len(open), t.ID, names, instead)
}

// stopSteps stops the steps of a plan that have a worker or will get one again. The task
// itself must be stopped first, so that no further step begins.
func (h *Handler) stopSteps(ctx context.Context, by operation.Caller, parent work.Task) error {
	steps, err := h.steps(ctx, parent)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if _, err := work.Next(s.State, work.AdminStop); err == nil {
			if _, err := h.stop(ctx, by, s); err != nil {
				return fmt.Errorf("stop step %s: %w", s.ID, err)
			}
		}
	}
	return nil
}

// stop stops one task: its run, and then whatever is left of it.
func (h *Handler) stop(ctx context.Context, by operation.Caller, t work.Task) (work.Task, error) {
	if _, err := h.o.Abort(ctx, t.Thread, by.Principal.String()); err != nil {
		return t, err
	}
	return h.o.Tasks.Change(ctx, t.ID, func(t *work.Task, now time.Time) ([]work.Event, error) {
		if t.State == work.Blocked {
			return nil, nil // already done by the words that stopped its run
		}
		e, err := t.Take(work.AdminStop, by.Principal.String(), now)
		t.Why = "stopped by " + by.Principal.String()
		return []work.Event{e}, err
	})
}

// maxChains is how many chains are named, and how many tasks of each.
const maxChains = 50

// GetChainHealth implements the operation of the same name.
func (h *Handler) GetChainHealth(ctx context.Context, by operation.Caller, in operations.ChainQuery) (operations.ChainHealth, error) {
	out := operations.ChainHealth{Chains: []operations.StuckChain{}}
	var blocked []work.Task
	if in.Task != "" {
		t, _, err := h.task(ctx, by, in.Task)
		if err != nil {
			return out, err
		}
		steps, err := h.steps(ctx, t)
		if err != nil {
			return out, err
		}
		for _, s := range append([]work.Task{t}, steps...) { // a plan is stuck where its steps are
			if s.State == work.Blocked {
				blocked = append(blocked, s)
			}
		}
		if len(blocked) == 0 {
			out.Message = "Task is not blocked — no stuck chain."
			return out, nil
		}
	} else {
		visible, err := h.visible(ctx, by, in.Project)
		if err != nil {
			return out, err
		}
		all, err := h.o.Tasks.In(ctx, work.Blocked)
		if err != nil {
			return out, err
		}
		for _, t := range all {
			if slices.Contains(visible, t.Project) && (in.Project == "" || t.Project == in.Project) {
				blocked = append(blocked, t)
			}
		}
		out.ProjectID = in.Project
	}
	for _, t := range blocked {
		stuck, err := work.Stuck(t.ID, func(id string) ([]work.Task, error) { return h.o.Tasks.Dependents(ctx, id) })
		if err != nil {
			return out, err
		}
		if len(stuck) == 0 && in.Task == "" {
			continue
		}
		if out.Total++; len(out.Chains) < maxChains {
			out.Chains = append(out.Chains, operations.StuckChain{Blocked: brief(t), Stuck: briefs(stuck[:min(len(stuck), maxChains)]), Count: len(stuck)})
		}
	}
	return out, nil
}
