package agent

import (
	"context"
	"errors"

	"chorus/internal/agent/deadline"
	"chorus/internal/agent/record"
	"chorus/internal/agent/toolcall"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// callOf is a call that may run: it touches what was judged, and nothing else.
func (r *runner) callOf(judged ProposedCall, ruling approval.Ruling) toolcall.Call {
	run := r.log.Run()
	call := toolcall.Call{Use: judged.Call, Tool: judged.Tool, Args: judged.Args, Key: callKey(run, judged.Call.ID), Touches: judged.Touches, Hides: ruling.Hides}
	for _, s := range run.Senders {
		call.Senders = append(call.Senders, s.Principal)
	}
	if len(call.Senders) == 0 {
		call.Senders = []chat.Principal{run.Principal}
	}
	return call
}

// tools brings the open calls further: read-only ones that follow each other run
// together, every other one alone and in order.
func (r *runner) tools(ctx context.Context) (State, error) {
	if r.log.Cut() {
		return "", r.skip(ctx, chat.Invalid, "not run: your answer was cut off at the length limit, so this call may be incomplete. Make smaller calls, or write long files in several parts.")
	}
	if r.log.Unreadable() {
		return "", r.skip(ctx, chat.Invalid, "not run: a part of your answer was garbled on the way, so this call may not be what you meant. Make it again.")
	}
	var batch []toolcall.Call
	for _, c := range r.log.Calls() {
		if c.Done {
			continue
		}
		if r.interrupted() {
			if len(batch) > 0 {
				break
			}
			return "", r.skip(ctx, chat.Skipped, "skipped: new words arrived before this call was made, or before it was answered")
		}
		if c.Delegated() {
			continue // its answer comes by itself; what follows need not wait
		}
		if c.Settled != nil {
			if len(batch) > 0 {
				break
			}
			return "", r.Write(ctx, chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: c.Settled.Blocks, Failed: c.Settled.Failed,
				Outcome: chat.Ran, Foreign: "agent " + c.Deferred.Agent()})
		}
		if c.Approval != "" && !c.Answered {
			if len(batch) > 0 {
				break
			}
			return Suspended, nil
		}
		t, args, err := r.Tools.Resolve(c.Use.Name, c.Use.Args)
		if err == nil {
			err = r.Tools.Validate(t, args)
		}
		if err != nil {
			if len(batch) > 0 {
				break
			}
			return "", r.Write(ctx, chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: chat.TextBlocks(err.Error()),
				Failed: true, Outcome: chat.Invalid})
		}
		if len(batch) > 0 && !t.Spec().ReadOnly {
			break
		}
		if t.Spec().Deferred && r.delegated() >= maxDelegated {
			continue // until one of the others has answered
		}
		t, args, err = r.hooks.Prepare(ctx, c.Use, t, args)
		if denied := (*toolcall.DeniedByHook)(nil); errors.As(err, &denied) {
			if len(batch) > 0 {
				break
			}
			return "", r.deny(ctx, c.Use, denied.Why)
		}
		if err != nil {
			return "", err
		}
		one, verdict, err := r.gate(ctx, c, t, args, len(batch) > 0)
		if err != nil {
			return "", err
		}
		switch verdict {
		case gateAgain: // what is in the batch runs first, or a result was written
			if len(batch) > 0 {
				return "", r.together(ctx, batch)
			}
			return "", nil
		case gateSuspended:
			return Suspended, nil
		}
		if t.Spec().Deferred {
			return "", r.hand(ctx, one)
		}
		if !t.Spec().ReadOnly {
			return "", r.alone(ctx, one)
		}
		batch = append(batch, one)
	}
	if len(batch) == 0 {
		return Suspended, nil // all that is left is with others
	}
	return "", r.together(ctx, batch)
}

type gateAnswer int

const (
	gateOpen gateAnswer = iota
	gateAgain
	gateSuspended
)

// gate asks the host and writes what comes of it. With busy set it writes nothing:
// calls before this one are still to be run.
func (r *runner) gate(ctx context.Context, c transcript.Call, t tool.Tool, args []byte, busy bool) (toolcall.Call, gateAnswer, error) {
	if c.Answered && !c.OK {
		if busy {
			return toolcall.Call{}, gateAgain, nil
		}
		text := "denied by " + c.By
		if c.Note != "" {
			text += ": " + c.Note
		}
		return toolcall.Call{}, gateAgain, r.deny(ctx, c.Use, text)
	}
	made := r.hooks.Made(c.Use.ID)
	proposed := ProposedCall{Call: c.Use, Tool: t, Args: args, Touches: t.Access(args), Ask: made.Ask}
	if made.Changed { // whoever is asked sees what would run
		proposed.Call.Args = args
	}
	if c.Answered {
		proposed.Approved = c.Approval
	}
	ruling, err := r.host.Judge(ctx, proposed)
	if err != nil || busy && ruling.Verdict != approval.Allow {
		return toolcall.Call{}, gateAgain, err
	}
	switch ruling.Verdict {
	case approval.Allow:
		return r.callOf(proposed, ruling), gateOpen, nil
	case approval.Pending:
		a := ruling.Ask
		asked := chat.ApprovalAsked{ID: a.ID, Call: c.Use.ID, Name: c.Use.Name, Why: made.Ask,
			Actions: a.Actions, Rule: a.Rule, Preview: a.Preview, Until: a.Deadline, Who: a.Who, Unbound: approval.Unbound(a.Bound)}
		if made.Changed {
			asked.Args = args
		}
		return toolcall.Call{}, gateSuspended, r.Write(ctx, asked)
	case approval.End:
		r.fatal = &chat.Failure{Kind: "denied", Message: ruling.Reason}
		return toolcall.Call{}, gateAgain, r.deny(ctx, c.Use, made.Note()+"denied: "+ruling.Reason)
	default:
		return toolcall.Call{}, gateAgain, r.deny(ctx, c.Use, made.Note()+"permission denied: "+ruling.Reason)
	}
}

// deny answers a call with a no, and the calls behind it that could change
// something with a skip: they were planned for a world in which it had run.
func (r *runner) deny(ctx context.Context, use chat.ToolUse, text string) error {
	var bodies []chat.Body
	behind := false
	for _, c := range r.log.Calls() {
		if c.Use.ID == use.ID {
			bodies = append(bodies, chat.ToolRan{Call: use.ID, Name: use.Name, Blocks: chat.TextBlocks(text), Failed: true, Outcome: chat.Denied})
			behind = true
			continue
		}
		if !behind || c.Done {
			continue
		}
		if t, _, err := r.Tools.Resolve(c.Use.Name, c.Use.Args); err == nil && t.Spec().ReadOnly {
			continue
		}
		bodies = append(bodies, chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Failed: true, Outcome: chat.Skipped,
			Blocks: chat.TextBlocks("skipped: an earlier call of the same answer was denied")})
	}
	return r.Write(ctx, bodies...)
}

// skip answers every open call without running it.
func (r *runner) skip(ctx context.Context, how chat.Outcome, text string) error {
	var bodies []chat.Body
	for _, c := range r.log.Calls() {
		if !c.Done {
			bodies = append(bodies, chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: chat.TextBlocks(text), Failed: true, Outcome: how})
		}
	}
	return r.Write(ctx, bodies...)
}

// alone runs a call that may change something: noted before it starts, so that it
// never runs twice.
func (r *runner) alone(ctx context.Context, one toolcall.Call) error {
	if !one.Tool.Spec().ReadOnly {
		if err := r.Write(ctx, chat.ToolBegan{Call: one.Use.ID, Name: one.Use.Name}); err != nil {
			return err
		}
	}
	return r.finish(ctx, one)
}

// delegated is how many calls other threads are at work on.
func (r *runner) delegated() (n int) {
	for _, c := range r.log.Calls() {
		if c.Delegated() {
			n++
		}
	}
	return n
}

// hand gives a call to another thread. That it was given and what that thread begins with are one commit, so that
// no crash leaves one without the other.
func (r *runner) hand(ctx context.Context, one toolcall.Call) error {
	r.waits(deadline.Wait{For: "another agent to be made ready", Quiet: r.bounds.Setup})
	d, err := r.Defer(ctx, one, r.log.Run())
	if err != nil {
		return r.Write(ctx, chat.ToolRan{Call: one.Use.ID, Name: one.Use.Name, Blocks: chat.TextBlocks(err.Error()), Failed: true, Outcome: chat.Invalid})
	}
	var body chat.Body = chat.Deferred{Call: one.Use.ID, Name: one.Use.Name, Thread: d.Thread}
	if d.Result != nil {
		body = chat.ToolRan{Call: one.Use.ID, Name: one.Use.Name, Blocks: d.Result, Outcome: chat.Ran}
	}
	return r.Commit(ctx, record.Batch{Events: []chat.Event{{Body: body}}, Beside: []journal.Commit{d.Begin}})
}

// finish runs a call and writes its result down, or, when nothing else of the
// answer is left to do, keeps it for the commit of the next request.
func (r *runner) finish(ctx context.Context, one toolcall.Call) error {
	r.waits(r.calls.Wait(one))
	out := r.calls.Run(ctx, one)
	r.hooks.Tell(ctx, one, &out)
	r.ranBadly(out)
	b := record.Batch{Events: []chat.Event{{Body: out.Ran}}, Blobs: out.Blobs}
	// What the request shows of blobs must be there when it is made.
	if out.Ran.Outcome == chat.Ran && len(out.Blobs) == 0 && r.onlyOpen(one.Use.ID) {
		r.Hold(b, out.Ran)
		return nil
	}
	return r.Commit(ctx, b)
}

// ranBadly ends the run after a tool that failed by itself; the first one counts.
func (r *runner) ranBadly(out toolcall.Outcome) {
	if out.Err != nil && r.fatal == nil {
		r.fatal = &chat.Failure{Kind: "tool", Message: out.Err.Error()}
	}
}

// onlyOpen reports that a call is the last one without a result.
func (r *runner) onlyOpen(call string) bool {
	for _, c := range r.log.Calls() {
		if !c.Done && c.Use.ID != call {
			return false
		}
	}
	return true
}

// together runs read-only calls at the same time; their results stand in the
// order of the calls.
func (r *runner) together(ctx context.Context, batch []toolcall.Call) error {
	if len(batch) == 1 {
		return r.alone(ctx, batch[0])
	}
	r.waits(r.calls.Wait(batch...))
	var b record.Batch
	for i, out := range r.calls.RunAll(ctx, batch) {
		r.hooks.Tell(ctx, batch[i], &out)
		r.ranBadly(out)
		b.Events = append(b.Events, chat.Event{Body: out.Ran})
		b.Blobs = append(b.Blobs, out.Blobs...)
	}
	return r.Commit(ctx, b)
}
