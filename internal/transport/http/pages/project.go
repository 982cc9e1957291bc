package pages

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/charts"
	"chorus/internal/transport/http/taskgraph"
	"chorus/internal/work"
)

const (
	// costDays is how many days the charts of a project show.
	costDays = 30
	// shownCosts is how many tasks they name, the most expensive ones.
	shownCosts = 30
)

// projects lists them.
func (p *Pages) projects(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operation.CallWhole(r.Context(), operations.ListProjects, p.Executor, by, operations.ProjectList{})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "projects.html", map[string]any{"Layout": p.layout(r, by, "Projects"), "List": list})
}

// stateCount is how many tasks are in a state.
type stateCount struct {
	State string
	Count int
}

// taskCost is the cost of a task.
type taskCost struct {
	ID, Title string
	Tokens    int64
	Dollars   float64
}

// project shows one project: task counts, costs, repositories, notes, channel, hooks and settings.
func (p *Pages) project(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ctx, id := r.Context(), r.PathValue("id")
	one, err := operations.GetProject.Call(ctx, p.Executor, by, operations.ProjectRef{ID: id})
	if err != nil {
		return err
	}
	data := map[string]any{"Layout": p.layout(r, by, one.Name), "P": one, "May": by.May(operation.Chat), "Counts": countStates(one.Tasks)}
	if err := p.projectCosts(ctx, by, one, data); err != nil {
		return err
	}
	notes, err := operation.CallWhole(ctx, operations.ListNotes, p.Executor, by, operations.NoteQuery{Project: one.ID})
	if err != nil {
		return err
	}
	data["Notes"], data["Note"] = notes, (*operations.Note)(nil)
	if name := r.URL.Query().Get("note"); name != "" {
		note, err := operations.ReadNote.Call(ctx, p.Executor, by, operations.NoteRef{Title: name, Project: one.ID})
		if err != nil {
			return err
		}
		data["Note"] = &note
	}
	hooks, err := operation.CallWhole(ctx, operations.ListHooks, p.Executor, by, operations.HookQuery{Project: one.ID})
	if err != nil {
		return err
	}
	data["Hooks"] = hooks
	return p.render(w, http.StatusOK, "project.html", data)
}

// countStates sorts the task counts by state, as reports do.
func countStates(tasks map[string]int) []stateCount {
	var out []stateCount
	for _, s := range work.States() {
		if n := tasks[string(s)]; n > 0 {
			out = append(out, stateCount{string(s), n})
		}
	}
	return out
}

// projectCosts adds the charts of a project's costs: by day, and by task.
func (p *Pages) projectCosts(ctx context.Context, by operation.Caller, one operations.Project, data map[string]any) error {
	days, err := operations.GetTokenUsage.Call(ctx, p.Executor, by, operations.TokenUsageQuery{Project: one.ID, By: "day"})
	if err != nil {
		return err
	}
	tokens, spent := map[string]float64{}, map[string]float64{}
	for _, d := range days.Breakdown {
		tokens[d.Day], spent[d.Day] = float64(d.Tokens), d.CostUSD
	}
	since := p.Now().AddDate(0, 0, 1-costDays)
	data["Days"] = days.Breakdown
	data["TokenChart"] = template.HTML(charts.Tokens(charts.Half, tokens, since, p.Now()))
	data["DollarChart"] = template.HTML(charts.Dollars("Dollars by day", charts.Half, spent, since, p.Now()))
	usage, err := operations.GetTokenUsage.Call(ctx, p.Executor, by, operations.TokenUsageQuery{Project: one.ID})
	if err != nil {
		return err
	}
	costs, most, total := sumByTask(usage.Breakdown), int64(0), 0.0
	for i := range costs {
		most, total = max(most, costs[i].Tokens), total+costs[i].Dollars
	}
	data["TaskCosts"], data["MostTokens"], data["Tokens"], data["Dollars"] = costs[:min(len(costs), shownCosts)], most, usage.Total, total
	for i := range costs[:min(len(costs), shownCosts)] {
		if t, err := operations.GetTask.Call(ctx, p.Executor, by, operations.TaskRef{ID: costs[i].ID}); err == nil { // otherwise it was deleted
			costs[i].Title = t.Title
		}
	}
	return nil
}

// sumByTask adds up the costs of each task's agents, highest first.
func sumByTask(lines []operations.TokenUsageLine) []taskCost {
	var out []taskCost
	at := map[string]int{}
	for _, l := range lines {
		i, ok := at[l.TaskID]
		if !ok {
			i = len(out)
			at[l.TaskID] = i
			out = append(out, taskCost{ID: l.TaskID})
		}
		out[i].Tokens += l.Tokens
		out[i].Dollars += l.CostUSD
	}
	slices.SortStableFunc(out, func(a, b taskCost) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return out
}

// nearTasks is how many tasks the graph around one shows at first.
const nearTasks = 60

// projectGraph draws which tasks need which: all of a project, or those around one of them.
func (p *Pages) projectGraph(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	q := r.URL.Query()
	in := operations.TaskGraphQuery{ID: r.PathValue("id"), Around: strings.TrimSpace(q.Get("around")), Open: q.Get("open") != ""}
	in.Limit, _ = strconv.Atoi(q.Get("limit")) // otherwise the default
	if in.Limit = min(max(in.Limit, 0), 1000); in.Limit == 0 && in.Around != "" {
		in.Limit = nearTasks
	}
	g, err := operations.GetTaskGraph.Call(r.Context(), p.Executor, by, in)
	if err != nil {
		return err
	}
	needs := map[string][]string{}
	for _, n := range g.Needs {
		needs[n.ID] = append(needs[n.ID], n.Needs)
	}
	all := ""
	if g.Hidden > 0 && len(g.Tasks) < 1000 {
		q.Set("limit", strconv.Itoa(min(len(g.Tasks)+g.Hidden, 1000)))
		all = "?" + q.Encode()
	}
	wide := taskgraph.Fit(g.Tasks, g.Needs, g.Done)
	return p.render(w, http.StatusOK, "graph.html", map[string]any{"Layout": p.layout(r, by, "Graph"), "G": g, "Needs": needs, "Query": in, "All": all,
		"Graph": template.HTML(wide.Draw(in.Around, "")), "SmallGraph": template.HTML(taskgraph.Narrow(g.Tasks, g.Needs, g.Done).Draw(in.Around, "-small")), "Down": wide.Down, "States": work.States()})
}

// changeProject pauses or resumes a project, changes its settings or adds a repository.
func (p *Pages) changeProject(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ctx, id, err := r.Context(), r.PathValue("id"), error(nil)
	switch do := r.PostFormValue("do"); do {
	case "pause":
		_, err = operations.PauseProject.Call(ctx, p.Executor, by, operations.ProjectRef{ID: id})
	case "resume":
		_, err = operations.ResumeProject.Call(ctx, p.Executor, by, operations.ProjectRef{ID: id})
	case "edit":
		err = p.editProject(r, by, id)
	case "channel":
		_, err = operations.SetProjectChannel.Call(ctx, p.Executor, by, operations.ProjectChannelLink{ID: id, Channel: strings.TrimSpace(r.PostFormValue("channel"))})
	case "repo":
		in := operations.NewRepo{Project: id, Source: r.PostFormValue("source"), Branch: strings.TrimSpace(r.PostFormValue("branch")), Name: strings.TrimSpace(r.PostFormValue("name"))}
		switch where := strings.TrimSpace(r.PostFormValue("where")); in.Source {
		case string(work.Clone):
			in.URL = where
		case string(work.Link):
			in.Path = where
		}
		_, err = operations.AddRepo.Call(ctx, p.Executor, by, in)
	default:
		err = operation.Errorf(operation.Invalid, "a project can be paused, resumed, edited, or given a repository or a channel, not %.20q", do)
	}
	if err != nil {
		return err
	}
	return finishForm(w, r, "/projects/"+url.PathEscape(id), "done")
}

func (p *Pages) editProject(r *http.Request, by operation.Caller, id string) error {
	in := operations.ProjectChanges{ID: id, Name: strings.TrimSpace(r.PostFormValue("name"))}
	weight, err := strconv.ParseFloat(r.PostFormValue("weight"), 64)
	if err != nil {
		return operation.Errorf(operation.Invalid, "weight: %.20q is not a number", r.PostFormValue("weight"))
	}
	most, err := strconv.Atoi(r.PostFormValue("most"))
	if err != nil {
		return operation.Errorf(operation.Invalid, "tasks at once: %.20q is not a number", r.PostFormValue("most"))
	}
	limit, err := strconv.ParseInt(cmp.Or(r.PostFormValue("limit"), "0"), 10, 64)
	if err != nil {
		return operation.Errorf(operation.Invalid, "tokens in 24 hours: %.20q is not a number", r.PostFormValue("limit"))
	}
	shared := r.PostFormValue("shared") != ""
	in.Weight, in.MaxRuns, in.TokenLimit, in.Shared = &weight, &most, &limit, &shared
	in.OnConflict = r.PostFormValue("conflict")
	if now := strings.TrimSpace(r.PostFormValue("approvers")); now != strings.TrimSpace(r.PostFormValue("approversBefore")) {
		in.Approvers = cmp.Or(now, work.Anyone)
	}
	_, err = operations.EditProject.Call(r.Context(), p.Executor, by, in)
	return err
}

// workers shows the workers with their tasks, and the next tasks.
func (p *Pages) workers(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	status, err := operations.GetWorkStatus.Call(r.Context(), p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	list, err := operation.CallWhole(r.Context(), operations.ListWorkers, p.Executor, by, operations.WorkerQuery{})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "workers.html", map[string]any{"Layout": p.layout(r, by, "Workers"), "Status": status, "List": list, "Admin": by.May(operation.Admin)})
}

// controlWork pauses or resumes all work.
func (p *Pages) controlWork(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if _, err := operations.ControlOrchestrator.Call(r.Context(), p.Executor, by, operations.OrchestratorAction{Action: r.PostFormValue("do")}); err != nil {
		return err
	}
	return finishForm(w, r, "/workers", "done")
}
