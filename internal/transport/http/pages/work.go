package pages

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/diffview"
	"chorus/internal/transport/http/display"
	"chorus/internal/work"
)

const (
	// shownEvents is how many events the page of a task shows.
	shownEvents = 50
	// shownLog is how many items of its conversation it shows, the newest.
	shownLog = 40
)

// task shows one with its log, its results, what it changed and what happened to it.
func (p *Pages) task(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ctx, ref := r.Context(), operations.TaskRef{ID: r.PathValue("id")}
	t, err := operations.GetTask.Call(ctx, p.Executor, by, ref)
	if err != nil {
		return err
	}
	result, err := operations.GetTaskResult.Call(ctx, p.Executor, by, ref)
	if err != nil && operation.KindOf(err) != operation.NotFound { // no attempt has finished yet
		return err
	}
	changes, err := p.taskChanges(ctx, by, t, splitDiffs(w, r))
	if err != nil {
		return err
	}
	events, err := operations.GetRecentEvents.Call(ctx, p.Executor, by, operations.WorkEventQuery{Task: t.ID, Limit: shownEvents})
	if err != nil {
		return err
	}
	log, err := p.taskLog(ctx, by, t, changes.Split)
	if err != nil {
		return err
	}
	plan, err := p.taskPlan(ctx, by, t)
	if err != nil {
		return err
	}
	frame := p.layout(r, by, cmp.Or(display.Short(t.Title, 60), "Task"))
	if log != nil {
		frame.Script = "live.js"
	}
	return p.render(w, http.StatusOK, "task.html", map[string]any{"Layout": frame, "T": t, "Result": result, "Changes": changes, "Log": log, "Plan": plan,
		"Events": events.Items, "Can": taskActions(t, by), "May": by.May(operation.Chat), "Types": work.Types()})
}

// taskActions are the buttons of a task. The operations check again whether the state allows the action.
func taskActions(t operations.Task, by operation.Caller) map[string]bool {
	can := map[string]bool{}
	if by.May(operation.Chat) {
		for _, o := range work.Offers(work.State(t.Status)) {
			can[string(o.Action)] = true
		}
		can[string(work.ActionResolve)] = work.Task{State: work.State(t.Status), Why: t.Why}.Conflicted() && t.ResolvedBy == ""
	}
	return can
}

// taskPlan returns the plan of a task; nil: it has none.
func (p *Pages) taskPlan(ctx context.Context, by operation.Caller, t operations.Task) (*operations.TaskPlan, error) {
	if t.Status != string(work.AwaitingPlanApproval) && len(t.Subtasks) == 0 {
		return nil, nil
	}
	plan, err := operations.GetTaskPlan.Call(ctx, p.Executor, by, operations.TaskRef{ID: t.ID})
	if operation.KindOf(err) == operation.NotFound {
		return nil, nil
	}
	return &plan, err
}

// taskLog is the end of the task's conversation.
type taskLog struct {
	Session string
	Status  string
	Rows    template.HTML
	After   int64
	Earlier bool // there is more than is shown
}

// taskLog is nil for readers who may see the task but not the conversation.
func (p *Pages) taskLog(ctx context.Context, by operation.Caller, t operations.Task, split bool) (*taskLog, error) {
	s, err := operations.GetSession.Call(ctx, p.Executor, by, operations.SessionRef{ID: t.SessionID})
	if kind := operation.KindOf(err); kind == operation.NotFound || kind == operation.Forbidden {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	items, err := operations.Messages.Call(ctx, p.Executor, by, operations.EventRange{ID: s.ID, Before: s.Seq + 1, Limit: shownLog})
	if err != nil {
		return nil, err
	}
	v := viewOf(s, by)
	v.Names, v.MayFork, v.Split = p.names(ctx, by), false, split
	rows, err := p.rows(v, items.Items)
	return &taskLog{Session: s.ID, Status: s.Status, Rows: rows, After: s.Seq, Earlier: items.Next != ""}, err
}

// taskChanges is what a task changed, by file.
type taskChanges struct {
	Branch, Base string
	Refused      string // why it cannot be shown
	Split        bool
	Cut          bool // not everything is shown
	Files        []diffview.File
}

func (p *Pages) taskChanges(ctx context.Context, by operation.Caller, t operations.Task, split bool) (taskChanges, error) {
	out := taskChanges{Split: split}
	if t.Branch == "" {
		return out, nil
	}
	d, err := operations.GetTaskDiff.Call(ctx, p.Executor, by, operations.TaskDiffQuery{ID: t.ID})
	if refused := (*operation.Error)(nil); errors.As(err, &refused) && refused.Kind == operation.Conflict {
		out.Refused = refused.Message // such as a repository that has moved: the rest of the page is still useful
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Branch, out.Base = d.Branch, d.Base
	var cut bool
	out.Files, cut = diffview.Parse(d.Diff)
	out.Cut = cut || d.Truncated
	return out, nil
}

// taskDiff returns all changes of a task, as a patch.
func (p *Pages) taskDiff(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	d, err := operations.GetTaskDiff.Call(r.Context(), p.Executor, by, operations.TaskDiffQuery{ID: r.PathValue("id"), Whole: true})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `inline; filename="`+strings.Map(fileLetter, d.ID)+`.patch"`)
	_, err = w.Write([]byte(d.Diff))
	return err
}

// fileLetter keeps harmless characters in a file name.
func fileLetter(r rune) rune {
	if r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' {
		return r
	}
	return -1
}

// editTask changes the fields of the form that differ from those of the task.
func (p *Pages) editTask(r *http.Request, by operation.Caller, id string) error {
	t, err := operations.GetTask.Call(r.Context(), p.Executor, by, operations.TaskRef{ID: id})
	if err != nil {
		return err
	}
	in := operations.TaskChanges{ID: id}
	text := func(name, now string) string {
		if said := strings.TrimSpace(strings.ReplaceAll(r.PostFormValue(name), "\r\n", "\n")); said != strings.TrimSpace(now) {
			return said
		}
		return ""
	}
	number := func(name string, now int) (*int, error) {
		said := strings.TrimSpace(r.PostFormValue(name))
		n, err := strconv.Atoi(said)
		switch {
		case said == "" || err == nil && n == now:
			return nil, nil
		case err != nil:
			return nil, operation.Errorf(operation.Invalid, "%s: %.20q is not a number", name, said)
		}
		return &n, nil
	}
	in.Title, in.Description, in.Type = text("title", t.Title), text("description", t.Description), text("type", t.Type)
	if in.Priority, err = number("priority", t.Priority); err != nil {
		return err
	}
	if in.MaxRetries, err = number("retries", t.MaxRetries); err != nil {
		return err
	}
	if approval := r.PostFormValue("approval") != ""; approval != t.Approval {
		in.Approval = &approval
	}
	if in == (operations.TaskChanges{ID: id}) {
		return nil
	}
	_, err = operations.EditTask.Call(r.Context(), p.Executor, by, in)
	return err
}
