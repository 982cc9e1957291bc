package engine_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/model/demo"
	"chorus/internal/store"
)

// under starts the rig again with a budget; nil prices: those of the rig.
func (r *rig) under(budget ledger.Budget, price func(string) (ledger.Price, int)) {
	r.config = func(c *engine.Config) {
		setup := c.Setup
		c.Setup = func(ctx context.Context, row journal.Thread, work engine.Work) (engine.Setup, error) {
			s, err := setup(ctx, row, work)
			if s.Budget = budget; price != nil {
				s.Price = price
			}
			return s, err
		}
	}
	r.restart()
}

func agentDay(most ledger.Nanos) ledger.Budget {
	return ledger.Budget{Ceilings: []ledger.Ceiling{{Scope: ledger.Agent, Period: ledger.Day, Most: most}}}
}

// tokens makes every call cost its output: 10 at worst.
func tokens(string) (ledger.Price, int) { return ledger.Price{Output: 1}, 10 }

func TestHardLimitEndsTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(false))
	r.under(agentDay(9), tokens)
	r.say("!say one")
	events := r.untilEnds(1)
	end := events[len(events)-1].Body.(chat.RunEnded)
	if got := kinds(events); got != "received run_started took run_ended" || end.Reason != chat.EndBudget || !strings.Contains(end.Text, "budgets.agent.day") {
		t.Fatalf("%s: %+v", got, end)
	}
	// Nobody is stuck: with more to spend the next prompt is answered.
	r.under(agentDay(1000), tokens)
	r.say("!say two")
	if got := lastText(r.untilEnds(2)); got != "two" {
		t.Fatal(got)
	}
}

func TestSoftLimitAsksOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	budget := agentDay(1000)
	budget.Soft = 0.0001 // anything at all
	r.under(budget, tokens)
	r.say("!say one")
	r.untilEnds(1)
	r.say("!say two")
	events := r.untilEnds(2)
	end := events[len(events)-1].Body.(chat.RunEnded)
	if end.Reason != chat.EndBudget || !strings.Contains(end.Text, `Say "go on"`) {
		t.Fatalf("%+v", end)
	}
	r.restart() // that it was asked is not forgotten
	r.say("!say three")
	if got := lastText(r.untilEnds(3)); got != "three" {
		t.Fatal(got)
	}
}

func TestUnknownPriceIsRefusedUnderABudget(t *testing.T) {
	t.Parallel()
	unknown := func(string) (ledger.Price, int) { return ledger.Price{}, 10 }
	r := newRig(t)
	r.under(agentDay(1000), unknown)
	r.say("!say one")
	events := r.untilEnds(1)
	end := events[len(events)-1].Body.(chat.RunEnded)
	if end.Reason != chat.EndBudget || !strings.Contains(end.Text, "the price of demo/script is not known") || len(bodies[chat.Asked](events)) != 0 {
		t.Fatalf("%+v", end)
	}
	r.under(ledger.Budget{}, unknown)
	r.say("!say two")
	if got := lastText(r.untilEnds(2)); got != "two" {
		t.Fatal(got)
	}
}

// Somebody is charged for every call, also where a prompt came from nobody.
func TestPayerIsAlwaysNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.engine.Deliver(context.Background(), chat.Inbound{Threads: []chat.ThreadID{thread}, Blocks: chat.TextBlocks("!say one"), Prompt: true},
		func(id chat.ThreadID) journal.Thread { return journal.Thread{ID: id, Agent: "helper"} })
	if err != nil {
		t.Fatal(err)
	}
	r.untilEnds(1)
	sums, err := r.db.Spend(context.Background(), store.SpendFilter{By: store.ByPayer})
	if err != nil || len(sums) != 1 || sums[0].Key != "system:helper" {
		t.Errorf("%+v (%v)", sums, err)
	}
}

// looked is a store that tells how often an engine looked for work.
type looked struct {
	*store.DB
	n    atomic.Int64
	many chan struct{}
}

func (l *looked) ActiveThreads(ctx context.Context) ([]journal.Thread, error) {
	if l.n.Add(1) == 20 {
		close(l.many)
	}
	return l.DB.ActiveThreads(ctx)
}

// counting is a model that tells how often it was used.
type counting struct {
	model.Model
	n atomic.Int64
}

func (c *counting) Stream(ctx context.Context, p model.Prepared) iter.Seq2[model.Chunk, error] {
	c.n.Add(1)
	return c.Model.Stream(ctx, p)
}

// An engine with nothing to answer asks no model, however long it looks around: words
// that are no prompts, finished runs and old threads cost nothing.
func TestIdleSpendsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	asked := &counting{Model: demo.New()}
	r.provider = asked
	var l *looked
	r.config = func(c *engine.Config) {
		l = &looked{DB: r.db, many: make(chan struct{})}
		c.Journal, c.SweepEvery, c.IdleAfter = l, time.Millisecond, time.Millisecond
	}
	r.restart()
	r.say("!say one")
	r.untilEnds(1)
	_, err := r.engine.Deliver(context.Background(), chat.Inbound{Threads: []chat.ThreadID{thread}, Principal: ada, Blocks: chat.TextBlocks("by the way")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.restart()
	select {
	case <-l.many:
	case <-time.After(time.Minute):
		t.Fatalf("looked only %d times", l.n.Load())
	}
	if n := asked.n.Load(); n != 1 {
		t.Errorf("the model was asked %d times for one prompt", n)
	}
	sums, err := r.db.Spend(context.Background(), store.SpendFilter{})
	if err != nil || len(sums) != 1 || sums[0].Calls != 1 || sums[0].Open != 0 {
		t.Errorf("%+v (%v)", sums, err)
	}
}
