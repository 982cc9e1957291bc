package pages

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

const (
	// shownTasks is how many tasks of a state the board shows, the most urgent first.
	shownTasks = 50
	// shownDone is how many completed tasks it shows, the newest first.
	shownDone = 20
	// shownEvents is how many events the page of a task shows.
	shownEvents = 50
)

// taskColumn is a column of the board.
type taskColumn struct {
	Name  string
	Tasks []operations.Task
	More  bool // there are tasks that are not shown
}

// work shows all tasks, or those of a project, on a board.
func (p *Pages) work(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ctx := r.Context()
	projects, err := operations.ListProjects.Call(ctx, p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	status, err := operations.GetWorkStatus.Call(ctx, p.Executor, by, operation.None{})
	if err != nil {
		return err
	}
	project := r.URL.Query().Get("project")
	columns, err := p.taskColumns(ctx, by, project)
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, one := range projects.Items {
		names[one.ID] = one.Name
	}
	return p.render(w, http.StatusOK, "work.html", map[string]any{"Layout": p.layout(r, by, "Work"), "Projects": projects.Items, "ProjectNames": names, "Status": status,
		"Project": project, "Columns": columns, "May": by.May(operation.Chat)})
}

// taskColumns asks for each state by itself: many tasks that wait must not hide the few that are worked on.
func (p *Pages) taskColumns(ctx context.Context, by operation.Caller, project string) ([]taskColumn, error) {
	var out []taskColumn
	for _, group := range []struct {
		name   string
		states []string
	}{
		{"Waiting", []string{"READY", "PAUSED", "DEFINED"}},
		{"In progress", []string{"IN_PROGRESS", "ASSIGNED", "VERIFYING"}},
		{"Needs you", []string{"WAITING_INPUT", "AWAITING_PLAN_APPROVAL", "AWAITING_APPROVAL", "BLOCKED", "FAILED"}},
	} {
		column := taskColumn{Name: group.name}
		for _, state := range group.states {
			list, err := operations.ListTasks.Call(ctx, p.Executor, by, operations.TaskQuery{Project: project, Status: state, Limit: shownTasks})
			if err != nil {
				return nil, err
			}
			column.Tasks, column.More = append(column.Tasks, list.Items...), column.More || list.Next != ""
		}
		out = append(out, column)
	}
	done, err := p.newestDone(ctx, by, project)
	return append(out, done), err
}

// newestDone reads all completed tasks, because lists are in the order of urgency.
func (p *Pages) newestDone(ctx context.Context, by operation.Caller, project string) (taskColumn, error) {
	column := taskColumn{Name: "Done"}
	query := operations.TaskQuery{Project: project, Status: "COMPLETED", Limit: 200}
	for {
		list, err := operations.ListTasks.Call(ctx, p.Executor, by, query)
		if err != nil {
			return column, err
		}
		column.Tasks = append(column.Tasks, list.Items...)
		slices.SortStableFunc(column.Tasks, func(a, b operations.Task) int { return b.MovedAt.Compare(a.MovedAt) })
		if len(column.Tasks) > shownDone {
			column.Tasks, column.More = column.Tasks[:shownDone], true
		}
		if query.Cursor = list.Next; query.Cursor == "" {
			return column, nil
		}
	}
}

// task shows one with its result, what it changed and what happened to it.
func (p *Pages) task(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ctx, ref := r.Context(), operations.TaskRef{ID: r.PathValue("id")}
	t, err := operations.GetTask.Call(ctx, p.Executor, by, ref)
	if err != nil {
		return err
	}
	result, err := operations.GetTaskResult.Call(ctx, p.Executor, by, ref)
	if err != nil && operation.KindOf(err) != operation.NotFound { // nobody has finished an attempt yet
		return err
	}
	var changes operations.TaskDiff
	var noDiff string
	if t.Branch != "" {
		changes, err = operations.GetTaskDiff.Call(ctx, p.Executor, by, ref)
		if refused := (*operation.Error)(nil); errors.As(err, &refused) && refused.Kind == operation.Conflict {
			noDiff = refused.Message // such as a repository that has moved: the rest of the page is still of use
		} else if err != nil {
			return err
		}
	}
	events, err := operations.GetRecentEvents.Call(ctx, p.Executor, by, operations.WorkEventQuery{Task: t.ID, Limit: shownEvents})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "task.html", map[string]any{"Layout": p.layout(r, by, cmp.Or(short(t.Title, 60), "Task")), "T": t, "Result": result, "Changes": changes, "NoDiff": noDiff,
		"Events": events.Items, "Names": p.names(ctx, by), "Can": taskActions(t.Status, by)})
}

// taskActions are the buttons of a task. The operations decide again whether the state allows what is asked for.
func taskActions(status string, by operation.Caller) map[string]bool {
	can := map[string]bool{}
	if !by.May(operation.Chat) {
		return can
	}
	for action, states := range map[string][]string{
		"stop":    {"ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "PAUSED"},
		"restart": {"DEFINED", "PAUSED", "AWAITING_APPROVAL", "AWAITING_PLAN_APPROVAL", "FAILED", "BLOCKED"},
		"approve": {"AWAITING_APPROVAL", "AWAITING_PLAN_APPROVAL"},
		"skip":    {"FAILED", "BLOCKED"},
		"reopen":  {"COMPLETED", "AWAITING_APPROVAL", "AWAITING_PLAN_APPROVAL", "FAILED", "BLOCKED"},
	} {
		if slices.Contains(states, status) {
			can[action] = true
		}
	}
	return can
}

func (p *Pages) addTask(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	t, err := operations.CreateTask.Call(r.Context(), p.Executor, by, operations.NewTask{Project: r.PostFormValue("project"), Title: r.PostFormValue("title"),
		Description: r.PostFormValue("description"), Approval: r.PostFormValue("approval") != ""})
	if err != nil {
		return err
	}
	return finishForm(w, r, "/work/"+url.PathEscape(t.ID), "added")
}

func (p *Pages) addProject(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	made, err := operations.CreateProject.Call(r.Context(), p.Executor, by, operations.NewProject{Name: r.PostFormValue("name"), Repo: r.PostFormValue("repo")})
	if err != nil {
		return err
	}
	return finishForm(w, r, "/work?project="+url.QueryEscape(made.ID), "added")
}

// changeTask stops, restarts, approves, skips or reopens one.
func (p *Pages) changeTask(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	ctx, ref, err := r.Context(), operations.TaskRef{ID: r.PathValue("id")}, error(nil)
	switch do := r.PostFormValue("do"); do {
	case "stop":
		_, err = operations.StopTask.Call(ctx, p.Executor, by, ref)
	case "restart":
		_, err = operations.RestartTask.Call(ctx, p.Executor, by, ref)
	case "approve":
		_, err = operations.ApproveTask.Call(ctx, p.Executor, by, ref)
	case "skip":
		_, err = operations.SkipTask.Call(ctx, p.Executor, by, ref)
	case "reopen":
		_, err = operations.ReopenTask.Call(ctx, p.Executor, by, operations.TaskFeedback{ID: ref.ID, Feedback: r.PostFormValue("feedback")})
	default:
		err = operation.Errorf(operation.Invalid, "a task can be stopped, restarted, approved, skipped or reopened, not %.20q", do)
	}
	if err != nil {
		return err
	}
	return finishForm(w, r, "/work/"+url.PathEscape(ref.ID), "done")
}
