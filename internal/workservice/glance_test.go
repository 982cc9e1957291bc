package workservice_test

import (
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// The glance names all that waits for somebody, plans and failures too, and puts what a paused project has behind what will be begun.
func TestGlance(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	task := func(project, title string) string {
		t.Helper()
		made, err := operations.CreateTask.Call(ctx, h.Local, root, operations.NewTask{Title: title, Project: project})
		must(err)
		return made.ID
	}
	for _, name := range []string{"Held", "Open"} {
		_, err := operations.CreateProject.Call(ctx, h.Local, root, operations.NewProject{Name: name})
		must(err)
	}
	_, err := operations.PauseProject.Call(ctx, h.Local, root, operations.ProjectRef{ID: "held"})
	must(err)
	later, sooner := task("held", "later"), task("open", "sooner")
	asking := map[work.State]string{}
	for _, state := range []work.State{work.WaitingInput, work.AwaitingPlanApproval, work.AwaitingApproval, work.Blocked, work.Failed} {
		asking[state] = task("open", string(state))
		if state == work.AwaitingPlanApproval { // which nobody can set
			h.move(asking[state], state)
			continue
		}
		_, err := operations.SetTaskStatus.Call(ctx, h.Local, root, operations.TaskStatusChange{ID: asking[state], Status: string(state)})
		must(err)
	}
	status, err := operations.GetWorkStatus.Call(ctx, h.Local, root, operation.None{})
	must(err)
	if len(status.Ready) != 2 || status.Ready[0].ID != sooner || status.Ready[1].ID != later || status.Ready[0].Why != "" || status.Ready[1].Why != "its project is paused" {
		t.Errorf("next: %+v", status.Ready)
	}
	if len(status.Attention) != len(asking) {
		t.Errorf("waits for somebody: %+v", status.Attention)
	}
	for _, one := range status.Attention {
		if asking[work.State(one.Status)] != one.ID {
			t.Errorf("%s is %s", one.ID, one.Status)
		}
	}
}
