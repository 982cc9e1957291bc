package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/polltest"
	"chorus/internal/tool"
)

// narrow is a rig that does so many runs at the same time.
func narrow(t *testing.T, runs int, tools ...tool.Tool) *rig {
	t.Helper()
	r := newRig(t, tools...)
	r.config = func(c *engine.Config) { c.MaxRuns = runs }
	r.restart()
	return r
}

func threadOf(name string) chat.ThreadID { return chat.ThreadID("cli:here:" + name + "@helper") }

// tell says something to one of several threads, which belongs to whoever says it first.
func (r *rig) tell(name string, who chat.Principal, text string) {
	r.t.Helper()
	_, err := r.engine.Deliver(context.Background(), chat.Inbound{Threads: []chat.ThreadID{threadOf(name)}, Principal: who, Blocks: chat.TextBlocks(text), Prompt: true},
		func(id chat.ThreadID) journal.Thread { return journal.Thread{ID: id, Agent: "helper", Owner: who} })
	if err != nil {
		r.t.Fatal(err)
	}
}

// waitQueued waits until these wait for a slot, in this order.
func (r *rig) waitQueued(names ...string) {
	r.t.Helper()
	want := make([]chat.ThreadID, len(names))
	for i, name := range names {
		want[i] = threadOf(name)
	}
	polltest.Until(r.t, fmt.Sprintf("%v in the queue", names), func() bool { return slices.Equal(r.engine.Queued(), want) })
}

func (r *rig) waitEnded(names ...string) {
	r.t.Helper()
	for _, name := range names {
		polltest.Until(r.t, name+" is answered", func() bool {
			row, err := r.db.Thread(context.Background(), threadOf(name))
			return err == nil && row.Status == chat.Idle && row.Waiting == 0
		})
	}
}

func holding(name string) string {
	return fmt.Sprintf("!call hold {\"text\":%q}\n!---\n!say done", name)
}

// Somebody who has started much does not keep others waiting: owners take turns, and each one's conversations are
// served in the order in which they came.
func TestRunsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	f, began, release := hold("hold", false)
	r := narrow(t, 1, f)
	r.tell("a1", ada, holding("a1"))
	<-began
	var want []string
	for _, next := range []struct {
		name string
		who  chat.Principal
	}{{"a2", ada}, {"a3", ada}, {"b1", bob}, {"b2", bob}} {
		r.tell(next.name, next.who, holding(next.name))
		want = append(want, next.name)
		r.waitQueued(want...)
	}
	var order []string
	for range 4 {
		release <- struct{}{}
		order = append(order, <-began)
	}
	release <- struct{}{}
	if got := fmt.Sprint(order); got != `[{"text":"b1"} {"text":"a2"} {"text":"b2"} {"text":"a3"}]` {
		t.Errorf("served in the order %s", got)
	}
	r.waitEnded("a1", "a2", "a3", "b1", "b2")
	r.waitQueued()
}

// One conversation with many prompts does not keep the slot from another.
func TestConversationsTakeTurns(t *testing.T) {
	t.Parallel()
	f, began, release := hold("hold", false)
	r := narrow(t, 1, f)
	r.tell("one", ada, holding("first"))
	<-began
	r.tell("one", ada, holding("second"))
	r.tell("two", ada, holding("other"))
	r.waitQueued("two")
	release <- struct{}{}
	if got := <-began; got != `{"text":"other"}` {
		t.Errorf("after the first run came %s", got)
	}
	release <- struct{}{}
	release <- struct{}{}
	r.waitEnded("one", "two")
}

// A run that waits for a yes holds no slot, and what was answered goes on.
func TestAYesHoldsNoSlot(t *testing.T) {
	t.Parallel()
	r := narrow(t, 1, echo(false))
	r.gate = ask
	r.say("!call act {}\n!---\n!say after")
	a := r.asked(1)
	r.tell("other", bob, "!say free")
	r.waitEnded("other")
	if err := r.engine.Answer(context.Background(), a.ID, ada, true, ""); err != nil {
		t.Fatal(err)
	}
	r.untilEnds(1)
}

// Neither does one whose call asks somebody while it runs; it has a slot again before it goes on.
func TestAQuestionDuringACallLendsTheSlot(t *testing.T) {
	t.Parallel()
	f, began, release := hold("hold", false)
	asks := echo(false).(*fakeTool)
	asks.spec.Name = "asks"
	answered := make(chan error, 1)
	var r *rig
	asks.run = func(ctx context.Context, _ []byte) (tool.Result, error) {
		err := r.engine.AskDuring(ctx, approval.Approval{Thread: thread, Call: chat.ToolUse{ID: "x", Name: "asks"}, Actions: []string{"tool:bash:curl"}}, engine.Asking{Who: "anyone"})
		answered <- err
		return tool.OK("asked"), nil
	}
	r = narrow(t, 1, f, asks)
	r.say("!call asks {}\n!---\n!say after")
	a := r.asked(1)
	r.tell("other", bob, holding("other"))
	<-began // although the first run is not over
	if err := r.engine.Answer(context.Background(), a.ID, ada, true, ""); err != nil {
		t.Fatal(err)
	}
	r.waitQueued("01test")
	select {
	case <-answered:
		t.Fatal("it went on while another run had the only slot")
	default:
	}
	release <- struct{}{}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	r.untilEnds(1)
	r.waitEnded("other")
}

// An agent that waits for another one holds no slot: with a single one a row of them comes to its end.
func TestAgentsBelowAgentsNeedNoSlotsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := family(t)
	inner := r.config
	r.config = func(c *engine.Config) { inner(c); c.MaxRuns = 1 }
	r.restart()
	r.say(giving(giving("!say deepest")+"\n!---\n!say middle") + "\n" + giving("!say beside") + "\n!---\n!say got {{last}}")
	if end := bodies[chat.RunEnded](r.untilEnds(1))[0]; end.Reason != chat.EndDone {
		t.Errorf("it ended %+v", end)
	}
}

// What waits when the process ends is answered by the next one; an abort needs no slot.
func TestNothingInTheQueueIsLost(t *testing.T) {
	t.Parallel()
	f, began, release := hold("hold", false)
	r := narrow(t, 1, f)
	r.tell("one", ada, holding("one"))
	<-began
	r.tell("two", ada, "!say two")
	r.waitQueued("two")
	inner := r.config
	r.config = func(c *engine.Config) { inner(c); c.SweepEvery = 5 * time.Millisecond }
	r.restart() // the run that was on is interrupted, and asks again
	release <- struct{}{}
	r.waitEnded("one", "two")
	said := bodies[chat.Said](r.events(threadOf("two")))
	if len(said) != 1 || said[0].Blocks.Text() != "two" {
		t.Errorf("the prompt that waited was answered with %v", said)
	}
}

func TestAnAbortNeedsNoSlot(t *testing.T) {
	t.Parallel()
	f, began, release := hold("hold", false)
	r := narrow(t, 1, f)
	r.tell("one", ada, holding("one"))
	<-began
	r.tell("two", ada, "!say two")
	r.waitQueued("two")
	if ended, err := r.engine.Abort(context.Background(), threadOf("two"), "ada", true); err != nil || !ended {
		t.Fatalf("%v, %v", ended, err)
	}
	r.waitQueued()
	r.waitEnded("two")
	if len(bodies[chat.RunStarted](r.events(threadOf("two")))) != 0 {
		t.Error("it was run all the same")
	}
	release <- struct{}{}
	r.waitEnded("one")
}
