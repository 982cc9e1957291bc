package workservice

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// ListWorkers implements the operation of the same name. It names only tasks that the caller may see.
func (h *Handler) ListWorkers(ctx context.Context, by operation.Caller, in operations.WorkerQuery) (operation.List[operations.Worker], error) {
	out := operation.List[operations.Worker]{Items: []operations.Worker{}}
	visible, err := h.visible(ctx, by, "")
	if err != nil {
		return out, err
	}
	live, err := h.o.Members()
	if err != nil {
		return out, err
	}
	at := map[string]int{}
	for _, w := range live {
		at[w.Name] = len(out.Items)
		state := "idle"
		if w.Draining {
			state = "draining"
		}
		out.Items = append(out.Items, operations.Worker{Name: w.Name, State: state, Host: w.Host, PID: w.PID, Slots: w.Slots, Projects: w.Projects, Agents: w.Agents,
			Since: w.Since, HeartbeatAt: w.Heartbeat, Tasks: []operations.WorkerTask{}})
	}
	held, err := h.o.Tasks.Held(ctx)
	if err != nil {
		return out, err
	}
	for _, t := range held {
		i, ok := at[t.Worker]
		if !ok {
			if t.Worker == "" {
				continue // from an earlier version; the next worker takes it
			}
			i, at[t.Worker] = len(out.Items), len(out.Items)
			out.Items = append(out.Items, operations.Worker{Name: t.Worker, State: "gone", Tasks: []operations.WorkerTask{}})
		}
		w := &out.Items[i]
		if t.State != work.WaitingInput {
			w.Busy++
			if w.State == "idle" {
				w.State = "working"
			}
		}
		if slices.Contains(visible, t.Project) {
			w.Tasks = append(w.Tasks, operations.WorkerTask{ID: t.ID, Title: t.Title, Project: t.Project, Status: string(t.State), Agent: t.Agent, Attempt: t.Attempt, Since: t.Moved})
		}
	}
	for i := range out.Items {
		out.Items[i].WorksOn = worksOn(out.Items[i].Tasks)
	}
	return operation.PageByKey(out.Items, func(w operations.Worker) string { return w.Name }, in.Cursor, in.Most()), nil
}

// worksOn describes in one line what a worker is working on.
func worksOn(list []operations.WorkerTask) string {
	var words []string
	for _, t := range list {
		words = append(words, fmt.Sprintf("%s (%s)", t.ID, t.Title))
	}
	return strings.Join(words, ", ")
}

// slots returns how many tasks all workers together can work on at once.
func (h *Handler) slots() (n int, err error) {
	live, err := h.o.Members()
	for _, w := range live {
		n += w.Slots
	}
	return n, err
}
