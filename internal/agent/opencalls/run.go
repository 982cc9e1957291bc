package opencalls

import (
	"context"
	"errors"

	"chorus/internal/agent/deadline"
	"chorus/internal/agent/record"
	"chorus/internal/agent/toolcall"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
)

// Answered writes an answer. If its first call is allowed and changes something, the call's
// beginning is part of the same commit, which saves a commit in the most common kind of turn.
func (c *Calls) Answered(ctx context.Context, said chat.Said) error {
	one, ok, err := c.first(ctx, said)
	if err != nil {
		return err
	}
	if ok {
		err := c.Record.Write(ctx, said, chat.ToolBegan{Call: one.Use.ID, Name: one.Use.Name})
		if err == nil {
			return c.finish(ctx, one)
		}
		if !errors.Is(err, journal.ErrMoved) {
			return err
		}
		// Something arrived meanwhile: the answer is kept, and the loop decides again.
	}
	return c.Record.Write(ctx, said)
}

// first returns the call that an answer begins with, if it may run at once and alone.
func (c *Calls) first(ctx context.Context, said chat.Said) (toolcall.Call, bool, error) {
	calls := said.Blocks.Calls()
	if len(calls) == 0 || said.Error != nil || said.Partial || said.Stop == chat.StopLength || len(said.Unreadable) > 0 || ctx.Err() != nil || c.interrupted() || c.Hooks.Before != nil {
		return toolcall.Call{}, false, nil
	}
	t, args, err := c.Tools.Resolve(calls[0].Name, calls[0].Args)
	if err != nil || t.Spec().ReadOnly || t.Spec().Deferred || calls[0].ID == "" || c.Tools.Validate(t, args) != nil {
		return toolcall.Call{}, false, nil // the loop will answer it
	}
	proposed := Proposed{Call: calls[0], Tool: t, Args: args, Touches: t.Access(args)}
	ruling, err := c.Judge(ctx, proposed)
	return c.allowed(proposed, ruling), ruling.Verdict == approval.Allow, err
}

// alone runs a call that may change something. It records the start first, so that the call never runs twice.
func (c *Calls) alone(ctx context.Context, one toolcall.Call) error {
	if !one.Tool.Spec().ReadOnly {
		if err := c.Record.Write(ctx, chat.ToolBegan{Call: one.Use.ID, Name: one.Use.Name}); err != nil {
			return err
		}
	}
	return c.finish(ctx, one)
}

// finish runs a call and writes its result. If nothing else of the answer is left to
// do, it keeps the result for the commit of the next request.
func (c *Calls) finish(ctx context.Context, one toolcall.Call) error {
	c.Waits(c.Runner.Wait(one))
	out := c.Runner.Run(ctx, one)
	c.ran(ctx, one, &out)
	b := record.Batch{Events: []chat.Event{{Body: out.Ran}}, Blobs: out.Blobs}
	// Blobs that the request shows must exist when it is made.
	if out.Ran.Outcome == chat.Ran && len(out.Blobs) == 0 && c.onlyOpen(one.Use.ID) {
		c.Record.Hold(b, out.Ran)
		return nil
	}
	return c.Record.Commit(ctx, b)
}

// together runs read-only calls at the same time. Their results keep the order of the calls.
func (c *Calls) together(ctx context.Context, batch []toolcall.Call) error {
	if len(batch) == 1 {
		return c.alone(ctx, batch[0])
	}
	c.Waits(c.Runner.Wait(batch...))
	var b record.Batch
	for i, out := range c.Runner.RunAll(ctx, batch) {
		c.ran(ctx, batch[i], &out)
		b.Events = append(b.Events, chat.Event{Body: out.Ran})
		b.Blobs = append(b.Blobs, out.Blobs...)
	}
	return c.Record.Commit(ctx, b)
}

// ran tells the hooks about a call that was made. If the tool itself failed, the run ends.
func (c *Calls) ran(ctx context.Context, one toolcall.Call, out *toolcall.Outcome) {
	c.Hooks.Tell(ctx, one, out)
	if out.Err != nil {
		c.Fatal(&chat.Failure{Kind: "tool", Message: out.Err.Error()})
	}
}

// onlyOpen reports whether a call is the last one without a result.
func (c *Calls) onlyOpen(call string) bool {
	for _, open := range c.Log.Calls() {
		if !open.Done && open.Use.ID != call {
			return false
		}
	}
	return true
}

// hand gives a call to another thread. The handover and the beginning of that thread
// are one commit, so that no crash leaves one without the other.
func (c *Calls) hand(ctx context.Context, one toolcall.Call) error {
	c.Waits(deadline.Wait{For: "another agent to be prepared", Quiet: c.Setup})
	d, err := c.Defer(ctx, one, c.Log.Run())
	if err != nil {
		return c.Record.Write(ctx, chat.ToolRan{Call: one.Use.ID, Name: one.Use.Name, Blocks: chat.TextBlocks(err.Error()), Failed: true, Outcome: chat.Invalid})
	}
	var body chat.Body = chat.Deferred{Call: one.Use.ID, Name: one.Use.Name, Thread: d.Thread}
	if d.Result != nil {
		body = chat.ToolRan{Call: one.Use.ID, Name: one.Use.Name, Blocks: d.Result, Outcome: chat.Ran}
	}
	return c.Record.Commit(ctx, record.Batch{Events: []chat.Event{{Body: body}}, Beside: []journal.Commit{d.Begin}})
}
