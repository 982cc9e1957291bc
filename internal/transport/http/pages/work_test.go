package pages

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// fewTasks is an executor with tasks and nothing else that a page shows.
type fewTasks struct {
	operation.Executor
	tasks  []operations.Task
	called *[]string
}

func (f fewTasks) Execute(_ context.Context, _ operation.Caller, d *operation.Definition, in any) (any, error) {
	switch in := in.(type) {
	case operations.TaskQuery:
		list := operation.List[operations.Task]{}
		for _, t := range f.tasks {
			if t.Status == in.Status && (in.Project == "" || t.ProjectID == in.Project) {
				list.Items = append(list.Items, t)
			}
		}
		if in.Order == "newest" {
			slices.SortFunc(list.Items, func(a, b operations.Task) int { return b.MovedAt.Compare(a.MovedAt) })
		}
		if in.Cursor != "" {
			return nil, errors.New("the board reads no second page")
		}
		if len(list.Items) > in.Limit {
			list.Items, list.Next = list.Items[:in.Limit], "more"
		}
		return list, nil
	case operation.None:
		if d == operations.GetWorkStatus.Definition {
			status := operations.WorkStatus{ByStatus: map[string]int{}}
			for _, t := range f.tasks {
				status.ByStatus[t.Status]++
			}
			return status, nil
		}
	case operations.TaskDiffQuery:
		return operations.TaskDiff{}, operation.Errorf(operation.Conflict, "the repository has moved to <b>x</b>")
	case operations.SessionRef:
		return operations.Session{}, operation.Errorf(operation.NotFound, "no session")
	case operations.TaskRef:
		if d == operations.GetTaskResult.Definition {
			return operations.TaskResult{}, operation.Errorf(operation.NotFound, "no result")
		}
		if d != operations.GetTask.Definition {
			*f.called = append(*f.called, d.Name+" "+in.ID)
			break
		}
		for _, t := range f.tasks {
			if t.ID == in.ID {
				return t, nil
			}
		}
		return operations.Task{}, operation.Errorf(operation.NotFound, "Task '%s' not found", in.ID)
	case operations.TaskFeedback:
		*f.called = append(*f.called, d.Name+" "+in.ID+" "+in.Feedback)
	}
	return reflect.Zero(d.Out).Interface(), nil
}

func TestWorkPages(t *testing.T) {
	t.Parallel()
	f := fewTasks{called: new([]string), tasks: []operations.Task{
		{ID: "a-ready", ProjectID: "site", Status: "READY", Title: "<b>Bold</b>", Priority: 7, Agent: "worker", Owner: "token:x", OwnerName: "Ada (token)"},
		{ID: "b-blocked", ProjectID: "shop", Status: "BLOCKED", Title: "Blocked", Why: "two <i>conflicts</i>", Branch: "work/b", SessionID: "s1", Attempt: 1,
			Needs: []operations.TaskBrief{{ID: "a-ready", Title: "<b>Bold</b>", Status: "READY"}}},
	}}
	for i := range 30 { // the newest is the last of the list
		f.tasks = append(f.tasks, operations.Task{ID: fmt.Sprintf("done-%02d", i), ProjectID: "site", Status: "COMPLETED", Title: "Done", MovedAt: noon.Add(time.Duration(i) * time.Minute)})
	}
	p, err := New(Options{Executor: f})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path string, form url.Values, scopes ...operation.Scope) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if scopes != nil {
			r = r.WithContext(operation.WithCaller(r.Context(), operation.Caller{Scopes: scopes}))
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w
	}
	for name, c := range map[string]struct {
		path   string
		scopes []operation.Scope
		status int
		has    []string
		hasNot []string
	}{
		"the board": {"/work", []operation.Scope{operation.Read, operation.Chat}, http.StatusOK,
			[]string{"&lt;b&gt;Bold", "priority 7 · worker · for Ada (token)", `data-drop="ready done"`, "two &lt;i&gt;conflicts", "/work/done-29", "/work/done-10", "<small>30</small>", `href="/work?done=70#column-done"`, "10 not shown", `<a href="/work" aria-current="page">`},
			[]string{"<b>Bold", "/work/done-09", "token:x"}},
		"more of it":         {"/work?done=70&x=y", []operation.Scope{operation.Read, operation.Chat}, http.StatusOK, []string{"/work/done-00"}, []string{"not shown"}},
		"a project":          {"/work?project=shop", []operation.Scope{operation.Read, operation.Chat}, http.StatusOK, []string{"b-blocked", "New project"}, []string{"a-ready", "done-"}},
		"a blocked task":     {"/work/b-blocked", []operation.Scope{operation.Read, operation.Chat}, http.StatusOK, []string{`<a href="/work/a-ready">&lt;b&gt;Bold`, "/s/s1", `value="restart"`, `value="skip"`, `value="reopen"`, "moved to &lt;b&gt;x"}, []string{`value="stop"`, `value="approve"`}},
		"a board to read":    {"/work", []operation.Scope{operation.Read}, http.StatusOK, []string{"b-blocked"}, []string{"New project", `draggable="true"`, `name="do"`}},
		"with Read alone":    {"/work/b-blocked", []operation.Scope{operation.Read}, http.StatusOK, nil, []string{`name="do"`}},
		"one nobody has yet": {"/work/a-ready", []operation.Scope{operation.Read, operation.Chat}, http.StatusOK, []string{`class="tag ready">ready`}, []string{`value="stop"`, `value="restart"`, ">Conversation<", "<h2>Result", "<h2>Changes"}},
		"one that is not":    {"/work/nobody", []operation.Scope{operation.Read}, http.StatusNotFound, []string{"not found"}, nil},
		"not signed in":      {"/work", nil, http.StatusSeeOther, []string{"/sign-in"}, nil},
	} {
		w := ask(http.MethodGet, c.path, nil, c.scopes...)
		if w.Code != c.status {
			t.Errorf("%s: status %d, want %d", name, w.Code, c.status)
		}
		for _, text := range c.has {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s: the page does not show %q:\n%s", name, text, w.Body)
			}
		}
		for _, text := range c.hasNot {
			if strings.Contains(w.Body.String(), text) {
				t.Errorf("%s: the page shows %q", name, text)
			}
		}
	}
	for _, do := range []string{"stop", "restart", "approve", "skip", "reopen", "explode"} {
		w := ask(http.MethodPost, "/work/b-blocked", url.Values{"do": {do}, "feedback": {"more"}}, operation.Read, operation.Chat)
		if want := map[bool]int{true: http.StatusSeeOther, false: http.StatusBadRequest}[do != "explode"]; w.Code != want {
			t.Errorf("%s: status %d, want %d", do, w.Code, want)
		}
	}
	if got, want := strings.Join(*f.called, ", "), "task.stop b-blocked, task.restart b-blocked, task.approve b-blocked, task.skip b-blocked, task.reopen b-blocked more"; got != want {
		t.Errorf("called %s, want %s", got, want)
	}
	for to, want := range map[string]int{"ready": http.StatusSeeOther, "done": http.StatusSeeOther, "progress": http.StatusConflict, "asking": http.StatusConflict, "waiting": http.StatusConflict, "stopped": http.StatusConflict, "x": http.StatusBadRequest} {
		*f.called = nil
		w := ask(http.MethodPost, "/work/b-blocked", url.Values{"to": {to}, "back": {"/work?project=shop"}}, operation.Read, operation.Chat)
		if w.Code != want || (w.Code == http.StatusSeeOther) != (w.Header().Get("Location") == "/work?project=shop") {
			t.Errorf("dropped on %s: status %d to %s, want %d", to, w.Code, w.Header().Get("Location"), want)
		}
		if got, want := strings.Join(*f.called, ", "), map[string]string{"ready": "task.restart b-blocked", "done": "task.skip b-blocked"}[to]; got != want {
			t.Errorf("dropped on %s: called %q, want %q", to, got, want)
		}
	}
	if w := ask(http.MethodPost, "/work/b-blocked", url.Values{"do": {"skip"}, "back": {"https://elsewhere.example"}}, operation.Read, operation.Chat); w.Header().Get("Location") != "/work/b-blocked" {
		t.Errorf("a form leads to %s", w.Header().Get("Location"))
	}
}

// Every state has a column, and whatever a card can be dropped on is a move that the rules know.
func TestBoardColumns(t *testing.T) {
	t.Parallel()
	for _, state := range work.States() {
		n := 0
		for _, c := range boardColumns() {
			if slices.Contains(c.States, state) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is in %d columns", state, n)
		}
		seen := map[string]bool{}
		for _, m := range movesOf(state) {
			if m.Label == "" {
				t.Errorf("%s: %s has no label", state, m.Action)
			}
			for _, c := range m.Columns {
				if seen[c] || c == columnOf(state) {
					t.Errorf("%s: two moves lead to %s", state, c)
				}
				seen[c] = true
			}
		}
		for _, c := range boardColumns() {
			if why := refusal(state, c.ID); operation.KindOf(why) != operation.Conflict {
				t.Errorf("%s on %s: %v", state, c.ID, why)
			}
		}
	}
}
