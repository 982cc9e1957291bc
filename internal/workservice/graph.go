package workservice

import (
	"context"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// maxGraph is how many tasks a drawing has: more cannot be read.
const maxGraph = 200

// GetTaskGraph carries out the operation of that name.
func (h *Handler) GetTaskGraph(ctx context.Context, by operation.Caller, in operations.ProjectRef) (operations.TaskGraph, error) {
	out := operations.TaskGraph{Tasks: []operations.TaskBrief{}, Needs: []operations.TaskWaits{}}
	p, err := h.project(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	out.ProjectID = p.ID
	there := map[string]bool{}
	for _, f := range []work.Filter{{}, {State: work.Blocked}, {State: work.Failed}, {State: work.Completed, Newest: true}} {
		f.Project, f.Limit = p.ID, maxGraph+1
		list, err := h.o.Tasks.List(ctx, f)
		if err != nil {
			return out, err
		}
		for _, t := range list {
			if out.More = out.More || len(out.Tasks) >= maxGraph; len(out.Tasks) < maxGraph {
				out.Tasks = append(out.Tasks, brief(t))
				there[t.ID] = true
			}
		}
	}
	edges, err := h.o.Tasks.Edges(ctx, p.ID)
	for _, e := range edges {
		if there[e.Task] && there[e.Needs] {
			out.Needs = append(out.Needs, operations.TaskWaits{ID: e.Task, Needs: e.Needs})
		}
	}
	return out, err
}
