// Package toolcall runs calls of tools. Each call ends with a result. A tool that does not end is
// told to, and is abandoned if it does not obey; a tool that panics has failed.
package toolcall

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/chat"
	"chorus/internal/tool"
)

// Call is a call that may be run.
type Call struct {
	Use  chat.ToolUse
	Tool tool.Tool
	Args []byte
	Key  string // marks the processes of the call, so that they can be found after a crash
	// Senders are those on whose words the call is made.
	Senders []chat.Principal
	Touches []tool.Access          // what the gate judged
	Hides   func(path string) bool // files that the rules hide from it; nil if none
}

// Outcome is how a call ended.
type Outcome struct {
	Ran   chat.ToolRan
	Blobs []chat.Blob
	Err   error // the tool itself failed: our fault, not the call's
}

// Runner runs calls within bounds.
type Runner struct {
	Bounds   deadline.Bounds
	Now      func() time.Time
	Progress func(call chat.ToolUse, text string) // safe for concurrent use
	// Abandoned is told of a tool that did not end when told to, and returns a
	// function to call if it ends after all; may be nil.
	Abandoned func(what string) (back func())
}

// atOnce is how many calls run together: enough to overlap waits, few enough to spare the disk.
const atOnce = 8

// Wait describes the wait while the calls run: each has its limit, and a grace period after being told to end.
func (r Runner) Wait(calls ...Call) deadline.Wait {
	what := "the tool " + calls[0].Use.Name
	if n := len(calls); n > 1 {
		what = fmt.Sprintf("%s and %d other calls", what, n-1)
	}
	rounds, limit := time.Duration((len(calls)+atOnce-1)/atOnce), r.Bounds.Tool
	for _, c := range calls {
		limit = max(limit, r.limit(c))
	}
	most := rounds*(limit+r.Bounds.Grace) + r.Bounds.Grace
	return deadline.Wait{For: what, Quiet: most, Total: most}
}

// limit is how long a call may take. A tool may say that its calls take longer than usual.
func (r Runner) limit(one Call) time.Duration {
	if one.Tool == nil {
		return r.Bounds.Tool
	}
	return max(r.Bounds.Tool, one.Tool.Spec().Limit)
}

// RunAll runs calls at the same time. The outcomes keep the order of the calls.
func (r Runner) RunAll(ctx context.Context, calls []Call) []Outcome {
	out := make([]Outcome, len(calls))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, one := range calls {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i] = r.Run(ctx, one)
		})
	}
	wg.Wait()
	return out
}

// Run runs one call and always returns an outcome.
func (r Runner) Run(ctx context.Context, one Call) Outcome {
	start := r.Now()
	ctx, cancel := deadline.ForTool(ctx)
	defer cancel()
	ctx = tool.WithCall(ctx, tool.Call{ID: one.Use.ID, Key: one.Key, Senders: one.Senders, Touches: one.Touches, Hides: one.Hides, Progress: func(text string) { r.Progress(one.Use, text) }})
	res, err := r.bounded(ctx, one)
	out := Outcome{Blobs: res.Blobs, Ran: chat.ToolRan{Call: one.Use.ID, Name: one.Use.Name, Blocks: res.Blocks, Failed: res.Failed, Exit: res.Exit, Outcome: chat.Ran,
		TookMS: r.Now().Sub(start).Round(time.Millisecond).Milliseconds(), Read: res.Read, Changed: res.Changed, Diff: res.Diff, UntrustedFrom: res.UntrustedFrom}}
	switch {
	case ctx.Err() != nil:
		out.Ran.Outcome, out.Ran.Failed = chat.Interrupted, true
		if len(out.Ran.Blocks) == 0 {
			out.Ran.UntrustedFrom = ""
			out.Ran.Blocks = chat.TextBlocks("interrupted: " + context.Cause(ctx).Error())
		}
	case err != nil:
		out.Ran.Failed, out.Ran.UntrustedFrom, out.Ran.Blocks = true, "", chat.TextBlocks("the tool itself failed: "+err.Error())
		out.Err = fmt.Errorf("the tool %s failed: %w", one.Use.Name, err)
	}
	return out
}

// bounded makes sure that a call ends. After the limit its context is cancelled. If the call
// ignores that too, it is abandoned so that the conversation can continue.
func (r Runner) bounded(ctx context.Context, one Call) (tool.Result, error) {
	limit := r.limit(one)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	late := func(res tool.Result, err error) (tool.Result, error) {
		if err == nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			res.Failed = true
			res.Blocks = append(res.Blocks, chat.TextBlocks(fmt.Sprintf("\n[%s was told to end after %s, the limit of a call]", one.Use.Name, limit))...)
		}
		return res, err
	}
	if one.Tool.Spec().Ends {
		return late(safely(ctx, one))
	}
	type ended struct {
		res tool.Result
		err error
	}
	done := make(chan ended, 1)
	go func() {
		res, err := safely(ctx, one)
		done <- ended{res, err}
	}()
	select {
	case e := <-done:
		return e.res, e.err
	case <-ctx.Done():
	}
	select {
	case e := <-done:
		return late(e.res, e.err)
	case <-time.After(r.Bounds.Grace):
		if r.Abandoned != nil {
			back := r.Abandoned("the tool " + one.Use.Name)
			go func() { <-done; back() }()
		}
		return tool.Fail(fmt.Sprintf("%s did not end even when told to, and was abandoned after %s. It may still take effect: check before repeating it.",
			one.Use.Name, limit+r.Bounds.Grace)), nil
	}
}

// safely turns a tool's panic into a failed result: a bad tool must not crash the process.
func safely(ctx context.Context, one Call) (res tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = tool.Result{}, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return one.Tool.Run(ctx, one.Args)
}

// Actions lists in words which tools were called, in order.
func Actions(tools Tools, called []chat.ToolUse) string {
	var names []string
	for _, use := range called {
		name := use.Name
		if t, _, err := tools.Resolve(use.Name, use.Args); err == nil {
			name = t.Spec().Name // what use_tool called
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "Done."
	}
	return "Done. Actions taken: " + strings.Join(names, ", ")
}
