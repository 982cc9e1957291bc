package opencalls

import (
	"context"

	"chorus/internal/agent/deadline"
	"chorus/internal/chat"
	"chorus/internal/transcript"
)

// deny answers a call with the denial. It skips the calls after it that could change
// something, because they were planned on the assumption that it ran.
func (c *Calls) deny(ctx context.Context, use chat.ToolUse, text string) error {
	var bodies []chat.Body
	behind := false
	for _, open := range c.Log.Calls() {
		if open.Use.ID == use.ID {
			bodies = append(bodies, chat.ToolRan{Call: use.ID, Name: use.Name, Blocks: chat.TextBlocks(text), Failed: true, Outcome: chat.Denied})
			behind = true
			continue
		}
		if !behind || open.Done {
			continue
		}
		if t, _, err := c.Tools.Resolve(open.Use.Name, open.Use.Args); err == nil && t.Spec().ReadOnly {
			continue
		}
		bodies = append(bodies, chat.ToolRan{Call: open.Use.ID, Name: open.Use.Name, Failed: true, Outcome: chat.Skipped,
			Blocks: chat.TextBlocks("skipped: an earlier call of the same answer was denied")})
	}
	return c.Record.Write(ctx, bodies...)
}

// skip answers every open call without running it.
func (c *Calls) skip(ctx context.Context, how chat.Outcome, text string) error {
	var bodies []chat.Body
	for _, open := range c.Log.Calls() {
		if !open.Done {
			bodies = append(bodies, chat.ToolRan{Call: open.Use.ID, Name: open.Use.Name, Blocks: chat.TextBlocks(text), Failed: true, Outcome: how})
		}
	}
	return c.Record.Write(ctx, bodies...)
}

// Recover settles the calls that a crash left open. A call that had begun is
// run again only if repeating it has no further effect.
func (c *Calls) Recover(ctx context.Context) error {
	for _, open := range c.Log.Calls() {
		if !open.Began || open.Done {
			continue
		}
		if t, _, err := c.Tools.Resolve(open.Use.Name, open.Use.Args); err == nil && t.Spec().Once {
			continue
		}
		if c.Reap != nil {
			c.Waits(deadline.Wait{For: "leftover processes of an earlier call to end", Quiet: c.Setup})
			if err := c.Reap(ctx, Key(c.Log.Run(), open.Use.ID)); err != nil {
				return err
			}
		}
		err := c.Record.Write(ctx, chat.ToolRan{Call: open.Use.ID, Name: open.Use.Name, Blocks: transcript.Interrupted(),
			Failed: true, Outcome: chat.Interrupted})
		if err != nil {
			return err
		}
	}
	return nil
}

// AtEnd returns results for the calls that have none when the run ends.
func (c *Calls) AtEnd() []chat.Event {
	var out []chat.Event
	for _, open := range c.Log.Calls() {
		if open.Done {
			continue
		}
		ran := chat.ToolRan{Call: open.Use.ID, Name: open.Use.Name, Failed: true, Outcome: chat.Skipped,
			Blocks: chat.TextBlocks("skipped: the run ended before this call was made")}
		if open.Began {
			ran.Outcome, ran.Blocks = chat.Interrupted, transcript.Interrupted()
		}
		if open.Deferred != "" {
			ran.Outcome, ran.Blocks = chat.Interrupted, chat.TextBlocks("stopped: the run ended while another agent worked on this")
		}
		out = append(out, chat.Event{Body: ran})
	}
	return out
}
