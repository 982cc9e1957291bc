package workservice_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

func (h *home) task(title, more string) operations.Task {
	h.t.Helper()
	return must[operations.Task](h, root, "create_task", `{"title":"`+title+`","project_id":"site"`+more+`}`)
}

func TestTasksAreListedByPriority(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	late, soon := h.task("late", `,"priority":100`), h.task("soon", `,"priority":1`)
	if !regexp.MustCompile(`^[a-z]+-[a-z]+(-[0-9]+)?$`).MatchString(late.ID) || late.Status != "READY" || late.Description != "late" || late.Repo != "site" {
		t.Errorf("%+v", late)
	}
	// 16
	if got := must[operation.List[operations.Task]](h, root, "list_tasks", `{}`); len(got.Items) != 2 || got.Items[0].ID != soon.ID {
		t.Errorf("%+v", got)
	}
	// 17
	h.refused(root, operation.Invalid, `there is no "ready"`, "list_tasks", `{"status":"ready"}`)
	h.refused(root, operation.NotFound, "Project 'nope' not found", "list_tasks", `{"project_id":"nope"}`)
	for i := range 5 {
		h.task(fmt.Sprint("more ", i), "")
	}
	seen, cursor := map[string]bool{}, ""
	for pages := 0; pages < 10; pages++ {
		page := must[operation.List[operations.Task]](h, root, "list_tasks", `{"limit":3,"cursor":"`+cursor+`"}`)
		for _, one := range page.Items {
			if seen[one.ID] {
				t.Errorf("%s is listed twice", one.ID)
			}
			seen[one.ID] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 7 {
		t.Errorf("%d tasks in all pages", len(seen))
	}
	h.refused(root, operation.Invalid, "cursor", "list_tasks", `{"cursor":"nonsense"}`)
	h.refused(root, operation.Invalid, "at most 200", "list_tasks", `{"limit":1000}`)
}

func TestTasksRefuseWhatTheirStateDoesNotAllow(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	one := h.task("One", "")
	ref := `{"task_id":"` + one.ID + `"}`
	h.refused(root, operation.Conflict, "Task is not in progress (status: READY)", "stop_task", ref)
	h.refused(root, operation.Conflict, "not awaiting approval", "approve_task", ref)
	h.refused(root, operation.Conflict, "Only blocked/failed tasks can be skipped", "skip_task", ref)
	h.refused(root, operation.NotFound, "No results found", "get_task_result", ref)
	h.refused(root, operation.Invalid, "No fields to update", "edit_task", ref)
	h.refused(root, operation.NotFound, "Task 'x' not found; `list_tasks` shows those there are", "get_task", `{"task_id":"x"}`)
	// 26: no result yet is an answer.
	if got := must[operations.TaskError](h, root, "get_agent_error", ref); got.Message == "" || got.Retries != "0 / 3" {
		t.Errorf("%+v", got)
	}
	h.move(one.ID, work.InProgress)
	// 20
	h.refused(root, operation.Conflict, "Stop it first", "restart_task", ref)
	h.refused(root, operation.Conflict, "Stop it first", "delete_task", ref)
	if got := must[operations.TaskMove](h, root, "stop_task", ref); got.Status != "BLOCKED" || got.PreviousStatus != "IN_PROGRESS" {
		t.Errorf("%+v", got)
	}
	h.move(one.ID, work.Completed)
	// 19
	if got := must[operations.TaskMove](h, root, "restart_task", ref); got.Status != "READY" || got.PreviousStatus != "COMPLETED" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.TaskMove](h, root, "restart_task", ref); got.Status != "READY" {
		t.Errorf("%+v", got)
	}
	// 25: whatever the rules say, for whoever runs this Chorus, and its event shows it.
	if got := must[operations.TaskMove](h, root, "set_task_status", `{"task_id":"`+one.ID+`","status":"BLOCKED"}`); got.PreviousStatus != "READY" || got.Status != "BLOCKED" {
		t.Errorf("%+v", got)
	}
	events := must[operation.List[operations.WorkEvent]](h, root, "get_recent_events", `{"task_id":"`+one.ID+`","limit":1}`)
	if len(events.Items) != 1 || events.Items[0].To != "BLOCKED" || events.Next == "" {
		t.Errorf("%+v", events)
	}
	h.refused(root, operation.Invalid, `there is no "DONE"`, "set_task_status", `{"task_id":"`+one.ID+`","status":"DONE"}`)
	h.refused(root, operation.NotFound, "Repo 'nope' not found in project site; `list_repos` shows", "create_task", `{"title":"x","project_id":"site","repo_id":"nope"}`)
	h.refused(root, operation.Invalid, "there is no agent ghost", "create_task", `{"title":"x","project_id":"site","agent":"ghost"}`)
	h.refused(root, operation.Invalid, "there are bugfix, chore", "create_task", `{"title":"x","project_id":"site","task_type":"magic"}`)
	h.refused(root, "", "title: it is required", "create_task", `{"project_id":"site"}`)
	h.refused(root, "", "priority: it does not fit", "create_task", `{"title":"x","project_id":"site","priority":"high"}`)
}

func TestChainsOfTasks(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	blocked := h.task("Blocked", "")
	first := h.task("First", `,"depends_on":["`+blocked.ID+`"]`)
	second := h.task("Second", `,"depends_on":["`+first.ID+`"]`)
	if first.Status != "DEFINED" || len(first.Needs) != 1 {
		t.Errorf("%+v", first)
	}
	h.refused(root, operation.Conflict, "", "add_dependency", `{"task_id":"`+blocked.ID+`","depends_on":"`+second.ID+`"}`)
	h.move(blocked.ID, work.Blocked)
	ref := `{"task_id":"` + blocked.ID + `"}`
	// 23
	got := must[operations.ChainHealth](h, root, "get_chain_health", ref)
	if len(got.Chains) != 1 || got.Chains[0].Count != 2 || got.Chains[0].Stuck[0].ID != first.ID || got.Chains[0].Stuck[1].ID != second.ID {
		t.Errorf("%+v", got)
	}
	// 22
	skipped := must[operations.TaskMove](h, root, "skip_task", ref)
	if len(skipped.Unblocked) != 1 || skipped.Unblocked[0].ID != first.ID || skipped.Status != "COMPLETED" {
		t.Errorf("%+v", skipped)
	}
	if got := must[operations.Task](h, root, "get_task", `{"task_id":"`+second.ID+`"}`); got.Status != "DEFINED" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.ChainHealth](h, root, "get_chain_health", ref); len(got.Chains) != 0 || got.Message == "" {
		t.Errorf("%+v", got)
	}
}

// 82: a task with subtasks is refused, and nothing of it is gone.
func TestDeletingATaskWithSubtasks(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	parent := h.task("Parent", "")
	kid, err := h.queue.Create(t.Context(), work.NewTask{Task: work.Task{Project: "site", Parent: parent.ID, Title: "Child", Description: "x", Agent: "main", Priority: 100, MaxRetries: 3, Owner: root.Principal}})
	if err != nil {
		t.Fatal(err)
	}
	h.refused(root, operation.Conflict, "has 1 subtask(s); delete those first", "delete_task", `{"task_id":"`+parent.ID+`"}`)
	if got := must[operations.Task](h, root, "get_task", `{"task_id":"`+parent.ID+`"}`); len(got.Subtasks) != 1 {
		t.Errorf("%+v", got)
	}
	must[operations.TaskMove](h, root, "delete_task", `{"task_id":"`+kid.ID+`"}`)
	must[operations.TaskMove](h, root, "delete_task", `{"task_id":"`+parent.ID+`"}`)
}

// 44, the command's part: it is kept, and says so.
func TestPausingEverything(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	if got := must[operations.Orchestrator](h, root, "orchestrator_control", `{"action":"pause"}`); got.Status != "paused" || got.Message == "" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.WorkStatus](h, root, "get_status", `{}`); !got.Paused {
		t.Errorf("%+v", got)
	}
	if got := must[operations.Orchestrator](h, grace, "orchestrator_control", `{"action":"status"}`); got.Status != "paused" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.Orchestrator](h, root, "orchestrator_control", `{"action":"resume"}`); got.Status != "running" {
		t.Errorf("%+v", got)
	}
	h.refused(root, operation.Invalid, "there are pause, resume, status", "orchestrator_control", `{"action":"stop"}`)
}

func TestNotesOfProjects(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	// 37
	h.refused(root, operation.Invalid, "Title produces an empty filename", "write_note", `{"project_id":"site","title":"!!!","content":"x"}`)
	if got := must[operations.Note](h, root, "write_note", `{"project_id":"site","title":"Release Plan","content":"# Release Plan"}`); got.Status != "created" || got.Name != "release-plan.md" {
		t.Errorf("%+v", got)
	}
	if got := must[operations.Note](h, root, "append_note", `{"project_id":"site","title":"release-plan.md","content":"Ship it"}`); got.Status != "appended" || got.Name != "release-plan.md" {
		t.Errorf("an existing file is appended to, and no second one made: %+v", got)
	}
	// 38
	for _, title := range []string{"Release Plan", "release-plan", "release-plan.md"} {
		if got := must[operations.Note](h, root, "read_note", `{"project_id":"site","title":"`+title+`"}`); got.Content != "# Release Plan\n\nShip it" {
			t.Errorf("%s: %q", title, got.Content)
		}
	}
	must[operations.Note](h, root, "append_note", `{"project_id":"site","title":"../../evil","content":"x"}`)
	list := must[operation.List[operations.Note]](h, root, "list_notes", `{"project_id":"site"}`)
	if len(list.Items) != 2 || list.Items[0].Name != "evil.md" || filepath.Dir(list.Items[0].Path) != h.dir.ProjectNotes("site") {
		t.Errorf("%+v", list)
	}
	if err := os.Symlink(filepath.Join(h.tmp, "site", "README.md"), filepath.Join(h.dir.ProjectNotes("site"), "link.md")); err != nil {
		t.Fatal(err)
	}
	if out, err := h.call(root, "read_note", `{"project_id":"site","title":"link.md"}`); err == nil {
		t.Errorf("a link out of the notes was followed: %+v", out)
	}
	h.refused(root, operation.Invalid, "folder of the repository", "compare_specs_notes", `{"project_id":"site","specs_path":"../x"}`)
	h.refused(root, operation.NotFound, "Note 'nope' not found in project site; `list_notes` shows those there are", "delete_note", `{"project_id":"site","title":"nope"}`)
	if got := must[operations.Task](h, root, "promote_note", `{"project_id":"site","title":"Release Plan"}`); !strings.Contains(got.Description, "Ship it") || got.Title != "Release Plan" {
		t.Errorf("%+v", got)
	}
	must[operations.Note](h, root, "delete_note", `{"project_id":"site","title":"Release Plan"}`)
}

// 43: what the attempts of a task took is summed, by task, by project and in all.
func TestTokenUsageIsSummed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	one := h.task("one", "")
	for attempt, tokens := range map[int]int64{1: 100, 2: 50} {
		_, err := h.queue.Change(t.Context(), one.ID, func(t *work.Task, now time.Time) ([]work.Event, error) {
			t.Attempt = attempt
			return []work.Event{t.Override(work.Verifying, "test", now)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		result := work.Result{Task: one.ID, Attempt: attempt, Agent: "main", Outcome: work.OutcomeCompleted, Tokens: tokens, Cost: tokens * 1e6}
		if _, err := h.queue.Finish(t.Context(), result, work.MergeFailed, false, "test", "no"); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]operations.TokenUsageLine{
		`{"task_id":"` + one.ID + `"}`: {Agent: "main", Tokens: 150, Entries: 2, CostUSD: 0.15},
		`{"project_id":"site"}`:        {TaskID: one.ID, Agent: "main", Tokens: 150, Entries: 2, CostUSD: 0.15},
		`{}`:                           {ProjectID: "site", Tokens: 150, Entries: 2},
	} {
		got := must[operations.TokenUsage](h, root, "get_token_usage", args)
		if got.Total != 150 || len(got.Breakdown) != 1 || got.Breakdown[0] != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := must[operations.TokenUsage](h, root, "get_token_usage", `{"task_id":"`+h.task("two", "").ID+`"}`); got.Total != 0 || len(got.Breakdown) != 0 {
		t.Errorf("%+v", got)
	}
}

// pagesOf are the names that a list gives page after page. between is called after the first page.
func pagesOf[T any](h *home, tool, args string, name func(T) string, between func()) (pages [][]string) {
	h.t.Helper()
	for cursor := ""; len(pages) < 20; {
		page := must[operation.List[T]](h, root, tool, `{"limit":2,"cursor":"`+cursor+`"`+args+`}`)
		var names []string
		for _, item := range page.Items {
			names = append(names, name(item))
		}
		pages = append(pages, names)
		if cursor = page.Next; cursor == "" {
			return pages
		}
		if between != nil {
			between()
			between = nil
		}
	}
	h.t.Fatal("the pages do not end")
	return nil
}

// Lists come page by page, each item once, also when something is added meanwhile; a cursor that nobody gave is refused.
func TestListsHavePages(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	note := func(title string) {
		must[operations.Note](h, root, "write_note", `{"project_id":"site","title":"`+title+`","content":"x"}`)
	}
	repo := func(name string) {
		h.now = h.now.Add(time.Second)
		must[operations.Repo](h, root, "add_repo", `{"project_id":"site","source":"init","name":"`+name+`"}`)
	}
	project := func(name string) { must[operations.Project](h, root, "create_project", `{"name":"`+name+`"}`) }
	for _, name := range []string{"b", "c", "d", "e"} {
		note(name)
		repo(name)
		project(name)
	}
	h.members = []work.Worker{{Name: "w1"}, {Name: "w2"}, {Name: "w3"}}
	for list, got := range map[string][][]string{
		"list_notes b.md c.md|d.md e.md|f.md": pagesOf(h, "list_notes", `,"project_id":"site"`, func(n operations.Note) string { return n.Name }, func() { note("f"); note("a") }),
		// In the order in which they were added: the first is where tasks work.
		"list_repos site b|c d|e a":    pagesOf(h, "list_repos", `,"project_id":"site"`, func(r operations.Repo) string { return r.ID }, func() { repo("a") }),
		"list_projects b c|d e|f site": pagesOf(h, "list_projects", "", func(p operations.Project) string { return p.ID }, func() { project("f"); project("a") }),
		"list_workers w1 w2|w3":        pagesOf(h, "list_workers", "", func(w operations.Worker) string { return w.Name }, nil),
	} {
		var pages []string
		for _, page := range got {
			pages = append(pages, strings.Join(page, " "))
		}
		tool, want, _ := strings.Cut(list, " ")
		if got := strings.Join(pages, "|"); got != want {
			t.Errorf("%s gives %s, not %s", tool, got, want)
		}
	}
	h.refused(root, operation.Invalid, "leave it out to start", "list_notes", `{"project_id":"site","cursor":"nonsense"}`)
	h.refused(root, operation.Invalid, "start again without a cursor", "list_repos", `{"cursor":"nonsense"}`)
	h.refused(root, operation.Invalid, "leave it out to start", "list_projects", `{"cursor":"No Such"}`)
	h.refused(root, operation.Invalid, "leave it out to start", "get_recent_events", `{"cursor":"nonsense"}`)
}
