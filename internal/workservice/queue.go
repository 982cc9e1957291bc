package workservice

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// shownTasks is how many tasks of each kind an overview shows.
const shownTasks = 20

// GetWorkStatus implements the operation of the same name.
func (h *Handler) GetWorkStatus(ctx context.Context, by operation.Caller, _ operation.None) (operations.WorkStatus, error) {
	out := operations.WorkStatus{ByStatus: map[string]int{}, InProgress: []operations.Task{}, Ready: []operations.Task{}, Attention: []operations.Task{}}
	visible, err := h.visible(ctx, by, "")
	if err != nil {
		return out, err
	}
	held, err := h.heldProjects(ctx)
	if err != nil {
		return out, err
	}
	out.Projects = len(visible)
	for _, id := range visible {
		counts, err := h.o.Tasks.Count(ctx, id)
		if err != nil {
			return out, err
		}
		for state, n := range counts {
			out.ByStatus[string(state)] += n
			out.Total += n
		}
	}
	if out.Workers, err = h.slots(); err != nil {
		return out, err
	}
	if out.Running, err = h.o.Tasks.Running(ctx); err != nil {
		return out, err
	}
	if out.Paused, err = h.Paused(ctx); err != nil {
		return out, err
	}
	for _, look := range []struct {
		into   *[]operations.Task
		states []work.State
	}{
		{&out.InProgress, []work.State{work.InProgress, work.Assigned, work.Verifying}},
		{&out.Ready, []work.State{work.Ready}},
		{&out.Attention, []work.State{work.WaitingInput, work.AwaitingPlanApproval, work.AwaitingApproval, work.Blocked, work.Failed}},
	} {
		for _, state := range look.states {
			if *look.into, err = h.glance(ctx, *look.into, state, visible); err != nil {
				return out, err
			}
		}
	}
	// Tasks that will not begin soon come last, with the reason.
	for i, t := range out.Ready {
		if held[t.ProjectID] {
			out.Ready[i].Why = "its project is paused"
		}
	}
	slices.SortStableFunc(out.Ready, func(a, b operations.Task) int {
		switch {
		case held[a.ProjectID] == held[b.ProjectID]:
			return 0
		case held[a.ProjectID]:
			return 1
		}
		return -1
	})
	return out, nil
}

// glance adds the first tasks in a state that a caller sees. Other people's
// tasks must not hide them, however many there are.
func (h *Handler) glance(ctx context.Context, into []operations.Task, state work.State, visible []string) ([]operations.Task, error) {
	for after := ""; len(into) < shownTasks; {
		list, err := h.o.Tasks.List(ctx, work.Filter{State: state, After: after, Limit: 200})
		if err != nil {
			return into, err
		}
		for _, t := range list {
			if len(into) < shownTasks && slices.Contains(visible, t.Project) {
				shown := show(t)
				shown.Description = ""
				into = append(into, shown)
			}
		}
		if len(list) < 200 {
			break
		}
		after = list[len(list)-1].ID
	}
	return into, nil
}

// heldProjects returns the projects whose tasks do not begin.
func (h *Handler) heldProjects(ctx context.Context) (map[string]bool, error) {
	list, err := h.o.Projects.Projects(ctx)
	out := map[string]bool{}
	for _, p := range list {
		out[p.ID] = p.State == work.ProjectPaused
	}
	return out, err
}

// Busy returns the tasks that agents are working on, by agent. Tasks of projects
// that the caller does not see have no id and no title.
func (h *Handler) Busy(ctx context.Context, by operation.Caller) (map[string][]operations.TaskBrief, error) {
	visible, err := h.visible(ctx, by, "")
	if err != nil {
		return nil, err
	}
	out := map[string][]operations.TaskBrief{}
	for _, state := range []work.State{work.InProgress, work.Assigned} {
		list, err := h.o.Tasks.In(ctx, state)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			one := operations.TaskBrief{Status: string(t.State)}
			if slices.Contains(visible, t.Project) {
				one = brief(t)
			}
			out[t.Agent] = append(out[t.Agent], one)
		}
	}
	return out, nil
}

// FindRepo checks that a repository exists for the caller, and returns its id.
func (h *Handler) FindRepo(ctx context.Context, by operation.Caller, id string) (string, error) {
	_, repos, err := h.place(ctx, by, "", id)
	if err != nil {
		return "", err
	}
	return repos[0].ID, nil
}

// GetRecentEvents implements the operation of the same name.
func (h *Handler) GetRecentEvents(ctx context.Context, by operation.Caller, in operations.WorkEventQuery) (operation.List[operations.WorkEvent], error) {
	out := operation.List[operations.WorkEvent]{Items: []operations.WorkEvent{}}
	f := work.EventFilter{Project: in.Project, Task: in.Task, Limit: cmp.Or(in.Limit, 10)}
	if in.Cursor != "" {
		before, err := strconv.ParseInt(in.Cursor, 10, 64)
		if err != nil || before <= 0 {
			return out, operation.BadCursor()
		}
		f.Before = before
	}
	if in.Task != "" {
		if _, _, err := h.task(ctx, by, in.Task); err != nil {
			return out, err
		}
	}
	visible, err := h.visible(ctx, by, in.Project)
	if err != nil {
		return out, err
	}
	name := h.names(ctx)
	for len(out.Items) < f.Limit {
		page, err := h.o.Projects.Events(ctx, f)
		if err != nil {
			return out, err
		}
		for _, e := range page {
			f.Before = e.ID
			if !by.May(operation.Admin) && !slices.Contains(visible, e.Project) {
				continue
			}
			out.Items = append(out.Items, shownEvent(e, name))
			if len(out.Items) == f.Limit {
				out.Next = strconv.FormatInt(e.ID, 10)
				return out, nil
			}
		}
		if len(page) < f.Limit {
			break
		}
	}
	return out, nil
}

func shownEvent(e work.Event, name func(string) string) operations.WorkEvent {
	return operations.WorkEvent{ID: e.ID, Type: e.Type, ProjectID: e.Project, TaskID: e.Task, By: e.By, ByName: name(e.By), From: string(e.From), To: string(e.To), Text: e.Text, At: e.At}
}

// maxUsageLines is how many tasks, agents or projects are listed with their usage, largest first.
const maxUsageLines = 200

// GetTokenUsage implements the operation of the same name.
func (h *Handler) GetTokenUsage(ctx context.Context, by operation.Caller, in operations.TokenUsageQuery) (operations.TokenUsage, error) {
	out := operations.TokenUsage{Breakdown: []operations.TokenUsageLine{}}
	var spent []work.Spent
	var err error
	switch {
	case in.By == "day" && in.Project == "":
		return out, operation.InvalidField("projectId", "days are shown of one project: name it")
	case in.Task != "":
		out.TaskID = in.Task
		if _, _, err := h.task(ctx, by, in.Task); err != nil {
			return out, err
		}
		spent, err = h.o.Projects.SpentOn(ctx, "", in.Task)
	case in.Project != "":
		out.ProjectID = in.Project
		if _, err := h.project(ctx, by, in.Project); err != nil {
			return out, err
		}
		if in.By == "day" {
			return h.usageByDay(ctx, out)
		}
		spent, err = h.o.Projects.SpentOn(ctx, in.Project, "")
	default:
		var visible []string
		if visible, err = h.visible(ctx, by, ""); err != nil {
			return out, err
		}
		spent, err = h.o.Projects.SpentBy(ctx, time.Time{})
		spent = slices.DeleteFunc(spent, func(s work.Spent) bool { return !slices.Contains(visible, s.Project) })
	}
	for _, s := range spent {
		line := operations.TokenUsageLine{Tokens: s.Tokens, CostUSD: float64(s.Cost) / 1e9, Entries: s.Entries}
		switch {
		case in.Task != "":
			line.Agent = s.Agent
		case in.Project != "":
			line.TaskID, line.Agent = s.Task, s.Agent
		default:
			line.ProjectID = s.Project
		}
		if out.Total += s.Tokens; len(out.Breakdown) == maxUsageLines {
			out.Truncated = true
			continue
		}
		out.Breakdown = append(out.Breakdown, line)
	}
	return out, err
}

// usageDays is how far back the days of a project are shown.
const usageDays = 90 * 24 * time.Hour

// usageByDay returns what a project has used on each of the last days.
func (h *Handler) usageByDay(ctx context.Context, out operations.TokenUsage) (operations.TokenUsage, error) {
	days, err := h.o.Projects.SpentDays(ctx, out.ProjectID, h.o.Now().Add(-usageDays))
	for _, d := range days {
		out.Breakdown = append(out.Breakdown, operations.TokenUsageLine{Day: d.Day, Tokens: d.Tokens, CostUSD: float64(d.Cost) / 1e9})
		out.Total += d.Tokens
	}
	return out, err
}

// ControlOrchestrator implements the operation of the same name. The effect survives restarts.
func (h *Handler) ControlOrchestrator(ctx context.Context, by operation.Caller, in operations.OrchestratorAction) (operations.Orchestrator, error) {
	var out operations.Orchestrator
	if in.Action != "status" {
		if !by.May(operation.Admin) {
			return out, operation.Errorf(operation.Forbidden, "only whoever runs this Chorus may control all projects: it needs the scope admin. `pause_project` pauses one of yours")
		}
		state := map[string]string{"pause": "paused", "resume": "running"}[in.Action]
		if err := h.o.Memos.Remember(ctx, orchestrator, "state", []byte(state)); err != nil {
			return out, err
		}
		if err := h.o.Projects.Record(ctx, work.Event{Type: "orchestrator." + state, By: by.Principal.String()}); err != nil {
			return out, err
		}
		out.Message = map[string]string{"pause": "No more tasks will start; running ones continue.", "resume": "Tasks start again."}[in.Action]
		h.changed()
	}
	paused, err := h.Paused(ctx)
	if err != nil {
		return out, err
	}
	out.Status = "running"
	if paused {
		out.Status = "paused"
	}
	out.Running, err = h.o.Tasks.Running(ctx)
	return out, err
}
