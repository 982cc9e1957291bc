package workservice

import (
	"cmp"
	"context"
	"slices"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// maxGraph is the default maximum of tasks in a drawing; more would be hard to read.
const maxGraph = 200

// GetTaskGraph implements the operation of the same name.
func (h *Handler) GetTaskGraph(ctx context.Context, by operation.Caller, in operations.TaskGraphQuery) (operations.TaskGraph, error) {
	out := operations.TaskGraph{Tasks: []operations.TaskBrief{}, Needs: []operations.TaskWaits{}}
	p, err := h.project(ctx, by, in.ID)
	if err != nil {
		return out, err
	}
	out.ProjectID = p.ID
	edges, err := h.o.Tasks.Edges(ctx, p.ID)
	if err != nil {
		return out, err
	}
	limit := cmp.Or(in.Limit, maxGraph)
	var tasks []work.Task
	if in.Around != "" {
		tasks, out.Hidden, err = h.neighbours(ctx, by, p.ID, in, edges, limit)
	} else {
		tasks, out.Hidden, err = h.drawable(ctx, p.ID, in.Open, limit)
	}
	if err != nil {
		return out, err
	}
	out.More = out.Hidden > 0
	there := map[string]bool{}
	for _, t := range tasks {
		out.Tasks, there[t.ID] = append(out.Tasks, brief(t)), true
	}
	return out, h.connect(ctx, &out, edges, there)
}

// connect adds the edges between the tasks of a graph, and counts their other dependencies.
// Those are completed; otherwise they would be shown before the task.
func (h *Handler) connect(ctx context.Context, out *operations.TaskGraph, edges []work.Edge, there map[string]bool) error {
	done := map[string]bool{}
	for _, e := range edges {
		switch {
		case !there[e.Task]:
		case there[e.Needs]:
			out.Needs = append(out.Needs, operations.TaskWaits{ID: e.Task, Needs: e.Needs})
		default:
			over, known := done[e.Needs]
			if !known {
				t, err := h.o.Tasks.Task(ctx, e.Needs)
				if err != nil {
					return err
				}
				over = t.State == work.Completed
				done[e.Needs] = over
			}
			if over {
				if out.Done == nil {
					out.Done = map[string]int{}
				}
				out.Done[e.Task]++
			}
		}
	}
	return nil
}

// drawable returns the tasks of a project to draw: first open ones, then blocked
// and failed ones, and the completed ones if all of them fit.
func (h *Handler) drawable(ctx context.Context, project string, open bool, limit int) (tasks []work.Task, hidden int, err error) {
	counts, err := h.o.Tasks.Count(ctx, project)
	if err != nil {
		return nil, 0, err
	}
	total := 0
	for state, n := range counts {
		if state != work.Completed || !open {
			total += n
		}
	}
	filters := []work.Filter{{}, {State: work.Blocked}, {State: work.Failed}}
	if !open && total <= limit {
		filters = append(filters, work.Filter{State: work.Completed, Newest: true})
	}
	for _, f := range filters {
		f.Project = project
		for len(tasks) < limit {
			f.Limit = min(limit-len(tasks), 200)
			list, err := h.o.Tasks.List(ctx, f)
			if err != nil {
				return nil, 0, err
			}
			tasks = append(tasks, list...)
			if len(list) < f.Limit {
				break
			}
			f.After = list[len(list)-1].ID
		}
	}
	return tasks, max(0, total-len(tasks)), nil
}

// neighbours returns a task, what it needs and what needs it, directly or indirectly, nearest first.
func (h *Handler) neighbours(ctx context.Context, by operation.Caller, project string, in operations.TaskGraphQuery, edges []work.Edge, limit int) (tasks []work.Task, hidden int, err error) {
	root, of, err := h.task(ctx, by, in.Around)
	if err != nil {
		return nil, 0, err
	}
	if of.ID != project {
		return nil, 0, operation.Errorf(operation.NotFound, "task %s belongs to project %s", root.ID, of.ID)
	}
	before, after := map[string][]string{}, map[string][]string{}
	for _, e := range edges {
		before[e.Task], after[e.Needs] = append(before[e.Task], e.Needs), append(after[e.Needs], e.Task)
	}
	far := map[string]int{root.ID: 0}
	order := []string{root.ID}
	for _, way := range []map[string][]string{before, after} {
		reached := []string{root.ID}
		for i := 0; i < len(reached); i++ {
			for _, id := range way[reached[i]] {
				if _, known := far[id]; !known {
					far[id] = far[reached[i]] + 1
					reached, order = append(reached, id), append(order, id)
				}
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(far[a], far[b]) })
	for _, id := range order {
		if len(tasks) == limit {
			hidden++
			continue
		}
		t, err := h.o.Tasks.Task(ctx, id)
		if err != nil {
			return nil, 0, err
		}
		if t.Project == project && (!in.Open || t.State != work.Completed || id == root.ID) {
			tasks = append(tasks, t)
		}
	}
	return tasks, hidden, nil
}
