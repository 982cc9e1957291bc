package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"chorus/internal/approval"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
)

// maxHeld is how long a program may wait for an answer by default. The
// command that starts it waits too, in memory.
const maxHeld = 15 * time.Minute

// AskDuring asks people about something that a call wants to do while it runs, and waits for the
// answer. Unlike the approval of the call itself, this one does not survive the process: it ends
// with the call, and whoever answers too late is told so. An error says why it may not be done.
func (e *Engine) AskDuring(ctx context.Context, a approval.Approval, asking Asking) error {
	now, err := e.QuestionDuring(ctx, a, asking)
	if err != nil {
		return err
	}
	return answered(now)
}

// QuestionDuring is AskDuring for a question whose answer is more than yes or no. It returns
// the approval as it was settled. An error means that nobody answered.
func (e *Engine) QuestionDuring(ctx context.Context, a approval.Approval, asking Asking) (approval.Approval, error) {
	a.ID, a.AskedAt, a.State, a.Who = id.New(), e.Now(), approval.Open, asking.Who
	hold := asking.For
	if hold <= 0 || hold > maxHeld {
		hold = maxHeld
	}
	a.Deadline = a.AskedAt.Add(hold)
	if asking.Remind > 0 && asking.Remind < hold {
		a.Remind = a.AskedAt.Add(asking.Remind)
	}
	changes := e.Bus.Subscribe(a.Thread)
	defer changes.Close()
	body := chat.ApprovalAsked{ID: a.ID, Call: a.Call.ID, Name: a.Call.Name, Actions: a.Actions, Rule: a.Rule, Preview: a.Preview, Until: a.Deadline, Who: a.Who, Assessment: a.Assessment, Why: a.Again, During: true, Fields: a.Fields}
	if err := e.change(ctx, a, "system", body, approval.Change{New: &a}); err != nil {
		return a, fmt.Errorf("it needs approval, but nobody could be asked: %w", err)
	}
	back := e.lendSlot(a.Thread) // a run that waits for people keeps nobody else waiting
	defer back(ctx)
	late := time.NewTimer(hold)
	defer late.Stop()
	for look := true; ; {
		if look {
			if now, err := e.timed.Approval(ctx, a.ID); err == nil && now.State != approval.Open {
				return now, nil
			}
		}
		select {
		case <-changes.Wake():
			notes, gap := changes.Take()
			look = gap || slices.ContainsFunc(notes, func(n bus.Note) bool { return len(n.Events) > 0 })
		case <-late.C:
			e.closeAsked(a, approval.Expired, approval.ByDeadline, nobodyAnswered)
			return a, errors.New(nobodyAnswered)
		case <-ctx.Done():
			e.closeAsked(a, approval.Cancelled, approval.BySystem, "the command has ended")
			return a, ctx.Err()
		}
	}
}

// answered returns nil if the answer was yes.
func answered(a approval.Approval) error {
	if a.State == approval.Approved {
		return nil
	}
	text := "refused by " + a.AnsweredBy
	if a.Note != "" {
		text += ": " + a.Note
	}
	return errors.New(text)
}

// closeAsked ends an approval whose call is no longer waiting.
func (e *Engine) closeAsked(a approval.Approval, state approval.State, by, note string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := e.settle(ctx, a, state, by, note, nil); err != nil && !errors.Is(err, journal.ErrSettled) {
		e.Log.Warn("could not end an approval whose call has ended", "component", "engine", "event", "approval_expiry_failed", "approval", a.ID, "error", err)
	}
}

// closeHeld ends what a call asked for while it ran, after the call was cut
// off. The process that waited for the answers may be dead.
func (e *Engine) closeHeld(thread chat.ThreadID, run, call string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // even while the engine stops
	defer cancel()
	open, err := e.timed.Approvals(ctx, approval.Filter{Thread: thread, Run: run, State: approval.Open})
	if err != nil {
		e.Log.Warn("could not look for approvals of a call that has ended", "component", "engine", "event", "approval_expiry_failed", "thread", thread, "error", err)
		return
	}
	for _, a := range open {
		if a.Call.ID == call {
			e.closeAsked(a, approval.Cancelled, approval.BySystem, "the command has ended")
		}
	}
}
