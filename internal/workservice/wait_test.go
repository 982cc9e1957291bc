package workservice_test

import (
	"context"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/workservice"
)

// Whoever waits for the work gets what happens, as soon as it does, and only what is theirs to see.
func TestWaitForWork(t *testing.T) {
	bob := caller(chat.TokenHolder, "bob", operation.Chat)
	t.Parallel()
	changes := make(chan struct{}, 2) // room for both: whoever begins to wait late finds the event without being told
	h := newHome(t, func(o *workservice.Options) {
		o.Changes = func(context.Context) <-chan struct{} { return changes }
	})
	must[operations.Project](h, grace, "create_project", `{"name":"Site"}`)
	must[operations.Project](h, bob, "create_project", `{"name":"Own"}`)
	wait := func(by operation.Caller, in operations.WorkWait) operations.WorkNews {
		t.Helper()
		out, err := operations.WaitForWork.Call(t.Context(), h.Local, by, in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	now := wait(grace, operations.WorkWait{})
	if now.After == 0 || len(now.Items) > 0 {
		t.Fatalf("where now is: %+v", now)
	}
	answer := make(chan operations.WorkNews, 1)
	go func() { answer <- wait(grace, operations.WorkWait{After: now.After, Wait: 60}) }()
	must[operations.Task](h, bob, "create_task", `{"project_id":"own","title":"mine alone"}`)
	changes <- struct{}{} // somebody else's: she goes on waiting
	task := must[operations.Task](h, grace, "create_task", `{"project_id":"site","title":"for all","max_retries":1}`)
	changes <- struct{}{}
	news := <-answer
	if len(news.Items) == 0 || news.Items[0].TaskID != task.ID || news.After < news.Items[0].ID {
		t.Errorf("%+v", news)
	}
	for _, e := range news.Items {
		if e.ProjectID != "site" {
			t.Errorf("she sees what is not hers: %+v", e)
		}
	}
	if task.MaxRetries != 1 {
		t.Errorf("it is tried %d times", task.MaxRetries)
	}
	if of := wait(root, operations.WorkWait{After: now.After, Task: task.ID}); len(of.Items) == 0 || of.Items[0].TaskID != task.ID {
		t.Errorf("of one task: %+v", of)
	}
	go func() { answer <- wait(grace, operations.WorkWait{After: news.After, Wait: 60}) }()
	close(changes) // the server stops
	if last := <-answer; len(last.Items) > 0 || last.After < news.After {
		t.Errorf("at the end: %+v", last)
	}
	h.refused(root, operation.Invalid, "max", "create_task", `{"project_id":"site","title":"never","max_retries":0}`)
	if _, err := operations.WaitForWork.Call(t.Context(), h.Local, grace, operations.WorkWait{Project: "own", After: 1}); operation.KindOf(err) != operation.NotFound {
		t.Errorf("another's project: %v", err)
	}
}
