package engine_test

import (
	"context"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
)

// A program that waited for a yes when its server was killed left a question open until its deadline, and an answer
// changed nothing.
func TestWhatACallAskedForEndsWithIt(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newRig(t, f)
	r.say("!call act {}\n!---\n!say {{last}}")
	<-began
	call := bodies[chat.ToolBegan](r.until(is[chat.ToolBegan]))[0].Call
	run, err := r.db.LastRun(context.Background(), thread)
	if err != nil {
		t.Fatal(err)
	}
	dead, bury := context.WithTimeout(context.Background(), time.Minute) // the process that asks does not notice the end by itself
	defer bury()
	other := r.second(false)
	answer := make(chan error, 1)
	go func() {
		answer <- other.AskDuring(dead, approval.Approval{Thread: thread, Run: run, Call: chat.ToolUse{ID: call, Name: "act"}, Actions: []string{"tool:bash:curl"}}, engine.Asking{Who: "anyone"})
	}()
	for open := 0; open == 0; { // it stands in the other process's stream, not in ours
		select {
		case err := <-answer:
			t.Fatal(err)
		default:
		}
		found, err := r.db.Approvals(dead, approval.Filter{Thread: thread, State: approval.Open})
		if err != nil {
			t.Fatal(err)
		}
		open = len(found)
	}
	r.restart()
	release <- struct{}{}
	r.untilEnds(1)
	open, err := r.db.Approvals(context.Background(), approval.Filter{Thread: thread, State: approval.Open})
	if err != nil || len(open) != 0 {
		t.Errorf("still open: %+v, %v", open, err)
	}
	bury()
	if err := <-answer; err == nil {
		t.Error("nobody said yes, and it may go on")
	}
}
