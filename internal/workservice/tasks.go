package workservice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// How much of a diff is shown, in bytes, and how much where all of it was asked for.
const (
	maxDiff      = 200_000
	maxWholeDiff = 20_000_000
)

// ListTasks carries out the operation of that name.
func (h *Handler) ListTasks(ctx context.Context, by operation.Caller, in operations.TaskQuery) (operation.List[operations.Task], error) {
	out := operation.List[operations.Task]{Items: []operations.Task{}}
	visible, err := h.visible(ctx, by, in.Project)
	if err != nil {
		return out, err
	}
	limit := cmp.Or(in.Limit, 50)
	f := work.Filter{Project: in.Project, State: work.State(in.Status), All: in.All, After: in.Cursor, Limit: limit, Newest: in.Order == "newest"}
	for len(out.Items) < limit {
		page, err := h.o.Tasks.List(ctx, f)
		if errors.Is(err, journal.ErrUnknown) {
			return out, invalid("cursor", "the list has changed; begin again without a cursor")
		}
		if err != nil {
			return out, err
		}
		for _, t := range page {
			if f.After = t.ID; slices.Contains(visible, t.Project) && len(out.Items) < limit {
				out.Items = append(out.Items, show(t))
			}
			if len(out.Items) == limit {
				break
			}
		}
		if len(page) < limit {
			return h.named(ctx, out), nil
		}
	}
	out.Next = f.After
	return h.named(ctx, out), nil
}

// named adds what people call the owners of tasks.
func (h *Handler) named(ctx context.Context, list operation.List[operations.Task]) operation.List[operations.Task] {
	name := h.names(ctx)
	for i := range list.Items {
		nameTask(&list.Items[i], name)
	}
	return list
}

// nameTask says who owns a task, and who stopped, set or skipped it, as people call them: the store keeps their keys.
func nameTask(t *operations.Task, name func(principal string) string) {
	t.OwnerName = name(t.Owner)
	for _, did := range []string{"stopped by ", "set by ", "skipped by "} {
		if who, ok := strings.CutPrefix(t.Why, did); ok {
			t.Why = did + name(who)
		}
	}
}

// names gives what people call somebody, looking each of them up once.
func (h *Handler) names(ctx context.Context) func(principal string) string {
	known := map[string]string{}
	return func(principal string) string {
		if h.o.NameOf == nil || principal == "" {
			return principal
		}
		name, ok := known[principal]
		if !ok {
			name = h.o.NameOf(ctx, principal)
			known[principal] = name
		}
		return name
	}
}

func show(t work.Task) operations.Task {
	return operations.Task{ID: t.ID, ProjectID: t.Project, Title: t.Title, Description: t.Description, Status: string(t.State), Why: t.Why, Priority: t.Priority, Type: t.Type, Agent: t.Agent,
		Repo: t.Repo, Branch: t.Branch, PR: t.PR, Approval: t.Approval, Attempt: t.Attempt, Retries: t.Retries, MaxRetries: t.MaxRetries, NotBefore: t.NotBefore, ParentID: t.Parent,
		SessionID: t.Thread.Thread(), Owner: t.Owner.String(), CreatedAt: t.Created, MovedAt: t.Moved}
}

func brief(t work.Task) operations.TaskBrief {
	return operations.TaskBrief{ID: t.ID, Title: t.Title, Status: string(t.State)}
}

func briefs(list []work.Task) (out []operations.TaskBrief) {
	for _, t := range list {
		out = append(out, brief(t))
	}
	return out
}

// CreateTask carries out the operation of that name.
func (h *Handler) CreateTask(ctx context.Context, by operation.Caller, in operations.NewTask) (operations.Task, error) {
	p, err := h.project(ctx, by, in.Project)
	if err != nil {
		return operations.Task{}, err
	}
	t := work.Task{Project: p.ID, Title: strings.TrimSpace(in.Title), Description: cmp.Or(strings.TrimSpace(in.Description), strings.TrimSpace(in.Title)), Priority: cmp.Or(in.Priority, work.DefaultPriority),
		Repo: in.Repo, Approval: in.Approval, Type: in.Type, Agent: cmp.Or(in.Agent, h.o.Agent), MaxRetries: cmp.Or(in.MaxRetries, work.DefaultMaxRetries), Owner: by.Acting(), Origin: by.Session}
	if err := h.o.FindAgent(ctx, t.Agent); err != nil {
		return operations.Task{}, invalid("agent", "%s", err)
	}
	repos, err := h.o.Projects.Repos(ctx, p.ID)
	if err != nil {
		return operations.Task{}, err
	}
	if t.Repo == "" && h.o.RepoOf != nil {
		if own := h.o.RepoOf(ctx, t.Agent); slices.ContainsFunc(repos, func(r work.Repo) bool { return r.ID == own }) {
			t.Repo = own
		}
	}
	switch {
	case t.Repo == "" && len(repos) > 0:
		t.Repo = repos[0].ID
	case t.Repo != "" && !slices.ContainsFunc(repos, func(r work.Repo) bool { return r.ID == t.Repo }):
		return operations.Task{}, operation.Errorf(operation.NotFound, "Repo '%.64s' not found in project %s; `list_repos` shows those there are", t.Repo, p.ID)
	}
	for _, id := range in.Needs {
		if _, _, err := h.task(ctx, by, id); err != nil {
			return operations.Task{}, err
		}
	}
	n := work.NewTask{Task: t, Needs: in.Needs}
	if in.Key != "" {
		n.Key = by.Principal.String() + "/" + in.Key
	}
	made, err := h.o.Tasks.Create(ctx, n)
	if err != nil {
		return operations.Task{}, explained(err)
	}
	h.changed()
	out, err := h.whole(ctx, made)
	if in.Project == "" {
		out.Warning = h.otherProject(ctx, by, p.ID, in.Title+" "+in.Description)
	}
	return out, err
}

// otherProject warns where the project was not named and the text speaks of another one.
func (h *Handler) otherProject(ctx context.Context, by operation.Caller, id, text string) string {
	list, err := h.o.Projects.Projects(ctx)
	if err != nil {
		return ""
	}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" \t\n\"'`,;:()[]!?", r) })
	for _, p := range list {
		if p.ID != id && sees(by, p) && slices.Contains(words, p.ID) {
			return fmt.Sprintf("it went to the active project %s, but speaks of %s; if that was meant, delete it and create it with project_id %s", id, p.ID, p.ID)
		}
	}
	return ""
}

// explained says what the rules of the queue refuse, for people.
func explained(err error) error {
	var cycle *work.CycleError
	var illegal *work.IllegalError
	switch {
	case errors.As(err, &cycle):
		return operation.Errorf(operation.Conflict, "%s", cycle)
	case errors.As(err, &illegal):
		return operation.Errorf(operation.Conflict, "%s", illegal)
	case errors.Is(err, work.ErrMoved):
		return operation.Errorf(operation.Conflict, "the task has moved meanwhile; look at it again")
	}
	return err
}

// GetTask carries out the operation of that name.
func (h *Handler) GetTask(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.Task, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.Task{}, err
	}
	return h.whole(ctx, t)
}

// whole shows a task with those around it.
func (h *Handler) whole(ctx context.Context, t work.Task) (operations.Task, error) {
	out := show(t)
	nameTask(&out, h.names(ctx))
	needs, err := h.o.Tasks.Needs(ctx, t.ID)
	if err != nil {
		return out, err
	}
	blocks, err := h.o.Tasks.Dependents(ctx, t.ID)
	if err != nil {
		return out, err
	}
	subtasks, err := h.o.Tasks.List(ctx, work.Filter{Parent: t.ID, All: true, Limit: 100})
	out.Needs, out.Blocks, out.Subtasks = briefs(needs), briefs(blocks), briefs(subtasks)
	return out, err
}

// EditTask carries out the operation of that name.
func (h *Handler) EditTask(ctx context.Context, by operation.Caller, in operations.TaskChanges) (operations.Task, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.Task{}, err
	}
	t, err = h.o.Tasks.Change(ctx, t.ID, func(t *work.Task, now time.Time) ([]work.Event, error) {
		var fields []string
		set := func(name string) { fields = append(fields, name) }
		if in.Title != "" {
			t.Title = in.Title
			set("title")
		}
		if in.Description != "" {
			t.Description = in.Description
			set("description")
		}
		if in.Priority != nil {
			t.Priority = *in.Priority
			set("priority")
		}
		if in.Type != "" {
			t.Type = in.Type
			set("task_type")
		}
		if in.Approval != nil {
			t.Approval = *in.Approval
			set("requires_approval")
		}
		if in.MaxRetries != nil {
			t.MaxRetries = *in.MaxRetries
			set("max_retries")
		}
		if len(fields) == 0 {
			return nil, invalid("", "No fields to update. Provide title, description, or priority.")
		}
		return []work.Event{{At: now, Type: "task.edited", Project: t.Project, Task: t.ID, By: by.Principal.String(), Text: strings.Join(fields, ", ")}}, nil
	})
	if err != nil {
		return operations.Task{}, err
	}
	h.changed()
	return h.whole(ctx, t)
}

// moved says what a step made of a task and of those that wait for it.
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

// step lets a task take a step for somebody.
func (h *Handler) step(ctx context.Context, by operation.Caller, id string, may func(t work.Task) error, step work.Step, with func(*work.Task)) (before, after work.Task, err error) {
	if before, _, err = h.task(ctx, by, id); err != nil {
		return before, after, err
	}
	after, err = h.o.Tasks.Change(ctx, id, func(t *work.Task, now time.Time) ([]work.Event, error) {
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
	return before, after, explained(err)
}

// StopTask carries out the operation of that name: the words that stop the run move the task.
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

// RestartTask carries out the operation of that name.
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
		return h.moved(ctx, t, resumed) // the steps of its plan go on
	}
	before, after, err := h.step(ctx, by, in.ID, idle, work.AdminRestart, fresh)
	if err != nil {
		return operations.TaskMove{}, err
	}
	return h.moved(ctx, before, after)
}

// idle refuses what a worker holds.
func idle(t work.Task) error {
	if t.State == work.InProgress || t.State == work.Assigned || t.Run != "" {
		return operation.Errorf(operation.Conflict, "Task is currently in progress. Stop it first.")
	}
	return nil
}

// fresh gives a task all its tries.
func fresh(t *work.Task) { t.Retries, t.NotBefore, t.Why = 0, time.Time{}, "" }

// ReopenTask carries out the operation of that name.
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
	if err := h.unfinished(ctx, t, "reopen one of those, or restart the task to let its plan go on"); err != nil {
		return operations.TaskMove{}, err
	}
	before, after, err := h.step(ctx, by, in.ID, idle, work.AdminRestart, func(t *work.Task) {
		fresh(t)
		t.Description += "\n\n---\n**QA Feedback:**\n" + in.Feedback
	})
	if err != nil {
		return operations.TaskMove{}, err
	}
	return h.moved(ctx, before, after)
}

// DeleteTask carries out the operation of that name.
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

// ApproveTask carries out the operation of that name: the yes orders the merge, and COMPLETED comes with it.
// Where a plan waits, the plan is meant.
func (h *Handler) ApproveTask(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskMove, error) {
	if err := notWorker(by); err != nil {
		return operations.TaskMove{}, err
	}
	if t, _, err := h.task(ctx, by, in.ID); err == nil && t.State == work.AwaitingPlanApproval {
		plan, err := h.ApprovePlan(ctx, by, in)
		return operations.TaskMove{ID: plan.ID, Title: plan.Title, Status: plan.Status, PreviousStatus: string(t.State)}, err
	}
	before, after, err := h.step(ctx, by, in.ID, func(t work.Task) error {
		if t.State != work.AwaitingApproval {
			return operation.Errorf(operation.Conflict, "Task is not awaiting approval (status: %s)", t.State)
		}
		return nil
	}, work.Approved, func(t *work.Task) { t.Why = "" })
	if err != nil {
		return operations.TaskMove{}, err
	}
	return h.moved(ctx, before, after)
}

// SkipTask carries out the operation of that name.
func (h *Handler) SkipTask(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskMove, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err == nil {
		err = h.unfinished(ctx, t, "skip or delete those; the task goes on when none is left")
	}
	if err != nil {
		return operations.TaskMove{}, err
	}
	waiting, err := h.o.Tasks.Dependents(ctx, in.ID)
	if err != nil {
		return operations.TaskMove{}, err
	}
	before, after, err := h.step(ctx, by, in.ID, func(t work.Task) error {
		if t.State != work.Blocked && t.State != work.Failed {
			return operation.Errorf(operation.Conflict, "Task is not BLOCKED or FAILED (status: %s). Only blocked/failed tasks can be skipped.", t.State)
		}
		return nil
	}, work.AdminSkip, func(t *work.Task) { t.Why = "skipped by " + by.Principal.String() })
	if err != nil {
		return operations.TaskMove{}, err
	}
	out, err := h.moved(ctx, before, after)
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

// SetTaskStatus carries out the operation of that name.
func (h *Handler) SetTaskStatus(ctx context.Context, by operation.Caller, in operations.TaskStatusChange) (operations.TaskMove, error) {
	before, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.TaskMove{}, err
	}
	after, err := h.o.Tasks.Change(ctx, in.ID, func(t *work.Task, now time.Time) ([]work.Event, error) {
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
	return out, err
}

// GetTaskResult carries out the operation of that name.
func (h *Handler) GetTaskResult(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskResult, error) {
	if _, _, err := h.task(ctx, by, in.ID); err != nil {
		return operations.TaskResult{}, err
	}
	results, err := h.o.Tasks.Results(ctx, in.ID)
	if err != nil {
		return operations.TaskResult{}, err
	}
	if len(results) == 0 {
		return operations.TaskResult{}, operation.Errorf(operation.NotFound, "No results found for task '%s'", in.ID)
	}
	out := showResult(results[0])
	out.Attempts = len(results)
	for _, r := range results[1:] {
		out.Before = append(out.Before, showResult(r))
	}
	return out, nil
}

func showResult(r work.Result) operations.TaskResult {
	return operations.TaskResult{ID: r.Task, Attempt: r.Attempt, Agent: r.Agent, Result: string(r.Outcome), Summary: r.Summary, Files: append([]string{}, r.Files...), Error: r.Error, Tokens: r.Tokens,
		CostUSD: float64(r.Cost) / 1e9, At: r.At}
}

// GetTaskDiff carries out the operation of that name.
func (h *Handler) GetTaskDiff(ctx context.Context, by operation.Caller, in operations.TaskDiffQuery) (operations.TaskDiff, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.TaskDiff{}, err
	}
	if t.Branch == "" {
		return operations.TaskDiff{}, operation.Errorf(operation.Conflict, "Task has no branch name: nobody worked on it in a repository yet")
	}
	limit := maxDiff
	if in.Whole {
		limit = maxWholeDiff
	}
	d, err := h.o.Git.Diff(ctx, t, limit)
	if err != nil {
		return operations.TaskDiff{}, operation.Errorf(operation.Conflict, "the difference cannot be shown: %s", err)
	}
	text := cmp.Or(d.Text, "(no changes)")
	if d.Truncated {
		text += "\n… the difference is longer than this"
	}
	return operations.TaskDiff{ID: t.ID, Branch: t.Branch, Base: d.Base, Files: append([]string{}, d.Files...), Diff: text, Truncated: d.Truncated}, nil
}

// maxTree bounds a drawing.
const maxTree = 200

// GetTaskTree carries out the operation of that name.
func (h *Handler) GetTaskTree(ctx context.Context, by operation.Caller, in operations.TaskRef) (operation.List[operations.TaskNode], error) {
	out := operation.List[operations.TaskNode]{Items: []operations.TaskNode{}}
	root, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	seen := map[string]bool{}
	var draw func(t work.Task, depth int, lead, mark string) error
	draw = func(t work.Task, depth int, lead, mark string) error {
		line := lead + mark + t.ID
		if seen[t.ID] {
			line += " (above)"
		}
		out.Items = append(out.Items, operations.TaskNode{Depth: depth, ID: t.ID, Title: t.Title, Status: string(t.State), Line: line})
		if seen[t.ID] || len(out.Items) >= maxTree {
			return nil
		}
		seen[t.ID] = true
		below, err := h.o.Tasks.List(ctx, work.Filter{Parent: t.ID, All: true, Limit: maxTree})
		if err != nil {
			return err
		}
		after, err := h.o.Tasks.Dependents(ctx, t.ID)
		if err != nil {
			return err
		}
		for _, d := range after {
			if !slices.ContainsFunc(below, func(b work.Task) bool { return b.ID == d.ID }) && (d.Parent == "" || d.Parent != t.Parent) {
				below = append(below, d)
			}
		}
		switch mark {
		case "├─ ":
			lead += "│  "
		case "└─ ":
			lead += "   "
		}
		for i, b := range below {
			next := "├─ "
			if i == len(below)-1 {
				next = "└─ "
			}
			if err := draw(b, depth+1, lead, next); err != nil {
				return err
			}
		}
		return nil
	}
	return out, draw(root, 0, "", "")
}

// GetAgentError carries out the operation of that name.
func (h *Handler) GetAgentError(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.TaskError, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.TaskError{}, err
	}
	out := operations.TaskError{ID: t.ID, Title: t.Title, Status: string(t.State), Retries: fmt.Sprintf("%d / %d", t.Retries, t.MaxRetries)}
	results, err := h.o.Tasks.Results(ctx, t.ID)
	if err != nil || len(results) == 0 {
		out.Message = "No result recorded yet for this task"
		return out, err
	}
	r := results[0]
	out.Result, out.Summary = string(r.Outcome), clip(r.Summary, 1000)
	if r.Outcome == work.OutcomeCompleted && t.Why == "" {
		out.Message = "The last attempt did not fail"
		return out, nil
	}
	out.Type, out.Error, out.Fix = r.Kind.Title(), clip(cmp.Or(r.Error, t.Why), 2000), r.Kind.Fix()
	return out, nil
}

func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// AddDependency carries out the operation of that name.
func (h *Handler) AddDependency(ctx context.Context, by operation.Caller, in operations.TaskDependency) (operations.TaskWaits, error) {
	t, _, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.TaskWaits(in), err
	}
	if _, _, err := h.task(ctx, by, in.Needs); err != nil {
		return operations.TaskWaits(in), err
	}
	if t.State != work.Defined && t.State != work.Ready {
		return operations.TaskWaits(in), operation.Errorf(operation.Conflict, "task %s is %s: only one that has not begun can wait for another", t.ID, t.State)
	}
	return operations.TaskWaits(in), explained(h.o.Tasks.Depend(ctx, in.ID, in.Needs, by.Principal.String()))
}

// RemoveDependency carries out the operation of that name.
func (h *Handler) RemoveDependency(ctx context.Context, by operation.Caller, in operations.TaskDependency) (operations.TaskWaits, error) {
	if _, _, err := h.task(ctx, by, in.ID); err != nil {
		return operations.TaskWaits(in), err
	}
	there, err := h.o.Tasks.Undepend(ctx, in.ID, in.Needs, by.Principal.String())
	if err == nil && !there {
		return operations.TaskWaits(in), operation.Errorf(operation.NotFound, "task %s does not wait for %s", in.ID, in.Needs)
	}
	h.changed()
	return operations.TaskWaits(in), err
}
