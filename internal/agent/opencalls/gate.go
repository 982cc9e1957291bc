package opencalls

import (
	"context"

	"chorus/internal/agent/toolcall"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// Proposed is a call that has not been judged yet.
type Proposed struct {
	Call     chat.ToolUse
	Tool     tool.Tool
	Args     []byte // in the tool's form
	Touches  []tool.Access
	Ask      string              // why a hook requires a person's approval, whatever the rules allow; "" leaves it to the rules
	Approved string              // the approval that allowed it, if any: its bound facts are checked again
	Senders  []transcript.Sender // everybody on whose words it would be done; set by the host
}

// Verdict is the gate's decision about a call.
type Verdict int

// The verdicts.
const (
	Open      Verdict = iota // it may run
	Denied                   // it was denied, and that is written as its result
	Suspended                // somebody was asked
)

// Gate decides whether a call may run. If it may not, or not yet, Gate writes the consequence.
func (c *Calls) Gate(ctx context.Context, open transcript.Call, t tool.Tool, args []byte) (Verdict, error) {
	_, verdict, err := c.gate(ctx, open, t, args, false)
	return verdict, err
}

// gate is Gate but also returns the call to run. With busy set it writes nothing.
func (c *Calls) gate(ctx context.Context, open transcript.Call, t tool.Tool, args []byte, busy bool) (toolcall.Call, Verdict, error) {
	if open.Answered && !open.OK {
		if busy {
			return toolcall.Call{}, Denied, nil
		}
		text := "denied by " + open.By
		if open.Note != "" {
			text += ": " + open.Note
		}
		return toolcall.Call{}, Denied, c.deny(ctx, open.Use, text)
	}
	made := c.Hooks.Made(open.Use.ID)
	proposed := Proposed{Call: open.Use, Tool: t, Args: args, Touches: t.Access(args), Ask: made.Ask}
	if made.Changed { // people see the call that would run
		proposed.Call.Args = args
	}
	if open.Answered {
		proposed.Approved = open.Approval
	}
	ruling, err := c.Judge(ctx, proposed)
	if err != nil || busy && ruling.Verdict != approval.Allow {
		return toolcall.Call{}, Denied, err
	}
	switch ruling.Verdict {
	case approval.Allow:
		return c.allowed(proposed, ruling), Open, nil
	case approval.Pending:
		a := ruling.Ask
		asked := chat.ApprovalAsked{ID: a.ID, Call: open.Use.ID, Name: open.Use.Name, Why: made.Ask,
			Actions: a.Actions, Rule: a.Rule, Preview: a.Preview, Until: a.Deadline, Who: a.Who, Unbound: approval.Unbound(a.Bound), Assessment: a.Assessment}
		if made.Changed {
			asked.Args = args
		}
		return toolcall.Call{}, Suspended, c.Record.Write(ctx, asked)
	case approval.End:
		c.Fatal(&chat.Failure{Kind: "denied", Message: ruling.Reason})
		return toolcall.Call{}, Denied, c.deny(ctx, open.Use, made.Note()+"denied: "+ruling.Reason)
	default:
		return toolcall.Call{}, Denied, c.deny(ctx, open.Use, made.Note()+"permission denied: "+ruling.Reason)
	}
}

// allowed returns a call that may run. It touches only what was judged.
func (c *Calls) allowed(judged Proposed, ruling approval.Ruling) toolcall.Call {
	run := c.Log.Run()
	call := toolcall.Call{Use: judged.Call, Tool: judged.Tool, Args: judged.Args, Key: Key(run, judged.Call.ID), Touches: judged.Touches, Hides: ruling.Hides}
	for _, s := range run.Senders {
		call.Senders = append(call.Senders, s.Principal)
	}
	if len(call.Senders) == 0 {
		call.Senders = []chat.Principal{run.Principal}
	}
	return call
}
