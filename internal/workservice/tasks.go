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

// ListTasks implements the operation of the same name.
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
			return out, operation.ChangedList()
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

// named adds the names of the tasks' owners.
func (h *Handler) named(ctx context.Context, list operation.List[operations.Task]) operation.List[operations.Task] {
	name := h.names(ctx)
	for i := range list.Items {
		nameTask(&list.Items[i], name)
	}
	return list
}

// nameTask replaces the keys of a task's owner, and of whoever stopped, set or skipped it, with names.
func nameTask(t *operations.Task, name func(principal string) string) {
	t.OwnerName = name(t.Owner)
	for _, did := range []string{"stopped by ", "set by ", "skipped by "} {
		if who, ok := strings.CutPrefix(t.Why, did); ok {
			t.Why = did + name(who)
		}
	}
}

// names returns a function that gives people's names and looks each up once.
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
		SessionID: t.Thread.Thread(), Resolves: t.Resolves, Owner: t.Owner.String(), CreatedAt: t.Created, MovedAt: t.Moved}
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

// CreateTask implements the operation of the same name.
func (h *Handler) CreateTask(ctx context.Context, by operation.Caller, in operations.NewTask) (operations.Task, error) {
	p, err := h.project(ctx, by, in.Project)
	if err != nil {
		return operations.Task{}, err
	}
	t := work.Task{Project: p.ID, Title: strings.TrimSpace(in.Title), Description: cmp.Or(strings.TrimSpace(in.Description), strings.TrimSpace(in.Title)), Priority: cmp.Or(in.Priority, work.DefaultPriority),
		Repo: in.Repo, Approval: in.Approval, Type: in.Type, Agent: cmp.Or(in.Agent, h.o.Agent), MaxRetries: work.DefaultMaxRetries, Owner: by.Acting(), Origin: by.Session}
	if in.MaxRetries != nil {
		t.MaxRetries = *in.MaxRetries
	}
	if err := h.o.FindAgent(ctx, t.Agent); err != nil {
		return operations.Task{}, operation.InvalidField("agent", "%s", err)
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
	out, err := h.whole(ctx, made, p)
	if in.Project == "" {
		out.Warning = h.otherProject(ctx, by, p.ID, in.Title+" "+in.Description)
	}
	return out, err
}

// otherProject warns if no project was named and the text mentions a different one.
func (h *Handler) otherProject(ctx context.Context, by operation.Caller, id, text string) string {
	list, err := h.o.Projects.Projects(ctx)
	if err != nil {
		return ""
	}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" \t\n\"'`,;:()[]!?", r) })
	for _, p := range list {
		if p.ID != id && sees(by, p) && slices.Contains(words, p.ID) {
			return fmt.Sprintf("it went to the active project %s, but speaks of %s; if you meant that one, delete it and create it with project_id %s", id, p.ID, p.ID)
		}
	}
	return ""
}

// explained explains for people what the rules of the queue refuse.
func explained(err error) error {
	var cycle *work.CycleError
	var illegal *work.IllegalError
	switch {
	case errors.As(err, &cycle):
		return operation.Errorf(operation.Conflict, "%s", cycle)
	case errors.As(err, &illegal):
		return operation.Errorf(operation.Conflict, "%s", illegal)
	case errors.Is(err, work.ErrMoved):
		return operation.Errorf(operation.Conflict, "the task has changed meanwhile; check it again")
	}
	return err
}

// GetTask implements the operation of the same name.
func (h *Handler) GetTask(ctx context.Context, by operation.Caller, in operations.TaskRef) (operations.Task, error) {
	t, p, err := h.task(ctx, by, in.ID)
	if err != nil {
		return operations.Task{}, err
	}
	return h.whole(ctx, t, p)
}

// sayWaits adds which node a task waits for, if it could otherwise continue.
func (h *Handler) sayWaits(ctx context.Context, t work.Task, out *operations.Task) error {
	if h.o.WaitsForNode == nil || t.State.Over() || out.Why != "" {
		return nil
	}
	node, err := h.o.WaitsForNode(ctx, t.Project)
	if err == nil && node != "" {
		out.Why = "it waits for node " + node + ", which has the files of its project"
	}
	return err
}

// whole returns a task with its related tasks.
func (h *Handler) whole(ctx context.Context, t work.Task, p work.Project) (operations.Task, error) {
	out := show(t)
	if err := h.sayWaits(ctx, t, &out); err != nil {
		return out, err
	}
	nameTask(&out, h.names(ctx))
	out.Approvers = h.approverNames(ctx, p)
	needs, err := h.o.Tasks.Needs(ctx, t.ID)
	if err != nil {
		return out, err
	}
	blocks, err := h.o.Tasks.Dependents(ctx, t.ID)
	if err != nil {
		return out, err
	}
	resolver, err := h.o.Tasks.List(ctx, work.Filter{Resolves: t.ID, All: true, Newest: true, Limit: 1})
	if err != nil {
		return out, err
	}
	if len(resolver) > 0 {
		out.ResolvedBy = resolver[0].ID
	}
	subtasks, err := h.o.Tasks.List(ctx, work.Filter{Parent: t.ID, All: true, Limit: 100})
	out.Needs, out.Blocks, out.Subtasks = briefs(needs), briefs(blocks), briefs(subtasks)
	return out, err
}

// EditTask implements the operation of the same name.
func (h *Handler) EditTask(ctx context.Context, by operation.Caller, in operations.TaskChanges) (operations.Task, error) {
	t, p, err := h.task(ctx, by, in.ID)
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
			if t.Approval && !*in.Approval {
				if err := h.mayApprove(ctx, by, p); err != nil { // nobody would be asked any more
					return nil, err
				}
			}
			t.Approval = *in.Approval
			set("requires_approval")
		}
		if in.MaxRetries != nil {
			t.MaxRetries = *in.MaxRetries
			set("max_retries")
		}
		if len(fields) == 0 {
			return nil, operation.InvalidField("", "No fields to update. Provide title, description, or priority.")
		}
		return []work.Event{{At: now, Type: "task.edited", Project: t.Project, Task: t.ID, By: by.Principal.String(), Text: strings.Join(fields, ", ")}}, nil
	})
	if err != nil {
		return operations.Task{}, err
	}
	h.changed()
	return h.whole(ctx, t, p)
}

// AddDependency implements the operation of the same name.
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

// RemoveDependency implements the operation of the same name.
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
