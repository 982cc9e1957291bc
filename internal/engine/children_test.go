package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"chorus/internal/agent"
	"chorus/internal/agent/toolcall"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/polltest"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// family is a rig whose agents can give work to others: the argument text is what the other is told.
func family(t *testing.T, more ...tool.Tool) *rig {
	t.Helper()
	give := echo(false).(*fakeTool)
	give.spec.Name, give.spec.Deferred = "give", true
	r := newRig(t, append(more, give)...)
	r.config = func(c *engine.Config) {
		c.Adopt = func(id chat.ThreadID) bool { return id == thread } // as a terminal does
		inner := c.Setup
		c.Setup = func(ctx context.Context, row journal.Thread, work engine.Work) (engine.Setup, error) {
			s, err := inner(ctx, row, work)
			if err != nil {
				return s, err
			}
			s.Agent.Defer = func(_ context.Context, call toolcall.Call, run *transcript.Run) (agent.Deferral, error) {
				var in struct{ Text string }
				if err := json.Unmarshal(call.Args, &in); err != nil {
					return agent.Deferral{}, err
				}
				child := chat.ThreadID("cli:here:" + id.New() + "@worker")
				by := chat.Acting(chat.OtherAgent, row.Agent, call.Senders)
				parent := journal.Parent{Thread: row.ID, Run: run.ID, Call: call.Use.ID, Root: run.ID}
				if row.Parent.Root != "" {
					parent.Root = row.Parent.Root
				}
				return agent.Deferral{Thread: child, Begin: journal.Commit{Thread: child, Create: &journal.Thread{ID: child, Owner: row.Owner, Parent: parent},
					Events: []chat.Event{{Thread: child, Platform: "agent", PlatformID: run.ID + "/" + call.Use.ID,
						Body: chat.Received{Principal: by, Prompt: true, Blocks: chat.TextBlocks(in.Text)}}}}}, nil
			}
			return s, nil
		}
	}
	r.restart()
	return r
}

func giving(words string) string {
	args, _ := json.Marshal(map[string]string{"text": words})
	return "!call give " + string(args)
}

func (r *rig) deferred(n int) []chat.Deferred {
	r.t.Helper()
	return bodies[chat.Deferred](r.until(func(ev chat.Event) bool {
		if is[chat.Deferred](ev) {
			n--
		}
		return n == 0
	}))
}

func (r *rig) row(id chat.ThreadID) journal.Thread {
	r.t.Helper()
	row, err := r.db.Thread(context.Background(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return row
}

func (r *rig) events(id chat.ThreadID) []chat.Event {
	r.t.Helper()
	events, err := r.db.Events(context.Background(), id, 0, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	return events
}

// Two agents work at the same time, what follows in the answer does not wait for them, and their answers are the
// results of the calls, in the order of the calls.
func TestAgentsWorkForAnAgent(t *testing.T) {
	t.Parallel()
	hold, began, release := hold("hold", false)
	r := family(t, hold, echo(false))
	r.say(giving("!call hold {\"text\":\"a\"}\n!---\n!say first answer") + "\n" + giving("!call hold {\"text\":\"b\"}\n!---\n!say second answer") +
		"\n!call act {\"text\":\"meanwhile\"}\n!---\n!say got {{last}}")
	<-began
	<-began
	r.until(func(ev chat.Event) bool { ran, ok := ev.Body.(chat.ToolRan); return ok && ran.Name == "act" })
	polltest.Until(t, "the parent rests", func() bool { return r.row(thread).Status == chat.Delegated })
	release <- struct{}{}
	release <- struct{}{}
	events := r.untilEnds(1)
	results := map[string]string{}
	for _, ran := range bodies[chat.ToolRan](events) {
		results[ran.Call] = ran.Blocks.Text()
		if ran.Name == "give" && ran.UntrustedFrom != "agent worker" {
			t.Errorf("another agent's words are told as %q", ran.UntrustedFrom)
		}
	}
	calls := bodies[chat.Deferred](events)
	if len(calls) != 2 || results[calls[0].Call] != "first answer" || results[calls[1].Call] != "second answer" {
		t.Fatalf("results %v\n%s", results, show(events))
	}
	child := r.row(calls[0].Thread)
	if child.Parent.Thread != thread || child.Parent.Call != calls[0].Call || child.Status != chat.Idle {
		t.Errorf("the child's row is %+v", child)
	}
	end := bodies[chat.RunEnded](events)[0]
	own := bodies[chat.RunEnded](r.events(calls[0].Thread))[0]
	if own.Cost == 0 || end.Cost <= own.Cost {
		t.Errorf("the run cost %d with a child that cost %d: children count", end.Cost, own.Cost)
	}
}

// Killed at any moment, the parent goes on with the child's answer: it was given once, and told once.
func TestAgentsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	hold, began, release := hold("hold", true) // read only: it may run again
	r := family(t, hold)
	r.say(giving("!call hold {}\n!---\n!say the answer") + "\n!---\n!say got {{last}}")
	call := r.deferred(1)[0]
	<-began
	r.restart()
	release <- struct{}{}
	polltest.Until(t, "the parent rests", func() bool { return r.row(thread).Status == chat.Delegated })
	r.engine.Wake(call.Thread)
	events := r.untilEnds(1)
	if n := len(bodies[chat.Settled](events)); n != 1 {
		t.Errorf("the parent was told %d times", n)
	}
	if got := lastText(events); !strings.Contains(got, "the answer") {
		t.Errorf("said %q\n%s", got, show(events))
	}
	if n := len(bodies[chat.RunStarted](r.events(call.Thread))); n != 1 {
		t.Errorf("the child began %d runs", n)
	}
}

// An aborted run takes the agents with it that work for it, also those that have not begun, and also when the process
// dies right after.
func TestAbortStopsTheAgentsBelow(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash=", crash), func(t *testing.T) {
			t.Parallel()
			hold, began, _ := hold("hold", false)
			r := family(t, hold)
			r.say(giving(giving("!call hold {}\n!---\n!say never")+"\n!---\n!say never") + "\n!---\n!say never")
			call := r.deferred(1)[0]
			<-began
			below := bodies[chat.Deferred](r.events(call.Thread))
			if len(below) != 1 {
				t.Fatalf("no grandchild:\n%s", show(r.events(call.Thread)))
			}
			if _, err := r.engine.Abort(context.Background(), thread, "ada", false); err != nil {
				t.Fatal(err)
			}
			events := r.untilEnds(1)
			if end := bodies[chat.RunEnded](events)[0]; end.Reason != chat.EndAborted {
				t.Fatalf("ended %+v", end)
			}
			if crash {
				r.restart()
			}
			for _, id := range []chat.ThreadID{call.Thread, below[0].Thread} {
				if crash {
					r.engine.Wake(id) // the second when the first has ended, which is what tells it to
				}
				polltest.Until(t, "child ends", func() bool {
					ends := bodies[chat.RunEnded](r.events(id))
					return len(ends) == 1 && ends[0].Reason == chat.EndAborted
				})
			}
			if got := r.events(thread); len(bodies[chat.RunEnded](got)) != 1 {
				t.Errorf("the end of a child moved the parent:\n%s", show(got))
			}
		})
	}
}

// What an agent below asks is shown to whoever talks to the one at the top, and their answer counts.
func TestWhatAgentsBelowAskIsShownAbove(t *testing.T) {
	t.Parallel()
	r := family(t, echo(false))
	r.gate = func(q agent.ProposedCall) approval.Ruling {
		if q.Call.Name == "act" {
			return ask(q)
		}
		return approval.Ruling{Verdict: approval.Allow}
	}
	r.say(giving(giving("!call act {}\n!---\n!say done {{last}}")+"\n!---\n!say then {{last}}") + "\n!---\n!say got {{last}}")
	asked := bodies[chat.ApprovalAsked](r.until(func(ev chat.Event) bool { return is[chat.ApprovalAsked](ev) }))[0]
	if !asked.During || asked.Name != "act" {
		t.Errorf("asked %+v", asked)
	}
	polltest.Until(t, "the parent rests", func() bool { return r.row(thread).Status == chat.Delegated })
	r.restart() // the question outlives the process
	if err := r.engine.Answer(context.Background(), asked.ID, ada, true, ""); err != nil {
		t.Fatal(err)
	}
	row, err := r.db.Approval(context.Background(), asked.ID)
	if err != nil {
		t.Fatal(err)
	}
	r.engine.Wake(thread)
	r.engine.Wake(row.Thread)
	events := r.untilEnds(1)
	if got := lastText(events); !strings.Contains(got, "did {}") {
		t.Errorf("said %q\n%s", got, show(events))
	}
	if n := len(bodies[chat.ApprovalAnswered](events)); n != 1 {
		t.Errorf("the answer is shown %d times", n)
	}
}

// Somebody who stops an agent below before it has begun ends the wait of the one above.
func TestAStoppedChildIsAnAnswer(t *testing.T) {
	t.Parallel()
	hold, began, _ := hold("hold", false)
	r := family(t, hold)
	r.say(giving("!call hold {}\n!---\n!say never") + "\n!---\n!say got {{last}}")
	call := r.deferred(1)[0]
	<-began
	if _, err := r.engine.Abort(context.Background(), call.Thread, "bob", true); err != nil {
		t.Fatal(err)
	}
	events := r.untilEnds(1)
	if got := lastText(events); !strings.Contains(got, "did not finish (aborted)") {
		t.Errorf("said %q\n%s", got, show(events))
	}
}
