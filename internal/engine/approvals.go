package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/approval/commandfiles"
	"chorus/internal/chat"
	"chorus/internal/digest"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/tool"
)

// Asking says how people are asked when a call needs approval.
type Asking struct {
	For    time.Duration // how long an answer may take; 0 means no limit
	Remind time.Duration // when to remind people; 0 means never
	Who    string        // who may answer, as approval.ParseWho reads it; "": approval.DefaultWho
	Env    []string      // names of the variables that commands get
}

// newApproval builds the approval of a call. It is kept until it is written.
func (h *host) newApproval(ctx context.Context, q agent.ProposedCall, ruling approval.Ruling, facts approval.Facts) *approval.Approval {
	asking := h.setup.Asking
	a := &approval.Approval{ID: id.New(), Thread: h.a.thread, Run: h.runID(), Call: q.Call, Dir: h.setup.Dir, Bound: facts.Encode(),
		Assessment: ruling.Assessment, Rule: ruling.Rule, Reason: ruling.Reason, AskedBy: h.payer, Payer: h.payer,
		AskedAt: h.a.engine.Now(), State: approval.Open, Actions: actions(q), Who: asking.Who}
	if p, ok := q.Tool.(tool.Previewer); ok {
		a.Preview = p.Preview(ctx, q.Args)
	}
	if asking.For > 0 {
		a.Deadline = a.AskedAt.Add(asking.For)
	}
	if asking.Remind > 0 && (asking.For == 0 || asking.Remind < asking.For) {
		a.Remind = a.AskedAt.Add(asking.Remind)
	}
	h.asks[a.ID] = a
	return a
}

// bound returns the facts that an approval is given for: the call, where it runs, what it would
// change, the files it names and, for a command, the variables it would see.
func bound(ctx context.Context, q agent.ProposedCall, setup Setup) approval.Facts {
	f := approval.Facts{Tool: q.Tool.Spec().Name, Args: q.Args, Dir: setup.Dir}
	if p, ok := q.Tool.(tool.Previewer); ok {
		f.Changes = digest.Of(p.Preview(ctx, q.Args))[:16]
	}
	f.Declared = len(q.Touches) > 0
	if q.Ask != "" {
		f.Each = "a tool hook wants it approved, whatever the rules allow"
	}
	var paths, words []string
	for _, t := range q.Touches {
		if t.Git {
			f.Git = append(f.Git, t.Action())
		}
		if q.Tool.Spec().Deferred {
			continue // it names an agent, not a file
		}
		if t.Command == "" {
			paths = append(paths, t.Detail)
			continue
		}
		home, _ := os.UserHomeDir()
		found := commandfiles.In(t.Command, commandfiles.Place{Dir: setup.Dir, Home: home, Env: setup.Asking.Env})
		paths, words = append(paths, found.Implied...), append(words, found.Named...)
		f.Unbound = append(f.Unbound, found.Unbound...)
		if f.Env == nil {
			f.Env = slices.Sorted(slices.Values(setup.Asking.Env))
		}
	}
	files, unbound := approval.Digests(setup.Dir, paths, words)
	f.Files, f.Unbound = files, append(f.Unbound, unbound...)
	return f
}

// auditNo writes the audit log entry of a call that somebody refused,
// because the gate is not asked about it again.
func (h *host) auditNo(ctx context.Context, c *journal.Commit, ran chat.ToolRan) error {
	if ran.Outcome != chat.Denied || h.audits[ran.Call] != nil {
		return nil
	}
	for _, call := range h.a.log.Calls() {
		if call.Use.ID != ran.Call || !call.Answered || call.OK {
			continue
		}
		a, err := h.a.engine.Journal.Approval(ctx, call.Approval)
		if err != nil {
			return fmt.Errorf("audit the answer to approval %s: %w", call.Approval, err)
		}
		line := approval.Audit{Agent: h.agent, Thread: h.a.thread, Run: h.runID(), Call: ran.Call, Principal: h.payer,
			Decision: "ask_denied", Rule: a.Rule, Detail: "by " + call.By}
		if len(a.Actions) > 0 {
			line.Action = a.Actions[0]
		}
		c.Audit = append(c.Audit, line)
	}
	return nil
}

// Approvals lists the approvals that match f. It first ends those whose deadline has passed.
func (e *Engine) Approvals(ctx context.Context, f approval.Filter) ([]approval.Approval, error) {
	e.expire(ctx)
	return e.timed.Approvals(ctx, f)
}

// Answer approves or refuses on behalf of somebody. The first answer wins. A later one fails with
// journal.ErrSettled and is told who answered. If two people must approve, the first one leaves the
// approval open. Other errors are journal.ErrUnknown and approval.ErrMayNot.
func (e *Engine) Answer(ctx context.Context, id string, by chat.Principal, ok bool, note string) error {
	for {
		a, err := e.timed.Approval(ctx, id)
		if err != nil {
			return fmt.Errorf("answer approval %s: %w", id, err)
		}
		if a.State == approval.Open && !a.Deadline.IsZero() && !e.Now().Before(a.Deadline) {
			if err := e.settle(ctx, a, approval.Expired, approval.ByDeadline, nobodyAnswered, nil); err != nil && !errors.Is(err, journal.ErrSettled) {
				return err
			}
			continue // it is then closed, as for everybody who comes too late
		}
		if a.State != approval.Open {
			return fmt.Errorf("approval %s is closed, %s: %w", a.ID, a.Ended(), journal.ErrSettled)
		}
		state, err := approval.Weigh(a, by, ok)
		if err != nil {
			return fmt.Errorf("approval %s: %w", a.ID, err)
		}
		vote := &approval.Ballot{ID: a.ID, Vote: approval.Vote{By: by, OK: ok, Note: note}, Before: len(a.Votes)}
		err = e.settle(ctx, a, state, by.String(), note, vote)
		if errors.Is(err, journal.ErrSettled) || errors.Is(err, journal.ErrMoved) {
			continue // somebody was faster: check who
		}
		return err
	}
}

// How an unanswered approval ends.
const (
	nobodyAnswered = "nobody answered in time"
)

// settle writes what somebody, or the deadline, decided: the end of the
// approval or, if it stays open, the first of two approvals.
func (e *Engine) settle(ctx context.Context, a approval.Approval, state approval.State, by, note string, vote *approval.Ballot) error {
	change := approval.Change{Vote: vote}
	var body chat.Body = chat.ApprovalNoted{ID: a.ID, Call: a.Call.ID, What: chat.FirstYes, By: by, Note: note}
	if state != approval.Open {
		body = chat.ApprovalAnswered{ID: a.ID, Call: a.Call.ID, By: answerers(a, state, by), OK: state == approval.Approved, Note: note}
		change.Answer = &approval.Answer{ID: a.ID, State: state, By: answerers(a, state, by), Note: note}
	}
	return e.change(ctx, a, by, body, change)
}

// answerers names everybody who approved.
func answerers(a approval.Approval, state approval.State, by string) string {
	if state != approval.Approved {
		return by
	}
	names := ""
	for _, v := range a.Votes {
		if v.OK {
			names += v.By.String() + approval.And
		}
	}
	return names + by
}

func (e *Engine) change(ctx context.Context, a approval.Approval, by string, body chat.Body, change approval.Change) error {
	c := e.guest(a.Thread, by, body)
	c.Events[0].Run = a.Run
	c.Approvals = []approval.Change{change}
	if row, err := e.timed.Thread(ctx, a.Thread); err == nil && row.Parent.Call != "" {
		c.Beside = shownAbove(e.ancestors(ctx, row), by, body)
	}
	done, err := e.timed.Commit(ctx, c)
	if err != nil {
		return fmt.Errorf("answer approval %s: %w", a.ID, err)
	}
	e.moved(a.Thread, done.Events)
	e.wroteBeside(c.Beside, done.Beside)
	return nil
}

// expire ends the approvals whose deadline has passed.
func (e *Engine) expire(ctx context.Context) {
	overdue, err := e.timed.Overdue(ctx, e.Now())
	if err != nil {
		return // the next sweep tries again
	}
	for _, a := range overdue {
		if err := e.settle(ctx, a, approval.Expired, approval.ByDeadline, nobodyAnswered, nil); err != nil && !errors.Is(err, journal.ErrSettled) {
			e.Log.Warn("could not end an approval whose time is over", "component", "engine", "event", "approval_expiry_failed", "approval", a.ID, "error", err)
		}
	}
}

// remind notes once for each overdue approval that nobody has answered it yet.
// Transports that show it to people find the note in the journal.
func (e *Engine) remind() {
	forgotten, err := e.timed.Approvals(e.ctx, approval.Filter{State: approval.Open, Remind: e.Now()})
	if err != nil {
		return // the next sweep tries again
	}
	for _, a := range forgotten {
		err := e.change(e.ctx, a, "system", chat.ApprovalNoted{ID: a.ID, Call: a.Call.ID, What: chat.Reminder}, approval.Change{Remind: a.ID})
		if err != nil && !errors.Is(err, journal.ErrSettled) {
			e.Log.Warn("could not remind of an approval", "component", "engine", "event", "approval_reminder_failed", "approval", a.ID, "error", err)
		}
	}
}
