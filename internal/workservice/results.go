package workservice

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/text"
	"chorus/internal/work"
)

// How much of a diff is shown, in bytes, by default and if all of it was requested.
const (
	maxDiff      = 200_000
	maxWholeDiff = 20_000_000
)

// GetTaskResult implements the operation of the same name.
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

// GetTaskDiff implements the operation of the same name.
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

// maxTree limits the number of tasks in a drawing.
const maxTree = 200

// GetTaskTree implements the operation of the same name.
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

// GetAgentError implements the operation of the same name.
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
	out.Result, out.Summary = string(r.Outcome), text.Clip(r.Summary, 1000)
	if r.Outcome == work.OutcomeCompleted && t.Why == "" {
		out.Message = "The last attempt did not fail"
		return out, nil
	}
	out.Type, out.Error, out.Fix = r.Kind.Title(), text.Clip(cmp.Or(r.Error, t.Why), 2000), r.Kind.Fix()
	return out, nil
}
