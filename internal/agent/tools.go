package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// ready is a call that passed the gate.
type ready struct {
	use  chat.ToolUse
	tool tool.Tool
	args []byte
}

// tools brings the open calls further: read-only ones that follow each other run
// together, every other one alone and in order.
func (r *runner) tools(ctx context.Context) (State, error) {
	if r.log.Cut() {
		return "", r.skip(ctx, chat.Invalid, "not run: your answer was cut off at the length limit, so this call may be incomplete. Make smaller calls, or write long files in several parts.")
	}
	var batch []ready
	for _, c := range r.log.Calls() {
		if c.Done {
			continue
		}
		if r.interrupted() {
			if len(batch) > 0 {
				break
			}
			return "", r.skip(ctx, chat.Skipped, "skipped: new words arrived before this call was made")
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
			return "", r.write(ctx, chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: chat.TextBlocks(err.Error()),
				Failed: true, Outcome: chat.Invalid})
		}
		if len(batch) > 0 && !t.Spec().ReadOnly {
			break
		}
		verdict, err := r.gate(ctx, c, t, args, len(batch) > 0)
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
		one := ready{c.Use, t, args}
		if !t.Spec().ReadOnly {
			return "", r.alone(ctx, one)
		}
		batch = append(batch, one)
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
func (r *runner) gate(ctx context.Context, c transcript.Call, t tool.Tool, args []byte, busy bool) (gateAnswer, error) {
	if c.Answered && !c.OK {
		if busy {
			return gateAgain, nil
		}
		text := "denied by " + c.By
		if c.Note != "" {
			text += ": " + c.Note
		}
		return gateAgain, r.deny(ctx, c.Use, text)
	}
	q := Question{Call: c.Use, Tool: t, Args: args, Touches: t.Access(args)}
	if c.Answered {
		q.Approved = c.Approval
	}
	ruling, err := r.host.Judge(ctx, q)
	if err != nil {
		return gateAgain, err
	}
	if ruling.Verdict == approval.Allow {
		return gateOpen, nil
	}
	if busy {
		return gateAgain, nil
	}
	switch ruling.Verdict {
	case approval.Pending:
		a := ruling.Ask
		return gateSuspended, r.write(ctx, chat.ApprovalAsked{ID: a.ID, Call: c.Use.ID, Name: c.Use.Name,
			Actions: a.Actions, Rule: a.Rule, Preview: a.Preview, Until: a.Deadline, Who: a.Who})
	case approval.End:
		r.fatal = &chat.Failure{Kind: "denied", Message: ruling.Reason}
		return gateAgain, r.deny(ctx, c.Use, "denied: "+ruling.Reason)
	default:
		return gateAgain, r.deny(ctx, c.Use, "permission denied: "+ruling.Reason)
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
	return r.write(ctx, bodies...)
}

// skip answers every open call without running it.
func (r *runner) skip(ctx context.Context, how chat.Outcome, text string) error {
	var bodies []chat.Body
	for _, c := range r.log.Calls() {
		if !c.Done {
			bodies = append(bodies, chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: chat.TextBlocks(text), Failed: true, Outcome: how})
		}
	}
	return r.write(ctx, bodies...)
}

// alone runs a call that may change something: noted before it starts, so that it
// never runs twice.
func (r *runner) alone(ctx context.Context, one ready) error {
	if !one.tool.Spec().ReadOnly {
		if err := r.write(ctx, chat.ToolBegan{Call: one.use.ID, Name: one.use.Name}); err != nil {
			return err
		}
	}
	return r.finish(ctx, one)
}

// finish runs a call and writes its result down, or, when nothing else of the
// answer is left to do, keeps it for the commit of the next request.
func (r *runner) finish(ctx context.Context, one ready) error {
	r.waitsFor(one)
	ran, blobs := r.run(ctx, one)
	b := Batch{Events: []chat.Event{{Body: ran}}, Blobs: blobs}
	// What the request shows of blobs must be there when it is made.
	if ran.Outcome == chat.Ran && len(blobs) == 0 && r.onlyOpen(one.use.ID) {
		r.hold(b, ran)
		return nil
	}
	return r.commit(ctx, b)
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

// atOnce is how many calls run together: enough to overlap waits, few enough to spare the disk.
const atOnce = 8

// together runs read-only calls at the same time; their results stand in the
// order of the calls.
func (r *runner) together(ctx context.Context, batch []ready) error {
	if len(batch) == 1 {
		return r.alone(ctx, batch[0])
	}
	type outcome struct {
		ran   chat.ToolRan
		blobs []chat.Blob
	}
	outcomes := make([]outcome, len(batch))
	r.waitsFor(batch...)
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, one := range batch {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			outcomes[i].ran, outcomes[i].blobs = r.run(ctx, one)
		})
	}
	wg.Wait()
	var b Batch
	for _, o := range outcomes {
		b.Events = append(b.Events, chat.Event{Body: o.ran})
		b.Blobs = append(b.Blobs, o.blobs...)
	}
	return r.commit(ctx, b)
}

// run is one call, whatever happens in it.
func (r *runner) run(ctx context.Context, one ready) (chat.ToolRan, []chat.Blob) {
	start := r.Now()
	run := r.log.Run()
	ctx = tool.WithCall(ctx, tool.Call{ID: one.use.ID, Key: callKey(run, one.use.ID), Progress: func(text string) {
		r.host.Live(chat.Progress{Run: run.ID, Call: one.use.ID, Tool: one.use.Name, Text: text})
	}})
	res, err := r.bounded(ctx, one)
	ran := chat.ToolRan{Call: one.use.ID, Name: one.use.Name, Blocks: res.Blocks, Failed: res.Failed, Outcome: chat.Ran,
		TookMS: r.Now().Sub(start).Round(time.Millisecond).Milliseconds(), Read: res.Read, Changed: res.Changed, Foreign: res.Foreign}
	if ctx.Err() != nil {
		ran.Outcome, ran.Failed = chat.Interrupted, true
		if len(ran.Blocks) == 0 {
			ran.Foreign = ""
			ran.Blocks = chat.TextBlocks("interrupted: " + context.Cause(ctx).Error())
		}
		return ran, res.Blobs
	}
	if err != nil {
		ran.Failed, ran.Foreign, ran.Blocks = true, "", chat.TextBlocks("the tool itself failed: "+err.Error())
		r.setFatal(fmt.Sprintf("the tool %s failed: %v", one.use.Name, err))
	}
	return ran, res.Blobs
}

// setFatal may be called by several calls of one batch; the first one counts.
func (r *runner) setFatal(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fatal == nil {
		r.fatal = &chat.Failure{Kind: "tool", Message: message}
	}
}

// bounded ends every call: after the limit its context is cancelled, and one that does
// not even obey that is left to itself, so that the conversation can go on.
func (r *runner) bounded(ctx context.Context, one ready) (tool.Result, error) {
	limit, patience := r.bounds.Tool, r.bounds.Grace
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	late := func(res tool.Result, err error) (tool.Result, error) {
		if err == nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			res.Failed = true
			res.Blocks = append(res.Blocks, chat.TextBlocks(fmt.Sprintf("\n[%s was told to end after %s, the limit of a call]", one.use.Name, limit))...)
		}
		return res, err
	}
	if one.tool.Spec().Ends {
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
	grace := time.NewTimer(patience)
	defer grace.Stop()
	select {
	case e := <-done:
		return late(e.res, e.err)
	case <-grace.C:
		if r.Abandoned != nil {
			back := r.Abandoned("the tool " + one.use.Name)
			go func() { <-done; back() }()
		}
		return tool.Fail(fmt.Sprintf("%s did not end, also when it was told to; it was left alone after %s. Whatever it does may still happen: check before repeating it.",
			one.use.Name, limit+patience)), nil
	}
}

// waitsFor says which calls the run waits for: each has its limit, and its grace when it
// is told to end.
func (r *runner) waitsFor(calls ...ready) {
	what := "the tool " + calls[0].use.Name
	if n := len(calls); n > 1 {
		what = fmt.Sprintf("%s and %d other calls", what, n-1)
	}
	rounds := time.Duration((len(calls) + atOnce - 1) / atOnce)
	most := rounds*(r.bounds.Tool+r.bounds.Grace) + r.bounds.Grace
	r.waits(what, most, most)
}

// safely turns a tool's panic into a failed result: one bad tool must not take
// the process with it.
func safely(ctx context.Context, one ready) (res tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = tool.Result{}, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return one.tool.Run(ctx, one.args)
}
