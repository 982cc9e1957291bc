package runner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/hook"
	"chorus/internal/store/tasks"
	"chorus/internal/work"
)

// board is a bench with a project, whose work triggers hooks.
func board(t *testing.T) (*bench, *tasks.Tasks) {
	t.Helper()
	b := newBench(t)
	q := tasks.New(b.db.DB, nil)
	for _, id := range []string{"site", "other"} {
		if _, err := q.CreateProject(t.Context(), work.Project{ID: id, Name: id, Weight: 1, MaxRuns: 1, State: work.Active, Owner: ada}); err != nil {
			t.Fatal(err)
		}
	}
	return b, q
}

func newTask(t *testing.T, q *tasks.Tasks, project, title string, owner chat.Principal) work.Task {
	t.Helper()
	made, err := q.Create(t.Context(), work.NewTask{Task: work.Task{Project: project, Title: title, Description: title, Agent: "worker", Priority: 100, MaxRetries: 1, Owner: owner}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func complete(t *testing.T, q *tasks.Tasks, id string) {
	t.Helper()
	if _, err := q.Change(t.Context(), id, func(t *work.Task, now time.Time) ([]work.Event, error) {
		return []work.Event{t.Override(work.Completed, "system:queue", now)}, nil
	}); err != nil {
		t.Fatal(err)
	}
}

// workRunner is a new process on the same store.
func (b *bench) workRunner(w *worker, q *tasks.Tasks) *Runner {
	r := b.runner(w)
	r.Sources = append(r.Sources, NewWork(q, b.bus))
	return r
}

func TestWorkTriggersHooksOnceAcrossRestarts(t *testing.T) {
	t.Parallel()
	b, q := board(t)
	w := newWorker()
	before := newTask(t, q, "site", "before", ada)
	complete(t, q, before.ID)
	b.pass(time.Minute)
	on := hook.Trigger{Type: hook.OnEvent, Event: "task_completed"}
	b.hook(hook.Hook{ID: "done", Definition: hook.Definition{Trigger: on, Since: b.clock(), Template: "{{event.task.title}} of {{event.project_id}}: {{event.from}} to {{event.to}}"}})
	narrow := on
	narrow.Where = map[string]string{"task.title": "sec*"}
	b.hook(hook.Hook{ID: "narrow", Definition: hook.Definition{Trigger: narrow, Since: b.clock(), Template: "x"}})
	b.hook(hook.Hook{ID: "elsewhere", Project: "other", Definition: hook.Definition{Trigger: on, Since: b.clock(), Template: "x"}})
	b.pass(time.Minute)
	first := newTask(t, q, "site", "first", ada)
	complete(t, q, first.ID)
	for range 3 { // killed and begun again, it reads the same and triggers nothing anew
		b.look(b.workRunner(w, q))
	}
	if runs := b.runs("done"); len(runs) != 1 || runs[0].Prompt != "first of site: READY to COMPLETED" || runs[0].Reason != "event:task_completed" {
		t.Fatalf("%+v", runs)
	}
	b.pass(2 * time.Hour) // its cooldown is over
	second := newTask(t, q, "site", "second", ada)
	complete(t, q, second.ID)
	r := b.workRunner(w, q)
	b.look(r)
	b.look(r)
	if n, m, e := len(b.runs("done")), len(b.runs("narrow")), len(b.runs("elsewhere")); n != 2 || m != 1 || e != 0 {
		t.Errorf("%d, %d and %d runs", n, m, e)
	}
	at, err := q.EventReader(t.Context(), WorkReader)
	if events, _ := q.Events(t.Context(), work.EventFilter{Limit: 1}); err != nil || at != events[0].ID {
		t.Errorf("the place is %d, the last event %d: %v", at, events[0].ID, err)
	}
}

func TestAHookIsNotTriggeredByTheTaskThatItMade(t *testing.T) {
	t.Parallel()
	b, q := board(t)
	w := newWorker()
	b.hook(hook.Hook{ID: "loop", Definition: hook.Definition{Trigger: hook.Trigger{Type: hook.OnEvent, Event: "task_completed"}, Since: begin, Template: "x"}})
	b.pass(time.Minute)
	made := newTask(t, q, "site", "made by the hook", chat.Principal{Kind: chat.HookRule, ID: "loop", Name: "loop", For: &ada})
	complete(t, q, made.ID)
	b.look(b.workRunner(w, q))
	runs := b.runs("loop")
	if len(runs) != 1 || runs[0].State != hook.Skipped || !strings.Contains(runs[0].Why, "triggered by its own run") {
		t.Fatalf("%+v", runs)
	}
	// A row of hooks that make tasks for each other ends as well.
	owner := ada
	for i := range 3 {
		behind := owner
		owner = chat.Principal{Kind: chat.HookRule, ID: fmt.Sprint("h", i), For: &behind}
	}
	b.pass(time.Hour)
	complete(t, q, newTask(t, q, "site", "far down", owner).ID)
	b.look(b.workRunner(w, q))
	if runs := b.runs("loop"); len(runs) != 2 || runs[0].State != hook.Skipped {
		t.Errorf("%+v", runs)
	}
}

func TestEveryEventOfTheWorkCanTrigger(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"task_completed", "task.completed", "project_created", "repo_added", "git_merged", "note_created", "task_approval_reminder", "task_plan_approved", "task_awaiting_plan_approval"} {
		if _, err := hook.ParseTrigger([]byte(`{"type":"event","event_type":"`+name+`"}`), EventTypes(), begin); err != nil {
			t.Error(err)
		}
	}
}
