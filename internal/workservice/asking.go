package workservice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// mayApprove refuses the approval of a result by anybody but a person
// and, if the project has approvers, one of those.
func (h *Handler) mayApprove(ctx context.Context, by operation.Caller, p work.Project) error {
	if err := notWorker(by); err != nil {
		return err
	}
	if p.MayApprove(by.Principal) {
		return nil
	}
	return operation.Errorf(operation.Forbidden, "only %s may approve tasks of project %s; ask one of them, or have its owner change the list: chorus project edit %s --approvers …",
		strings.Join(h.approverNames(ctx, p), ", "), p.ID, p.ID)
}

// approverNames returns the approvers of a project, as people call them.
func (h *Handler) approverNames(ctx context.Context, p work.Project) (out []string) {
	name := h.names(ctx)
	for _, a := range p.Approvers {
		switch kind, _, keyed := strings.Cut(a, ":"); {
		case a == "owner":
			a = "its owner " + name(p.Owner.String())
		case a == "local":
			a = "whoever runs this Chorus"
		case keyed && kind != "role":
			a = name(a)
		}
		out = append(out, a)
	}
	return out
}

// Asking returns the tasks that wait for approval, of projects that the caller sees, as
// approvals, oldest first. after is the cursor of the last one of the previous page; next
// is the cursor for the next page, if there are more.
func (h *Handler) Asking(ctx context.Context, by operation.Caller, after string, limit int) (list []operations.Approval, next string, err error) {
	var waiting []work.Task
	projects := map[string]work.Project{}
	all, err := h.o.Projects.Projects(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, p := range all {
		if sees(by, p) {
			projects[p.ID] = p
		}
	}
	for _, state := range work.States() {
		if !state.AsksForYes() {
			continue
		}
		in, err := h.o.Tasks.In(ctx, state)
		if err != nil {
			return nil, "", err
		}
		for _, t := range in {
			if _, seen := projects[t.Project]; seen {
				waiting = append(waiting, t)
			}
		}
	}
	slices.SortFunc(waiting, func(a, b work.Task) int { return cmp.Or(a.Moved.Compare(b.Moved), strings.Compare(a.ID, b.ID)) })
	since, last, err := parseAskedAt(after)
	if err != nil {
		return nil, "", err
	}
	for _, t := range waiting {
		if after != "" && cmp.Or(t.Moved.Compare(since), strings.Compare(t.ID, last)) <= 0 {
			continue
		}
		if len(list) == limit {
			return list, cmp.Or(next, after), nil
		}
		list, next = append(list, h.approval(ctx, by, t, projects[t.Project])), askedAt(t)
	}
	return list, "", nil
}

// askedAt returns the cursor of a waiting task.
func askedAt(t work.Task) string { return fmt.Sprintf("%d.%s", t.Moved.UnixMicro(), t.ID) }

func parseAskedAt(cursor string) (time.Time, string, error) {
	if cursor == "" {
		return time.Time{}, "", nil
	}
	micros, id, _ := strings.Cut(cursor, ".")
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return time.Time{}, "", operation.InvalidField("cursor", "this is not a valid cursor; start again without one")
	}
	return time.UnixMicro(n), id, nil
}

// TaskApproval returns what a task waits for, as an approval. If it does
// not wait for approval, the error is a conflict.
func (h *Handler) TaskApproval(ctx context.Context, by operation.Caller, id string) (operations.Approval, error) {
	t, p, err := h.task(ctx, by, id)
	if err != nil {
		return operations.Approval{}, err
	}
	if !t.State.AsksForYes() {
		return operations.Approval{}, operation.Errorf(operation.Conflict, "task %s does not wait for approval (status: %s)", t.ID, t.State)
	}
	return h.approval(ctx, by, t, p), nil
}

func (h *Handler) approval(ctx context.Context, by operation.Caller, t work.Task, p work.Project) operations.Approval {
	owner := h.names(ctx)(t.Owner.String())
	out := operations.Approval{ID: t.ID, Kind: operations.AsksResult, Task: t.ID, Project: t.Project, Session: t.Thread.Thread(), Thread: string(t.Thread), Agent: t.Agent,
		Tool: "task " + t.ID, Label: fmt.Sprintf("merge what task %s (%s) changed", t.ID, t.Title), Reason: t.Why, ArgsJSON: "{}", AskedBy: t.Owner.String(), AskedByName: owner, Payer: t.Owner.String(), PayerName: owner, AskedAt: t.Moved,
		Who: "whoever sees project " + t.Project, State: "pending", MayAnswer: by.May(operation.Chat) && h.mayApprove(ctx, by, p) == nil,
		Answer: "yes merges it; no, with a note, returns it to its worker"}
	switch {
	case t.State == work.AwaitingPlanApproval:
		out.Kind, out.Label, out.Answer = operations.AsksPlan, fmt.Sprintf("carry out the plan of task %s (%s)", t.ID, t.Title), "yes turns its steps into tasks; no, with a note, asks for a new plan"
	case t.PR != "":
		out.Kind, out.Preview = operations.AsksPull, t.PR
	case t.Repo == "":
		out.Label, out.Answer = fmt.Sprintf("accept the result of task %s (%s)", t.ID, t.Title), "yes completes it; no, with a note, returns it to its worker"
	}
	out.Actions = []string{out.Label}
	if len(p.Approvers) > 0 {
		out.Who = strings.Join(h.approverNames(ctx, p), ", ")
	}
	return out
}
