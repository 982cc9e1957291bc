package workservice_test

import (
	"slices"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/work"
)

// A list of approvers is kept by the server, whichever way somebody tries to say yes.
func TestOnlyApproversSayYes(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	must[operations.Project](h, root, "edit_project", `{"project_id":"site","shared":true}`)
	h.refused(grace, operation.Forbidden, "only the owner of project site may change who may approve its tasks", "edit_project", `{"project_id":"site","approvers":"token:grace"}`)
	h.refused(root, operation.Invalid, "is not a valid approver", "edit_project", `{"project_id":"site","approvers":"grace"}`)
	p := must[operations.Project](h, root, "edit_project", `{"project_id":"site","approvers":"token:linus, role:lead"}`)
	if !slices.Equal(p.Approvers, []string{"token:linus", "role:lead"}) || p.OwnerName == "" {
		t.Errorf("%+v", p)
	}
	linus := caller(chat.TokenHolder, "linus", operation.Chat)
	lead := caller(chat.TokenHolder, "mara", operation.Chat)
	lead.Principal.Roles = []string{"lead"}

	result, plan := h.task("result", `,"requires_approval":true`), h.task("plan", "")
	h.refused(grace, operation.Forbidden, "only token:linus, role:lead may approve tasks of project site", "edit_task", `{"task_id":"`+result.ID+`","requires_approval":false}`)
	h.move(result.ID, work.AwaitingApproval)
	h.move(plan.ID, work.AwaitingPlanApproval)
	for _, by := range []operation.Caller{grace, root} { // whoever runs this Chorus can change the list, but is not on it
		for name, args := range map[string]string{"approve_task": `{"task_id":"` + result.ID + `"}`, "approve_plan": `{"task_id":"` + plan.ID + `"}`, "delete_plan": `{"task_id":"` + plan.ID + `"}`} {
			h.refused(by, operation.Forbidden, "may approve tasks of project site; ask one of them", name, args)
		}
	}
	h.refused(root, operation.Forbidden, "may approve tasks of project site", "set_task_status", `{"task_id":"`+result.ID+`","status":"COMPLETED"}`)
	worker := inSession(linus, threadOf(result))
	h.refused(worker, operation.Forbidden, "workers cannot approve", "approve_task", `{"task_id":"`+result.ID+`"}`)
	for _, by := range []operation.Caller{grace, root, linus, lead} {
		list, _, err := h.Asking(t.Context(), by, "", 10)
		if err != nil || len(list) != 2 || list[0].Who != "token:linus, role:lead" || list[0].MayAnswer != (by.Principal.ID == "linus" || by.Principal.ID == "mara") {
			t.Errorf("%s: %+v %v", by.Principal, list, err)
		}
	}
	if moved := must[operations.TaskMove](h, lead, "approve_task", `{"task_id":"`+result.ID+`"}`); moved.Status != "VERIFYING" {
		t.Errorf("%+v", moved)
	}
	if shown := must[operations.Task](h, grace, "get_task", `{"task_id":"`+plan.ID+`"}`); !slices.Equal(shown.Approvers, []string{"token:linus", "role:lead"}) {
		t.Errorf("%+v", shown.Approvers)
	}
	must[operations.Project](h, root, "edit_project", `{"project_id":"site","approvers":"anyone"}`)
	h.move(result.ID, work.AwaitingApproval)
	must[operations.TaskMove](h, grace, "approve_task", `{"task_id":"`+result.ID+`"}`)
}

// Tasks that wait are listed for those who see them, those that wait longest first, and page by page.
func TestTasksThatWaitAreListed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	var want []string
	for _, title := range []string{"one", "two", "three", "four", "five"} {
		one := h.task(title, "")
		h.now = h.now.Add(time.Minute)
		h.move(one.ID, work.AwaitingApproval)
		want = append(want, one.ID)
	}
	h.task("not yet", "")
	var got []string
	cursor, pages := "", 0
	for {
		list, next, err := h.Asking(t.Context(), root, cursor, 2)
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		for _, a := range list {
			if a.Kind != operations.AsksResult || a.Project != "site" || a.ID != a.Task || a.Answer == "" || len(a.Actions) != 1 {
				t.Errorf("%+v", a)
			}
			got = append(got, a.ID)
		}
		if pages++; next == "" {
			break
		}
		cursor = next
	}
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%v in %d pages, expected %v", got, pages, want)
	}
	if _, _, err := h.Asking(t.Context(), root, "nonsense", 2); operation.KindOf(err) != operation.Invalid {
		t.Error(err)
	}
	if list, _, err := h.Asking(t.Context(), grace, "", 10); err != nil || len(list) > 0 {
		t.Errorf("a project that is not theirs: %+v %v", list, err)
	}
	if _, err := h.TaskApproval(t.Context(), grace, want[0]); operation.KindOf(err) != operation.NotFound {
		t.Error(err)
	}
	h.move(want[0], work.Completed)
	if _, err := h.TaskApproval(t.Context(), root, want[0]); operation.KindOf(err) != operation.Conflict {
		t.Error(err)
	}
}

// threadOf is the conversation of a task's worker.
func threadOf(one operations.Task) chat.ThreadID {
	id, _ := chat.NewThreadID(chat.WorkTransport, one.ProjectID, one.ID, "main")
	return id
}

// A task whose merge has conflicts gets one that resolves them, and no other gets one.
func TestResolveConflict(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.site()
	one := h.task("one", `,"requires_approval":true`)
	h.refused(root, operation.Conflict, "has no merge conflict (status: READY)", "resolve_conflict", `{"task_id":"`+one.ID+`"}`)
	h.move(one.ID, work.Blocked)
	h.refused(root, operation.Conflict, "has no merge conflict (status: BLOCKED)", "resolve_conflict", `{"task_id":"`+one.ID+`"}`)
	_, err := h.queue.Change(t.Context(), one.ID, func(t *work.Task, _ time.Time) ([]work.Event, error) {
		t.Why, t.Branch = work.ConflictWords+" in style.css: both changed it", one.ID+"/one"
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h.refused(grace, operation.NotFound, "not found", "resolve_conflict", `{"task_id":"`+one.ID+`"}`)
	made := must[operations.Task](h, root, "resolve_conflict", `{"task_id":"`+one.ID+`"}`)
	again := must[operations.Task](h, root, "resolve_conflict", `{"task_id":"`+one.ID+`"}`)
	if made.ID != again.ID || made.Resolves != one.ID || !made.Approval || made.Repo != "site" || made.Status != "READY" {
		t.Errorf("%+v, then %+v", made, again)
	}
	if shown := must[operations.Task](h, root, "get_task", `{"task_id":"`+one.ID+`"}`); shown.ResolvedBy != made.ID {
		t.Errorf("%+v", shown)
	}
	if p := must[operations.Project](h, root, "edit_project", `{"project_id":"site","on_conflict":"task"}`); p.OnConflict != "task" {
		t.Errorf("%+v", p)
	}
	if p := must[operations.Project](h, root, "edit_project", `{"project_id":"site","on_conflict":"ask"}`); p.OnConflict != "ask" {
		t.Errorf("%+v", p)
	}
}
