package pages

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

const (
	// shownTasks is how many tasks of a state the board shows at first, most urgent first, and how many more with each click.
	shownTasks = 50
	// shownDone is how many completed tasks it shows at first, newest first.
	shownDone = 20
	// mostTasks is the maximum number of tasks of a state that it shows.
	mostTasks = 1000
)

// column is a column of the board: tasks in one of its states.
type column struct {
	ID     string
	Name   string
	States []work.State
}

// boardColumns returns the columns, from left to right. Every state is in one of them.
func boardColumns() []column {
	return []column{
		{"waiting", "Waiting", []work.State{work.Defined, work.Paused}},
		{"ready", "Ready", []work.State{work.Ready}},
		{"progress", "In progress", []work.State{work.InProgress, work.Assigned, work.Verifying}},
		{"asking", "Needs you", []work.State{work.WaitingInput, work.AwaitingPlanApproval, work.AwaitingApproval}},
		{"stopped", "Stopped", []work.State{work.Blocked, work.Failed}},
		{"done", "Done", []work.State{work.Completed}},
	}
}

// columnOf returns the column of a state. States without a column need attention.
func columnOf(state work.State) string {
	for _, c := range boardColumns() {
		if slices.Contains(c.States, state) {
			return c.ID
		}
	}
	return "asking"
}

// move is something that can be done with a task on the board: the action, its button's label, and the columns that the
// task can be dropped on for it.
type move struct {
	Action  work.Action
	Label   string
	Columns []string
	Asks    bool // it needs a text
}

// moveLabels are the labels of actions.
var moveLabels = map[work.Action]string{
	work.ActionApprove: "Approve and merge", work.ActionStop: "Stop", work.ActionRestart: "Restart",
	work.ActionSkip: "Skip and count as done", work.ActionReopen: "Reopen with feedback",
}

// movesOf returns what the rules allow a task to do now.
func movesOf(state work.State) []move {
	var out []move
	taken := map[string]bool{}
	for _, o := range work.Offers(state) {
		m := move{Action: o.Action, Label: moveLabels[o.Action], Asks: o.Action == work.ActionReopen}
		if o.Action == work.ActionApprove && state == work.AwaitingPlanApproval {
			m.Label = "Approve the plan"
		}
		to := []string{columnOf(o.To)}
		if o.To == work.Verifying {
			to = append(to, columnOf(work.Completed)) // where it ends up, and where people drop it
		}
		for _, c := range to {
			if !taken[c] && c != columnOf(state) { // the first offer gets the column: a restart, not a reopening
				taken[c] = true
				m.Columns = append(m.Columns, c)
			}
		}
		out = append(out, m)
	}
	return out
}

// refusal explains why a task cannot be dropped on a column.
func refusal(state work.State, to string) error {
	why := map[string]string{
		"waiting":  "tasks move here automatically, while they wait for other tasks or for a time",
		"ready":    "a worker has it; stop it first, then restart it",
		"progress": "a worker takes it when it is its turn",
		"asking":   "tasks move here automatically, when they ask something or need approval",
		"stopped":  "no worker has it, so there is nothing to stop; pause the project to keep it from starting",
		"done":     "only a result that needs approval can be approved, and only a blocked or failed task can be skipped",
	}[to]
	if why == "" {
		return operation.Errorf(operation.Invalid, "the board has no column %.20q", to)
	}
	if to == "ready" && state == work.Verifying {
		why = "its work is being merged"
	}
	return operation.Errorf(operation.Conflict, "The task is %s: %s.", state, why)
}

// taskCard is a task on the board.
type taskCard struct {
	operations.Task
	ProjectName string
	Held        bool // its project is paused
	May         bool // the reader may move it
	Back        string
	Moves       []move
	Drop        string // the columns it may be dropped on, separated by spaces
	Asks        string // the columns that ask for a text, likewise
}

func (b boardView) cardOf(t operations.Task) taskCard {
	c := taskCard{Task: t, May: b.May, Back: "/work", ProjectName: t.ProjectID}
	for _, one := range b.Projects {
		if one.ID == t.ProjectID {
			c.ProjectName, c.Held = one.Name, one.Status == string(work.ProjectPaused)
		}
	}
	if b.Project != "" { // the page names the project, and whether it is paused
		c.Back += "?project=" + url.QueryEscape(b.Project)
		c.ProjectName, c.Held = "", false
	}
	if !b.May {
		return c
	}
	c.Moves = movesOf(work.State(t.Status))
	var drop, asks []string
	for _, m := range c.Moves {
		drop = append(drop, m.Columns...)
		if m.Asks {
			asks = append(asks, m.Columns...)
		}
	}
	c.Drop, c.Asks = strings.Join(drop, " "), strings.Join(asks, " ")
	return c
}

// work shows all tasks, or those of a project, on a board.
func (p *Pages) work(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	b, err := p.board(r.Context(), by, r.URL.Query())
	if err != nil {
		return err
	}
	frame := p.layout(r, by, "Work")
	frame.Script = "work.js"
	return p.render(w, http.StatusOK, "work.html", map[string]any{"Layout": frame, "Board": b})
}

func (p *Pages) addTask(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	t, err := operations.CreateTask.Call(r.Context(), p.Executor, by, operations.NewTask{Project: r.PostFormValue("project"), Title: r.PostFormValue("title"),
		Description: r.PostFormValue("description"), Needs: strings.Fields(strings.ReplaceAll(r.PostFormValue("needs"), ",", " ")), Approval: r.PostFormValue("approval") != ""})
	if err != nil {
		return err
	}
	return finishForm(w, r, "/work/"+url.PathEscape(t.ID), "added")
}

func (p *Pages) addProject(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	made, err := operations.CreateProject.Call(r.Context(), p.Executor, by, operations.NewProject{Name: r.PostFormValue("name"), Repo: r.PostFormValue("repo")})
	if err != nil {
		return err
	}
	return finishForm(w, r, "/work?project="+url.QueryEscape(made.ID), "added")
}

// changeTask does what a button says, or what dropping a task on a column means.
func (p *Pages) changeTask(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ctx, id, do := r.Context(), r.PathValue("id"), r.PostFormValue("do")
	if to := r.PostFormValue("to"); to != "" {
		action, err := p.actionFor(ctx, by, id, to)
		if err != nil {
			return err
		}
		do = string(action)
	}
	back := "/work/" + url.PathEscape(id)
	if board := r.PostFormValue("back"); board == "/work" || strings.HasPrefix(board, "/work?") {
		back = board
	}
	var err error
	switch feedback := r.PostFormValue("feedback"); do {
	case "edit":
		err = p.editTask(r, by, id)
	case "reject-plan":
		_, err = operations.RejectPlan.Call(ctx, p.Executor, by, operations.TaskFeedback{ID: id, Feedback: feedback})
	case "resolve":
		made, err := operations.ResolveConflict.Call(ctx, p.Executor, by, operations.TaskRef{ID: id})
		if err != nil {
			return err
		}
		return finishForm(w, r, "/work/"+url.PathEscape(made.ID), "task "+made.ID+" resolves the conflict")
	case "delete-plan":
		_, err = operations.DeletePlan.Call(ctx, p.Executor, by, operations.TaskRef{ID: id})
	default:
		moved, err := p.moveTask(ctx, by, id, work.Action(do), feedback)
		if err != nil {
			return err
		}
		return finishForm(w, r, back, moved.Title+" is "+moved.Status)
	}
	if err != nil {
		return err
	}
	return finishForm(w, r, back, "changed")
}

// actionFor returns the action for dropping a task on a column, based on the current state, not the one that the page showed.
func (p *Pages) actionFor(ctx context.Context, by operation.Caller, id, to string) (work.Action, error) {
	t, err := operations.GetTask.Call(ctx, p.Executor, by, operations.TaskRef{ID: id})
	if err != nil {
		return "", err
	}
	for _, m := range movesOf(work.State(t.Status)) {
		if slices.Contains(m.Columns, to) {
			return m.Action, nil
		}
	}
	return "", refusal(work.State(t.Status), to)
}

func (p *Pages) moveTask(ctx context.Context, by operation.Caller, id string, do work.Action, feedback string) (operations.TaskMove, error) {
	ref := operations.TaskRef{ID: id}
	switch do {
	case work.ActionStop:
		return operations.StopTask.Call(ctx, p.Executor, by, ref)
	case work.ActionRestart:
		return operations.RestartTask.Call(ctx, p.Executor, by, ref)
	case work.ActionApprove:
		return operations.ApproveTask.Call(ctx, p.Executor, by, ref)
	case work.ActionSkip:
		return operations.SkipTask.Call(ctx, p.Executor, by, ref)
	case work.ActionReopen:
		if strings.TrimSpace(feedback) == "" {
			return operations.TaskMove{}, operation.Errorf(operation.Invalid, "say what should change")
		}
		return operations.ReopenTask.Call(ctx, p.Executor, by, operations.TaskFeedback{ID: id, Feedback: feedback})
	}
	return operations.TaskMove{}, operation.Errorf(operation.Invalid, "a task can be stopped, restarted, approved, skipped, reopened or edited, not %.20q", string(do))
}
