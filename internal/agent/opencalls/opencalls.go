// Package opencalls brings the calls of one answer to their results. It covers hooks, the gate,
// running, handing calls to another thread, and calls that are denied, skipped or left by a crash.
//
// Like the loop above it, it decides from the folded log and does one thing at a time. Every call
// gets exactly one result, and a call with side effects that has begun is never run again.
// opencalls.go has the order in which calls are made, gate.go decides whether one may be made,
// run.go makes it, and leftover.go writes results for those that were not made.
package opencalls

import (
	"context"
	"errors"
	"slices"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/agent/record"
	"chorus/internal/agent/toolcall"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/transcript"
)

// maxDelegated is how many calls other threads may work on at the same time.
const maxDelegated = 8

// Calls are the calls of the current run. It is used from one goroutine.
type Calls struct {
	Log    *transcript.Log
	Record *record.Recorder
	Tools  toolcall.Tools
	Hooks  toolcall.Hooks
	Runner toolcall.Runner
	Setup  time.Duration // how long preparing something may take
	// Judge says whether a call may run.
	Judge func(context.Context, Proposed) (approval.Ruling, error)
	// Defer hands a call of a tool with Spec.Deferred to another thread. The model reads the error.
	Defer func(ctx context.Context, call toolcall.Call, run *transcript.Run) (Deferral, error)
	// Reap kills what is still running of a call, by its key; may be nil.
	Reap func(ctx context.Context, key string) error
	// Waits is told what is waited for. Fatal is told of a failure that must end the run.
	Waits func(deadline.Wait)
	Fatal func(*chat.Failure)
}

// Deferral says how a call is handed to another thread.
type Deferral struct {
	Thread chat.ThreadID
	Begin  journal.Commit // what that thread begins with
	// Result is the call's result if nobody waits for the other thread. If it
	// is nil, the thread's answer will be the result.
	Result chat.Blocks
}

// Key marks the processes of a call. It includes the run, because models number their calls as they like.
func Key(run *transcript.Run, call string) string {
	if run == nil {
		return call
	}
	return run.ID + "/" + call
}

// Next makes progress on the open calls. Consecutive read-only calls run together, all others alone
// and in order. waiting is true if all remaining calls wait for approval or for another agent.
func (c *Calls) Next(ctx context.Context) (waiting bool, err error) {
	if c.Log.Cut() {
		return false, c.skip(ctx, chat.Invalid, "not run: your answer was cut off at the length limit, so this call may be incomplete. Make smaller calls, or write long files in several parts.")
	}
	if c.Log.Unreadable() {
		return false, c.skip(ctx, chat.Invalid, "not run: a part of your answer was garbled on the way, so this call may not be what you meant. Make it again.")
	}
	var batch []toolcall.Call
	for _, open := range c.Log.Calls() {
		if open.Done {
			continue
		}
		one, due, err := c.next(ctx, open, len(batch) > 0)
		switch {
		case err != nil:
			return false, err
		case due == passed:
			continue
		case due == ready && one.Tool.Spec().Deferred:
			return false, c.hand(ctx, one)
		case due == ready && one.Tool.Spec().ReadOnly:
			batch = append(batch, one)
			continue
		case len(batch) > 0: // it comes before whatever this one needs
			return false, c.together(ctx, batch)
		case due == ready:
			return false, c.alone(ctx, one)
		}
		return due == suspended, nil
	}
	if len(batch) == 0 {
		return true, nil
	}
	return false, c.together(ctx, batch)
}

// due says what to do about a call.
type due int

const (
	ready     due = iota // it may run
	passed               // not its turn; those after it need not wait
	settled              // a result was written, or will be once other calls have run
	suspended            // it waits for approval
)

// next decides what is due for one call. If the call is not to run now, next writes the
// consequence. With busy set it writes nothing, because calls before this one have yet to run.
func (c *Calls) next(ctx context.Context, open transcript.Call, busy bool) (toolcall.Call, due, error) {
	none := toolcall.Call{}
	settle := func(write func() error) (toolcall.Call, due, error) {
		if busy {
			return none, settled, nil
		}
		return none, settled, write()
	}
	result := func(ran chat.ToolRan) (toolcall.Call, due, error) {
		ran.Call, ran.Name = open.Use.ID, open.Use.Name
		return settle(func() error { return c.Record.Write(ctx, ran) })
	}
	switch {
	case c.interrupted():
		return settle(func() error {
			return c.skip(ctx, chat.Skipped, "skipped: a new message arrived before this call was made or answered")
		})
	case open.Delegated():
		return none, passed, nil // its answer arrives by itself
	case open.Settled != nil:
		return result(chat.ToolRan{Blocks: open.Settled.Blocks, Failed: open.Settled.Failed, Outcome: chat.Ran, UntrustedFrom: "agent " + open.Deferred.Agent()})
	case open.Approval != "" && !open.Answered:
		return none, suspended, nil
	}
	t, args, err := c.Tools.Resolve(open.Use.Name, open.Use.Args)
	if err == nil {
		err = c.Tools.Validate(t, args)
	}
	switch {
	case err != nil:
		return result(chat.ToolRan{Blocks: chat.TextBlocks(err.Error()), Failed: true, Outcome: chat.Invalid})
	case busy && !t.Spec().ReadOnly:
		return none, settled, nil
	case t.Spec().Deferred && c.delegated() >= maxDelegated:
		return none, passed, nil // until one of the others has answered
	}
	t, args, err = c.Hooks.Prepare(ctx, open.Use, t, args)
	if denied := (*toolcall.DeniedByHook)(nil); errors.As(err, &denied) {
		return settle(func() error { return c.deny(ctx, open.Use, denied.Why) })
	}
	if err != nil {
		return none, settled, err
	}
	one, verdict, err := c.gate(ctx, open, t, args, busy)
	switch verdict {
	case Open:
		return one, ready, err
	case Suspended:
		return none, suspended, err
	}
	return none, settled, err
}

// interrupted reports whether words have arrived that want the rest of the calls skipped.
func (c *Calls) interrupted() bool {
	return slices.ContainsFunc(c.Log.Waiting(), func(w transcript.Waiting) bool { return w.Intake == chat.Interrupt })
}

// delegated counts the calls that other threads are working on.
func (c *Calls) delegated() (n int) {
	for _, open := range c.Log.Calls() {
		if open.Delegated() {
			n++
		}
	}
	return n
}
