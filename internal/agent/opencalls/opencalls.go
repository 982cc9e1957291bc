// Package opencalls brings the calls of one answer to their results: hooks, the gate, running, handing over to another
// thread, and what becomes of calls that are denied, skipped, or left by a crash.
//
// It decides from the folded log and does one thing at a time, as the loop above it does. It promises that every call gets exactly one
// result, and that a call with side effects which has begun is never run again. opencalls.go has the order in which calls are made, gate.go
// whether one may be made, run.go how it is, leftover.go what is written of those that are not.
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

// Calls are the calls of the run that is on. It is used from one goroutine.
type Calls struct {
	Log    *transcript.Log
	Record *record.Recorder
	Tools  toolcall.Tools
	Hooks  toolcall.Hooks
	Runner toolcall.Runner
	Setup  time.Duration // how long making something ready may take
	// Judge says whether a call may run.
	Judge func(context.Context, Proposed) (approval.Ruling, error)
	// Defer hands a call of a tool with Spec.Deferred to another thread. An error is for the model to read.
	Defer func(ctx context.Context, call toolcall.Call, run *transcript.Run) (Deferral, error)
	// Reap kills what still runs of a call, by its key; may be nil.
	Reap func(ctx context.Context, key string) error
	// Waits hears what is waited for from now on. Fatal hears of a failure that the run must end with.
	Waits func(deadline.Wait)
	Fatal func(*chat.Failure)
}

// Deferral is how a call is handed to another thread.
type Deferral struct {
	Thread chat.ThreadID
	Begin  journal.Commit // what that thread begins with
	// Result is the call's, where nobody waits for the other thread; nil: its answer will be.
	Result chat.Blocks
}

// Key marks the processes of a call. Models number their calls as they like, so the run is part of it.
func Key(run *transcript.Run, call string) string {
	if run == nil {
		return call
	}
	return run.ID + "/" + call
}

// Next brings the open calls further: read-only ones that follow each other run together, every other one alone and in
// order. It reports that all that is left waits for somebody's yes, or for another agent.
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

// due is what is to be done about a call.
type due int

const (
	ready     due = iota // it may run
	passed               // not its turn; those behind it need not wait
	settled              // a result was written; with others to be run first, it will be
	suspended            // it waits for somebody's yes
)

// next says what is due for one call and writes what comes of it, if that is not to run it. With busy set it writes
// nothing: calls before this one are still to be run.
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
			return c.skip(ctx, chat.Skipped, "skipped: new words arrived before this call was made, or before it was answered")
		})
	case open.Delegated():
		return none, passed, nil // its answer comes by itself
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

// interrupted reports words that want the rest of the calls skipped.
func (c *Calls) interrupted() bool {
	return slices.ContainsFunc(c.Log.Waiting(), func(w transcript.Waiting) bool { return w.Intake == chat.Interrupt })
}

// delegated is how many calls other threads are at work on.
func (c *Calls) delegated() (n int) {
	for _, open := range c.Log.Calls() {
		if open.Delegated() {
			n++
		}
	}
	return n
}
