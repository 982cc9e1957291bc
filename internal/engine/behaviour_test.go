package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/polltest"
	"chorus/internal/tool"
)

func is[T chat.Body](ev chat.Event) bool { _, ok := ev.Body.(T); return ok }

func bodies[T chat.Body](events []chat.Event) []T {
	var out []T
	for _, ev := range events {
		if b, ok := ev.Body.(T); ok {
			out = append(out, b)
		}
	}
	return out
}

func lastText(events []chat.Event) string {
	said := bodies[chat.Said](events)
	if len(said) == 0 {
		return ""
	}
	return said[len(said)-1].Blocks.Text()
}

// hold is a tool that says when it runs and waits to be let go.
func hold(name string, readOnly bool) (*fakeTool, chan string, chan struct{}) {
	began, release := make(chan string, 16), make(chan struct{}, 16)
	f := echo(readOnly).(*fakeTool)
	f.spec.Name = name
	f.run = func(ctx context.Context, args []byte) (tool.Result, error) {
		began <- string(args)
		select {
		case <-release:
			return tool.OK("held " + string(args)), nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
	return f, began, release
}

func TestTwoPromptsRunInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.say("!say one")
	r.say("!say two")
	events := r.untilEnds(2)
	said := bodies[chat.Said](events)
	if len(said) != 2 || said[0].Blocks.Text() != "one" || said[1].Blocks.Text() != "two" {
		t.Fatalf("said %v\n%s", said, show(events))
	}
	started, ended := 0, 0
	for _, ev := range events {
		if is[chat.RunStarted](ev) {
			started++
		}
		if is[chat.RunEnded](ev) {
			ended++
		}
		if started-ended > 1 {
			t.Fatal("two runs at once")
		}
	}
}

func TestQueueRefusesBeyondItsDepth(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newRig(t, f)
	r.config = func(c *engine.Config) { c.MaxWaiting = 2 }
	r.restart()
	r.say("!call act {}\n!---\n!say first")
	<-began
	for i := range 2 {
		if got := r.say("!say later"); got.Refused != "" {
			t.Fatalf("prompt %d was refused: %s", i, got.Refused)
		}
	}
	got := r.say("!say never")
	if got.Refused == "" {
		t.Fatal("the fourth prompt was not refused")
	}
	release <- struct{}{}
	events := r.untilEnds(3)
	if strings.Contains(show(events), `"text":"never"`) {
		t.Fatalf("the refused prompt ran\n%s", show(events))
	}
	if len(bodies[chat.Refused](events)) != 1 {
		t.Fatal("the refusal is not in the journal")
	}
}

// restart ends the engine and the store as they are and opens both again.
func (r *rig) restart() {
	r.t.Helper()
	r.close()
	r.open()
}

func TestAbortEndsTheRunAndTheQueueGoesOn(t *testing.T) {
	t.Parallel()
	f, began, _ := hold("act", false)
	r := newRig(t, f)
	r.say("!call act {\"text\":\"x\"}\n!call act {\"text\":\"y\"}\n!---\n!say never")
	<-began
	r.say("!say next")
	ok, err := r.engine.Abort(context.Background(), thread, "ada", false)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	events := r.untilEnds(2)
	ends := bodies[chat.RunEnded](events)
	if ends[0].Reason != chat.EndAborted || ends[1].Reason != chat.EndDone {
		t.Fatalf("ends %+v", ends)
	}
	ran := bodies[chat.ToolRan](events)
	if len(ran) != 2 || ran[0].Outcome != chat.Interrupted || ran[1].Outcome != chat.Skipped {
		t.Fatalf("ran %+v\n%s", ran, show(events))
	}
	if lastText(events) != "next" {
		t.Fatal(show(events))
	}
}

func TestAbortInMidStreamKeepsTheText(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.say("!say half of it\n!wait")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for item, err := range r.engine.Watch(ctx, thread, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := item.Live.(chat.Delta); ok && d.What == chat.DeltaText {
			break
		}
	}
	if ok, err := r.engine.Abort(ctx, thread, "ada", false); err != nil || !ok {
		t.Fatal(ok, err)
	}
	events := r.untilEnds(1)
	said := bodies[chat.Said](events)
	if len(said) != 1 || !said[0].Partial || !strings.HasPrefix("half of it", said[0].Blocks.Text()) || said[0].Blocks.Text() == "" {
		t.Fatalf("said %+v", said)
	}
	if n := len(bodies[chat.RunEnded](events)); n != 1 {
		t.Fatalf("%d ends", n)
	}
	r.say("!say still here")
	if got := lastText(r.untilEnds(2)); got != "still here" {
		t.Fatal(got)
	}
}

func TestAbortDuringBackoff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.say("!fail overloaded retry-after 60s")
	r.until(func(ev chat.Event) bool { return is[chat.Said](ev) })
	if ok, err := r.engine.Abort(context.Background(), thread, "ada", false); err != nil || !ok {
		t.Fatal(ok, err)
	}
	events := r.untilEnds(1)
	if end := bodies[chat.RunEnded](events)[0]; end.Reason != chat.EndAborted {
		t.Fatalf("%+v", end)
	}
}

func TestAbortWithNothingRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.say("!say hello")
	r.untilEnds(1)
	if ok, err := r.engine.Abort(context.Background(), thread, "ada", true); err != nil || ok {
		t.Fatal(ok, err)
	}
	if _, err := r.engine.Abort(context.Background(), "cli:here:nobody@helper", "ada", true); !errors.Is(err, journal.ErrUnknown) {
		t.Fatalf("abort of an unknown thread: %v", err)
	}
}

func TestStopAllEmptiesTheQueue(t *testing.T) {
	t.Parallel()
	f, began, _ := hold("act", false)
	r := newRig(t, f)
	r.say("!call act {}")
	<-began
	r.say("!say never")
	if _, err := r.engine.Abort(context.Background(), thread, "ada", true); err != nil {
		t.Fatal(err)
	}
	r.untilEnds(1)
	row, err := r.db.Thread(context.Background(), thread)
	if err != nil || row.Waiting != 0 || row.Status != chat.Idle {
		t.Fatalf("%+v %v", row, err)
	}
}

func steer(text string, mode chat.Intake) chat.Steered {
	return chat.Steered{From: chat.Participant{Name: "Ada"}, Principal: ada, Blocks: chat.TextBlocks(text), Mode: mode}
}

func TestSteerInterruptSkipsTheRestOfTheBatch(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newRig(t, f)
	r.say("!call act {\"text\":\"1\"}\n!call act {\"text\":\"2\"}\n!---\n!say never")
	<-began
	asPrompt, err := r.engine.Steer(context.Background(), thread, steer("!say changed my mind", chat.Interrupt))
	if err != nil || asPrompt {
		t.Fatal(asPrompt, err)
	}
	release <- struct{}{}
	events := r.untilEnds(1)
	ran := bodies[chat.ToolRan](events)
	if len(ran) != 2 || ran[0].Outcome != chat.Ran || ran[1].Outcome != chat.Skipped {
		t.Fatalf("%+v", ran)
	}
	if lastText(events) != "changed my mind" {
		t.Fatal(show(events))
	}
}

func TestSteerInjectWaitsForTheBatch(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newRig(t, f)
	r.say("!call act {\"text\":\"1\"}\n!call act {\"text\":\"2\"}\n!---\n!say never")
	<-began
	if _, err := r.engine.Steer(context.Background(), thread, steer("!say after both", chat.Inject)); err != nil {
		t.Fatal(err)
	}
	release <- struct{}{}
	release <- struct{}{}
	events := r.untilEnds(1)
	for _, ran := range bodies[chat.ToolRan](events) {
		if ran.Outcome != chat.Ran {
			t.Fatalf("%+v", ran)
		}
	}
	if lastText(events) != "after both" {
		t.Fatal(show(events))
	}
}

func TestSteerThatComesTooLateIsThePrompt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.say("!say done")
	r.untilEnds(1)
	asPrompt, err := r.engine.Steer(context.Background(), thread, steer("!say late", chat.Interrupt))
	if err != nil || !asPrompt {
		t.Fatal(asPrompt, err)
	}
	if got := lastText(r.untilEnds(2)); got != "late" {
		t.Fatal(got)
	}
}

func TestReadOnlyCallsOverlapAndAnswerInOrder(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	f := echo(true).(*fakeTool)
	f.run = func(ctx context.Context, args []byte) (tool.Result, error) {
		both.Done()
		both.Wait() // passes only if the two run at the same time
		return tool.OK(string(args)), nil
	}
	r := newRig(t, f)
	r.say("!call look {\"text\":\"1\"}\n!call look {\"text\":\"2\"}\n!---\n!say ok")
	events := r.untilEnds(1)
	ran := bodies[chat.ToolRan](events)
	if len(ran) != 2 || !strings.Contains(ran[0].Blocks.Text(), "1") || !strings.Contains(ran[1].Blocks.Text(), "2") {
		t.Fatalf("%+v", ran)
	}
	if len(bodies[chat.ToolBegan](events)) != 0 {
		t.Fatal("read-only calls need no mark")
	}
}

func TestDenialSkipsWhatWouldChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(true), echo(false))
	r.gate = func(q agent.ProposedCall) approval.Ruling {
		if strings.Contains(string(q.Args), "bad") {
			return approval.Ruling{Verdict: approval.Deny, Reason: "no bad things", Rule: "bad"}
		}
		return approval.Ruling{Verdict: approval.Allow}
	}
	r.say("!call act {\"text\":\"bad\"}\n!call act {\"text\":\"good\"}\n!call look {\"text\":\"x\"}\n!---\n!say {{last}}")
	events := r.untilEnds(1)
	got := map[string]chat.Outcome{}
	for _, ran := range bodies[chat.ToolRan](events) {
		got[ran.Call] = ran.Outcome
	}
	calls := bodies[chat.Said](events)[0].Blocks.Calls()
	want := []chat.Outcome{chat.Denied, chat.Skipped, chat.Ran}
	for i, c := range calls {
		if got[c.ID] != want[i] {
			t.Errorf("call %d: %s, want %s", i, got[c.ID], want[i])
		}
	}
	audit, err := r.db.AuditLog(context.Background(), storeAll)
	if err != nil || len(audit) != 2 {
		t.Fatalf("audit %+v %v", audit, err)
	}
}

func ask(q agent.ProposedCall) approval.Ruling {
	return approval.Ruling{Verdict: approval.Pending, Rule: "tool:act:.*"}
}

func TestApprovalSuspendsAndResumes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ok      bool
		outcome chat.Outcome
	}{{true, chat.Ran}, {false, chat.Denied}} {
		r := newRig(t, echo(false))
		r.gate = ask
		r.say("!call act {}\n!---\n!say after")
		events := r.until(func(ev chat.Event) bool { return is[chat.ApprovalAsked](ev) })
		asked := bodies[chat.ApprovalAsked](events)[0]
		// The question outlives the process.
		r.restart()
		row, err := r.db.Thread(context.Background(), thread)
		if err != nil || row.Status != chat.Waiting {
			t.Fatalf("%+v %v", row, err)
		}
		if err := r.engine.Answer(context.Background(), asked.ID, ada, c.ok, "because"); err != nil {
			t.Fatal(err)
		}
		if err := r.engine.Answer(context.Background(), asked.ID, ada, !c.ok, ""); !errors.Is(err, journal.ErrSettled) {
			t.Fatalf("second answer: %v", err)
		}
		events = r.untilEnds(1)
		ran := bodies[chat.ToolRan](events)
		if len(ran) != 1 || ran[0].Outcome != c.outcome {
			t.Fatalf("%+v\n%s", ran, show(events))
		}
		if lastText(events) != "after" {
			t.Fatal(show(events))
		}
		r.close()
	}
}

func TestAbortCancelsAPendingApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	r.gate = ask
	r.say("!call act {}")
	events := r.until(func(ev chat.Event) bool { return is[chat.ApprovalAsked](ev) })
	id := bodies[chat.ApprovalAsked](events)[0].ID
	if ok, err := r.engine.Abort(context.Background(), thread, "ada", false); err != nil || !ok {
		t.Fatal(ok, err)
	}
	r.untilEnds(1)
	a, err := r.db.Approval(context.Background(), id)
	if err != nil || a.State != approval.Cancelled {
		t.Fatalf("%+v %v", a, err)
	}
	if err := r.engine.Answer(context.Background(), id, ada, true, ""); !errors.Is(err, journal.ErrSettled) {
		t.Fatalf("answer after the abort: %v", err)
	}
}

func TestInterruptCancelsAPendingApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	r.gate = ask
	r.say("!call act {}\n!---\n!say never")
	events := r.until(func(ev chat.Event) bool { return is[chat.ApprovalAsked](ev) })
	id := bodies[chat.ApprovalAsked](events)[0].ID
	if _, err := r.engine.Steer(context.Background(), thread, steer("!say forget it", chat.Interrupt)); err != nil {
		t.Fatal(err)
	}
	if got := lastText(r.untilEnds(1)); got != "forget it" {
		t.Fatal(got)
	}
	if a, err := r.db.Approval(context.Background(), id); err != nil || a.State != approval.Cancelled {
		t.Fatalf("%+v %v", a, err)
	}
}

func TestDeadlineEndsAnApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	r.gate = ask
	r.asking.For = time.Millisecond
	r.config = func(c *engine.Config) { c.SweepEvery = 10 * time.Millisecond }
	r.restart()
	r.say("!call act {}\n!---\n!say {{last}}")
	events := r.untilEnds(1)
	if ran := bodies[chat.ToolRan](events); len(ran) != 1 || ran[0].Outcome != chat.Denied {
		t.Fatal(show(events))
	}
	if got := bodies[chat.ApprovalAnswered](events); len(got) != 1 || got[0].By != "deadline" {
		t.Fatalf("%+v", got)
	}
}

func TestNobodyToAskEndsTheRunDenied(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	r.gate = func(agent.ProposedCall) approval.Ruling {
		return approval.Ruling{Verdict: approval.End, Reason: "nobody to ask"}
	}
	r.say("!call act {}\n!---\n!say never")
	events := r.untilEnds(1)
	if end := bodies[chat.RunEnded](events)[0]; end.Reason != chat.EndDenied {
		t.Fatalf("%+v", end)
	}
}

func TestFailuresAreRetriedThenSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.say("!fail overloaded once\n!say recovered")
	events := r.untilEnds(1)
	if lastText(events) != "recovered" || len(bodies[chat.Asked](events)) != 2 {
		t.Fatal(show(events))
	}
	r.say("!fail overloaded")
	events = r.untilEnds(2)
	end := bodies[chat.RunEnded](events)[1]
	if end.Reason != chat.EndFailed || end.Error == nil || end.Error.Kind != "overloaded" {
		t.Fatalf("%+v", end)
	}
	if n := len(bodies[chat.Asked](events)); n != 2+4 {
		t.Fatalf("%d attempts", n)
	}
	r.say("!fail auth")
	events = r.untilEnds(3)
	if n := len(bodies[chat.Asked](events)); n != 2+4+1 {
		t.Fatalf("a wrong key was tried again: %d", n)
	}
	r.say("!say usable")
	if got := lastText(r.untilEnds(4)); got != "usable" {
		t.Fatal(got)
	}
}

func TestLimitsEndARun(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	r.steps = 2
	r.say("!call act {\"text\":\"1\"}\n!---\n!call act {\"text\":\"2\"}\n!---\n!call act {\"text\":\"3\"}")
	events := r.untilEnds(1)
	if end := bodies[chat.RunEnded](events)[0]; end.Reason != chat.EndLimit || end.Steps != 2 {
		t.Fatalf("%+v", end)
	}
	r.steps = 50
	r.say(strings.Repeat("!call act {}\n!---\n", 20))
	events = r.untilEnds(2)
	if end := bodies[chat.RunEnded](events)[1]; end.Error == nil || end.Error.Kind != "breaker" || end.Steps > 6 {
		t.Fatalf("identical calls: %+v", end)
	}
	var script strings.Builder
	for i := range 20 {
		fmt.Fprintf(&script, "!call nothing {\"n\":%d}\n!---\n", i)
	}
	r.say(script.String())
	events = r.untilEnds(3)
	if end := bodies[chat.RunEnded](events)[2]; end.Error == nil || end.Error.Kind != "breaker" || end.Steps > 6 {
		t.Fatalf("failing calls: %+v", end)
	}
}

func TestCutAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	r.say("!say part one\n!stop length\n!---\n!say part two")
	events := r.untilEnds(1)
	if said := bodies[chat.Said](events); len(said) != 2 || said[1].Blocks.Text() != "part two" {
		t.Fatal(show(events))
	}
	r.say("!call act {}\n!stop length\n!---\n!say {{last}}")
	events = r.untilEnds(2)
	ran := bodies[chat.ToolRan](events)
	if len(ran) != 1 || ran[0].Outcome != chat.Invalid || !strings.Contains(lastText(events), "length limit") {
		t.Fatal(show(events))
	}
	r.say(strings.Repeat("!say more\n!stop length\n!---\n", 12))
	events = r.untilEnds(3)
	if n := bodies[chat.RunEnded](events)[2].Steps; n > 5 {
		t.Fatalf("continued %d times", n)
	}
}

func TestUnknownToolAndPanic(t *testing.T) {
	t.Parallel()
	f := echo(false).(*fakeTool)
	f.run = func(context.Context, []byte) (tool.Result, error) { panic("boom") }
	r := newRig(t, f)
	r.say("!call nope {}\n!---\n!say {{last}}")
	if got := lastText(r.untilEnds(1)); !strings.Contains(got, "Unknown tool") {
		t.Fatal(got)
	}
	r.say("!call act {}\n!---\n!say never")
	events := r.untilEnds(2)
	end := bodies[chat.RunEnded](events)[1]
	if end.Reason != chat.EndFailed || !strings.Contains(end.Text, "boom") {
		t.Fatalf("%+v", end)
	}
	r.say("!say usable")
	if got := lastText(r.untilEnds(3)); got != "usable" {
		t.Fatal(got)
	}
}

func TestGracefulStopGoesOnLater(t *testing.T) {
	t.Parallel()
	f, began, release := hold("act", false)
	r := newRig(t, f)
	r.say("!call act {}\n!---\n!say {{last}}")
	<-began
	r.restart()
	release <- struct{}{}
	events := r.untilEnds(1)
	ran := bodies[chat.ToolRan](events)
	if len(ran) != 1 || ran[0].Outcome != chat.Interrupted {
		t.Fatal(show(events))
	}
	if len(began) != 0 {
		t.Fatal("a call with side effects ran twice")
	}
}

func TestIdleThreadsCostNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config = func(c *engine.Config) { c.IdleAfter = time.Millisecond }
	r.restart()
	r.say("!say one")
	r.untilEnds(1)
	polltest.Until(t, "the actor goes", func() bool { return r.engine.Actors() == 0 })
	r.say("!say two")
	if got := lastText(r.untilEnds(2)); got != "two" {
		t.Fatal(got)
	}
}
