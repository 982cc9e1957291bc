package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"chorus/internal/agent"
	"chorus/internal/agent/record"
	"chorus/internal/approval"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// host is what one run of the loop knows of the rest. It adds to each batch what follows from it
// (status, money, approvals, audit) and writes everything in one transaction.
type host struct {
	a         *actor
	setup     Setup
	row       journal.Thread
	above     []ancestor // the threads that wait for this one, once looked up
	said      string     // the last text of this run
	epoch     int64
	agent     string
	seen      int64 // last event the loop has
	status    chat.Status
	run       atomic.Pointer[string]
	payer     chat.Principal
	model     string
	asked     chat.Asked
	within    []ledger.Limit                // what this run and those above it may spend
	maxOutput int                           // tokens an answer of this run may have; 0: the model's maximum
	warned    *ledger.Refusal               // the soft limit at which this run pauses to ask the room
	asks      map[string]*approval.Approval // by id, until they are written
	audits    map[string]*approval.Audit    // by call, until they are written
}

var _ agent.Host = (*host)(nil)

func newHost(a *actor, setup Setup, row journal.Thread) *host {
	h := &host{a: a, setup: setup, row: row, epoch: row.Epoch, agent: row.Agent, seen: a.log.Seq(), status: row.Status,
		asks: map[string]*approval.Approval{}, audits: map[string]*approval.Audit{}}
	if run := a.log.Run(); run != nil {
		h.began(run.ID, run.Model, run.Principal, run.Settings, run.Terms)
	}
	return h
}

func (h *host) began(run, model string, payer chat.Principal, s chat.Settings, t chat.Terms) {
	h.run.Store(&run)
	h.within = ledger.Within(run, t)
	h.model, h.payer, h.maxOutput = model, payer, ledger.MaxOutput(s)
}

func (h *host) runID() string {
	if p := h.run.Load(); p != nil {
		return *p
	}
	return ""
}

func (h *host) Commit(ctx context.Context, b record.Batch) ([]chat.Event, error) {
	if h.a.watchdog.gone() {
		return nil, journal.ErrFenced
	}
	h.a.waitsForStore()
	limit := h.a.engine.Bounds.Store
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	events, err := h.commit(ctx, b)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%s did not answer within %s: %w", database, limit, err)
	}
	return events, err
}

func (h *host) commit(ctx context.Context, b record.Batch) ([]chat.Event, error) {
	if len(b.Events) == 0 {
		return h.news(ctx)
	}
	c := journal.Commit{Thread: h.a.thread, Epoch: h.epoch, Events: b.Events, Blobs: b.Blobs, Beside: b.Beside}
	if b.Next {
		c.Expect = h.seen + 1
	}
	for i := range c.Events {
		c.Events[i].Thread = h.a.thread
		if begins(c.Events[i].Body) {
			c.Expect = h.seen + 1
		}
		if err := h.follow(ctx, &c, &c.Events[i]); err != nil {
			return nil, err
		}
	}
	done, err := h.a.engine.Journal.Commit(ctx, c)
	h.refused(err)
	if errors.Is(err, journal.ErrMoved) {
		news, rerr := h.news(ctx)
		if rerr != nil {
			return nil, rerr
		}
		return news, err
	}
	if err != nil {
		return nil, err
	}
	if c.Status != "" {
		h.status = c.Status
	}
	h.written(c)
	var news []chat.Event
	if first := done.Events[0].Seq; first > h.seen+1 {
		// Guests wrote in between; they never write much.
		between, err := h.a.engine.Journal.Events(ctx, h.a.thread, h.seen, int(first-h.seen-1))
		if err != nil {
			return nil, err
		}
		news = between
	}
	h.seen = done.Events[len(done.Events)-1].Seq
	h.a.engine.Bus.Publish(h.a.thread, bus.Note{Events: done.Events})
	h.a.engine.notifyWatchers(h.a.thread)
	h.a.engine.wroteBeside(c.Beside, done.Beside)
	h.progressAbove(ctx, done.Events)
	for _, ev := range done.Events {
		if ran, ok := ev.Body.(chat.ToolRan); ok && ran.Outcome == chat.Interrupted {
			h.a.engine.closeHeld(h.a.thread, h.runID(), ran.Call)
		}
	}
	return append(news, done.Events...), nil
}

func (h *host) news(ctx context.Context) ([]chat.Event, error) {
	events, err := h.a.engine.Journal.Events(ctx, h.a.thread, h.seen, page)
	if err != nil {
		return nil, err
	}
	if len(events) > 0 {
		h.seen = events[len(events)-1].Seq
	}
	return events, nil
}

// begins reports whether only a writer who has seen every event may write this body.
func begins(body chat.Body) bool {
	switch body.(type) {
	case chat.RunStarted, chat.Asked, chat.ToolBegan, chat.Deferred, chat.Rolled, chat.RunEnded:
		return true
	default:
		return false
	}
}

// follow adds the consequences of an event to the commit.
func (h *host) follow(ctx context.Context, c *journal.Commit, ev *chat.Event) error {
	if h.status != chat.Running && h.status.On() && c.Status == "" {
		c.Status = chat.Running
	}
	switch b := ev.Body.(type) {
	case chat.RunStarted:
		c.Status = chat.Running
		ev.Who = b.Principal.String()
	case chat.Asked:
		h.asked = b // even when its end is in the same batch
		return h.reserve(c, b)
	case chat.Said:
		c.Money = append(c.Money, h.settled(b))
	case chat.Compacted:
		if b.How != "mechanical" {
			c.Money = append(c.Money, h.settled(chat.Said{Step: b.Step, Attempt: b.Attempt, Usage: b.Usage}))
		}
	case chat.ToolBegan:
		h.audit(c, b.Call)
	case chat.Deferred:
		h.audit(c, b.Call)
	case chat.ToolRan:
		h.audit(c, b.Call)
		c.Beside = append(c.Beside, h.stops(b.Call)...)
		if err := h.auditNo(ctx, c, b); err != nil {
			return err
		}
		if call := h.openApproval(b.Call); call != "" && b.Outcome != chat.Ran {
			c.Approvals = append(c.Approvals, approval.Change{Answer: &approval.Answer{ID: call, State: approval.Cancelled, By: approval.BySystem}})
		}
	case chat.ApprovalAsked:
		c.Status = chat.Waiting
		c.Approvals = append(c.Approvals, approval.Change{New: h.asks[b.ID]})
		c.Beside = append(c.Beside, shownAbove(h.ancestors(ctx), h.agent, b)...)
	case chat.RunEnded:
		c.Status = chat.Idle
		if b.Reason == chat.EndFailed {
			c.Status = chat.Failed
		}
		if b.Reason == chat.EndBudget && h.warned != nil {
			c.Warned = append(c.Warned, h.warned)
		}
		cost, err := h.a.engine.Journal.RunCost(ctx, b.Run)
		if err != nil {
			return err
		}
		b.Cost = cost
		ev.Body = b
		settled, err := h.ended(ctx, b)
		if err != nil {
			return err
		}
		c.Beside = append(c.Beside, settled...)
	}
	return nil
}

// written remembers what later commits need to know.
func (h *host) written(c journal.Commit) {
	for _, ev := range c.Events {
		switch b := ev.Body.(type) {
		case chat.RunStarted:
			h.began(b.Run, b.Model, b.Principal, b.Settings, b.Terms)
			h.said = ""
		case chat.Asked:
			h.asked = b
		case chat.Said:
			h.a.liveMu.Lock()
			h.a.partial = liveText{} // late watchers read it in the journal; nothing is unfinished until the next piece
			h.a.liveMu.Unlock()
			if words := b.Blocks.Text(); b.Error == nil && words != "" {
				h.said = words
			}
		case chat.ApprovalAsked:
			delete(h.asks, b.ID)
		case chat.ToolBegan:
			delete(h.audits, b.Call)
		case chat.Deferred:
			delete(h.audits, b.Call)
		case chat.ToolRan:
			delete(h.audits, b.Call)
		}
	}
}

// openApproval returns the approval of a call that still waits for an answer.
func (h *host) openApproval(call string) string {
	for _, c := range h.a.log.Calls() {
		if c.Use.ID == call && c.Approval != "" && !c.Answered {
			run := h.a.log.Run()
			if run != nil && run.Aborted && !run.AbortOpen {
				return "" // the abort cancelled it in its own transaction
			}
			return c.Approval
		}
	}
	return ""
}

func (h *host) audit(c *journal.Commit, call string) {
	if a := h.audits[call]; a != nil {
		c.Audit = append(c.Audit, *a)
	}
}

func (h *host) Live(piece chat.Live) {
	a := h.a
	a.watchdog.progressed()
	a.liveMu.Lock()
	defer a.liveMu.Unlock()
	if d, ok := piece.(chat.Delta); ok {
		if d.Run != a.partial.run || d.Step != a.partial.step || d.Attempt != a.partial.attempt {
			a.partial = liveText{run: d.Run, step: d.Step, attempt: d.Attempt}
		}
		switch d.What {
		case chat.DeltaText:
			held := a.partial.held()
			a.partial.text = append(a.partial.text, d.Text...)
			switch {
			case a.partial.held():
				return // it may become a silent answer
			case held:
				d.Offset, d.Text = 0, string(a.partial.text)
				piece = d
			}
		case chat.DeltaThinking:
			a.partial.thinking = append(a.partial.thinking, d.Text...)
		}
	}
	a.engine.Bus.Publish(a.thread, bus.Note{Live: piece})
}

// Judge implements agent.Host. The gate decides, an earlier approval is checked against the facts
// it was given for, and the audit log entry is prepared for the commit with the result.
func (h *host) Judge(ctx context.Context, q agent.ProposedCall) (approval.Ruling, error) {
	if h.a.watchdog.gone() {
		return approval.Ruling{}, journal.ErrFenced
	}
	h.a.waits("the permission check of "+q.Call.Name, h.a.engine.Bounds.Setup)
	q.Senders = h.a.senders()
	ruling := h.setup.Gate.Judge(q, h.payer)
	audit := approval.Audit{Agent: h.agent, Thread: h.a.thread, Run: h.runID(), Call: q.Call.ID, Principal: h.payer,
		Action: firstAction(q), Decision: "allow", Rule: ruling.Rule}
	if ruling.Audit != nil {
		audit.Decision, audit.Detail = ruling.Audit.Decision, ruling.Audit.Detail
	}
	switch ruling.Verdict {
	case approval.Allow:
	case approval.Pending:
		facts := bound(ctx, q, h.setup)
		again := ""
		if q.Approved != "" {
			given, err := h.a.engine.Journal.Approval(ctx, q.Approved)
			if err != nil {
				return ruling, fmt.Errorf("check approval %s: %w", q.Approved, err)
			}
			if again = facts.Since(given.Bound); again == "" {
				audit.Decision, audit.Detail = "ask_approved", "by "+given.AnsweredBy
				h.audits[q.Call.ID] = &audit
				return approval.Ruling{Verdict: approval.Allow, Rule: ruling.Rule, Hides: ruling.Hides}, nil
			}
			ruling.Reason = "asked again: " + again
		}
		ruling.Ask = h.newApproval(ctx, q, ruling, facts)
		ruling.Ask.Again = again
		return ruling, nil
	default:
		audit.Decision = "deny"
		if q.Approved != "" {
			audit.Detail = "a rule denies it now, after it was approved"
		}
	}
	h.audits[q.Call.ID] = &audit
	return ruling, nil
}

func actions(q agent.ProposedCall) []string {
	if len(q.Touches) == 0 {
		return []string{"tool:" + q.Tool.Spec().Name + ":" + string(q.Args)}
	}
	out := make([]string, len(q.Touches))
	for i, t := range q.Touches {
		out[i] = t.Action()
	}
	return out
}

func firstAction(q agent.ProposedCall) string { return actions(q)[0] }
