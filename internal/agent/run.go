package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"chorus/internal/agent/attempt"
	"chorus/internal/agent/deadline"
	"chorus/internal/agent/opencalls"
	"chorus/internal/agent/record"
	"chorus/internal/agent/toolcall"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/transcript"
)

// Run continues the thread until a run has ended, a call waits for approval, or there is
// nothing to do. The log must be folded up to the host's last event.
func (a *Agent) Run(ctx context.Context, log *transcript.Log, h Host) (State, error) {
	r := newRunner(a, log, h)
	if err := r.calls.Recover(ctx); err != nil {
		return Stopped, err
	}
	for {
		state, err := r.next(ctx)
		switch {
		case errors.Is(err, journal.ErrMoved):
			// Something arrived: start over.
		case err != nil:
			return Stopped, errors.Join(err, r.Release(ctx))
		case state != "":
			return state, r.Release(ctx)
		}
	}
}

// Fail ends the current run with cause. Without a run it answers the oldest prompt
// with cause; newRun is the id of the run it creates for that. It needs only the
// host, because anything else may be what hangs.
func Fail(ctx context.Context, log *transcript.Log, h Host, newRun string, cause error) error {
	r := newRunner(&Agent{}, log, h)
	for {
		if err := r.failNow(ctx, newRun, cause); !errors.Is(err, journal.ErrMoved) {
			return err
		}
	}
}

// runner is the state of one call of Run.
type runner struct {
	*Agent
	*record.Recorder
	log    *transcript.Log
	host   Host
	bounds deadline.Bounds
	calls  opencalls.Calls
	sender attempt.Sender
	head   *model.Head
	fatal  *chat.Failure // our own failure, with which the run ends
}

func newRunner(a *Agent, log *transcript.Log, h Host) *runner {
	r := &runner{Agent: a, Recorder: record.New(log, h), log: log, host: h, bounds: a.Bounds.Or(deadline.Defaults())}
	r.calls = opencalls.Calls{
		Log: log, Record: r.Recorder, Tools: a.Tools, Setup: r.bounds.Setup, Judge: h.Judge, Defer: a.Defer, Reap: a.Reap, Waits: r.waits, Fatal: r.failWith,
		Hooks: toolcall.Hooks{Before: a.Before, After: a.After, Tools: a.Tools, Grace: r.bounds.Grace, Waits: r.waits},
		Runner: toolcall.Runner{Bounds: r.bounds, Now: a.Now, Abandoned: a.Abandoned, Progress: func(use chat.ToolUse, text string) {
			h.Live(chat.Progress{Run: log.Run().ID, Call: use.ID, Tool: use.Name, Text: text})
		}},
	}
	return r
}

// failWith makes the run end with a failure of our own. Only the first one counts.
func (r *runner) failWith(f *chat.Failure) {
	if r.fatal == nil {
		r.fatal = f
	}
}

// waits tells the watchdog what the run is about to wait for.
func (r *runner) waits(w deadline.Wait) {
	if r.Waits != nil {
		r.Waits(w)
	}
}

// next does the one thing that is due. An empty state means that there is more to do.
func (r *runner) next(ctx context.Context) (State, error) {
	run := r.log.Run()
	switch {
	case run == nil && len(r.log.Waiting()) == 0:
		return Nothing, nil
	case ctx.Err() != nil && (run == nil || !run.Aborted):
		return r.stopped(ctx)
	case run == nil && r.log.Waiting()[0].Stopped != "":
		w := r.log.Waiting()[0]
		return "", r.Write(ctx, chat.Refused{Seq: w.Seq, Why: "stopped by " + w.Stopped})
	case run == nil:
		return r.begin(ctx)
	case run.Aborted:
		return Finished, r.end(ctx, chat.RunEnded{Reason: chat.EndAborted, Text: "Stopped."})
	case r.fatal != nil:
		return Finished, r.fail(ctx, r.fatal)
	case r.Program != nil:
		return r.program(ctx, run)
	case r.log.OpenCalls():
		return r.openCalls(ctx)
	case run.Failure != nil && run.Failure.Final:
		return Finished, r.fail(ctx, run.Failure)
	case run.Open && run.Lost+1 >= maxLost:
		return Finished, r.fail(ctx, &chat.Failure{Kind: "lost",
			Message: fmt.Sprintf("the process ended %d times while the model was answering; send your message again to retry", maxLost)})
	case run.Final && !run.Open && run.Failure == nil:
		return r.afterAnswer(ctx, run)
	case run.Steps > 0 && run.Steps >= maxSteps(run):
		return Finished, r.end(ctx, r.limitEnd(run))
	case run.Fails >= maxFails:
		return Finished, r.fail(ctx, &chat.Failure{Kind: "breaker",
			Message: "stopped: five tool calls in a row failed. Check the last errors, then say how to continue"})
	case run.Repeats >= maxRepeats:
		return Finished, r.fail(ctx, &chat.Failure{Kind: "breaker",
			Message: "stopped: the same tool call was made five times in a row"})
	default:
		return "", r.ask(ctx, run)
	}
}

// openCalls makes progress on the calls of the last answer.
func (r *runner) openCalls(ctx context.Context) (State, error) {
	if waiting, err := r.calls.Next(ctx); waiting || err != nil {
		return Suspended, err
	}
	return "", nil
}

// stopped handles the end of the context. An abort is in the journal, but may not
// have been read yet. A run that waited too long is ended.
func (r *runner) stopped(ctx context.Context) (State, error) {
	if s := deadline.Passed(ctx); s != nil && r.log.Run() != nil {
		return Finished, r.fail(ctx, attempt.Failure(s))
	}
	if context.Cause(ctx) == ErrAborted {
		if err := r.Commit(ctx, record.Batch{}); err != nil {
			return Stopped, err
		}
		if run := r.log.Run(); run != nil && run.Aborted {
			return "", nil
		}
	}
	return Stopped, context.Cause(ctx)
}

func maxSteps(run *transcript.Run) int { return cmp.Or(max(run.Settings.MaxSteps, 0), DefaultMaxSteps) }

func (r *runner) limitEnd(run *transcript.Run) chat.RunEnded {
	if run.Settings.Dialogue.ReportActions {
		return chat.RunEnded{Reason: chat.EndLimit, Text: toolcall.Actions(r.Tools, run.Called)}
	}
	return chat.RunEnded{Reason: chat.EndLimit,
		Text: fmt.Sprintf("Stopped at the limit of %d model calls; the task may be incomplete. Say \"go on\" to continue.", maxSteps(run))}
}

// takenTogether returns the prompts that a new run takes: the oldest, and those after
// it that wait together with it, up to the first from somebody else. So nobody pays or
// approves for somebody else, and nobody is overtaken.
func takenTogether(waiting []transcript.Waiting) []int64 {
	seqs := []int64{waiting[0].Seq}
	for _, w := range waiting[1:] {
		if !waiting[0].Together || !w.Together || w.Terms != waiting[0].Terms || !w.Principal.Same(waiting[0].Principal) {
			break
		}
		seqs = append(seqs, w.Seq)
	}
	return seqs
}

// begin starts a run with the oldest waiting prompt.
func (r *runner) begin(ctx context.Context) (State, error) {
	prompt := r.log.Waiting()[0]
	if prompt.Terms != r.Terms {
		return Finished, nil
	}
	r.waits(deadline.Wait{For: "the setup of the run", Quiet: r.bounds.Setup})
	b, err := r.Begin(ctx, r.log, prompt)
	if ctx.Err() != nil && deadline.Passed(ctx) == nil {
		return r.stopped(ctx) // the prompt waits for whoever comes next
	}
	if err != nil {
		if s := deadline.Passed(ctx); s != nil {
			err = s
		}
		return Finished, r.failToStart(ctx, b, prompt, err)
	}
	batch := record.Batch{Blobs: []chat.Blob{b.Head}}
	b.Start.Run, b.Start.Head, b.Start.Renderer = b.Run, b.Head.Hash, transcript.Renderer
	b.Start.Principal, b.Start.Terms = prompt.Principal, prompt.Terms
	batch.Events = append(batch.Events, chat.Event{Run: b.Run, Body: b.Start})
	for _, n := range r.changedNotes(ctx) {
		batch.Events = append(batch.Events, chat.Event{Run: b.Run, Body: n})
	}
	batch.Events = append(batch.Events, chat.Event{Run: b.Run, Body: chat.Took{Run: b.Run, Step: 1, Seqs: takenTogether(r.log.Waiting())}})
	r.head = nil
	return "", r.Commit(ctx, batch)
}

// changedNotes returns the notes that differ from what the window shows.
func (r *runner) changedNotes(ctx context.Context) []chat.Body {
	if r.Notes == nil {
		return nil
	}
	var out []chat.Body
	for _, n := range r.Notes(ctx, r.log) {
		if r.log.Note(n.What) != n.Knows() {
			out = append(out, n)
		}
	}
	return out
}

// failToStart answers a prompt that could not even be started (no such model, no key)
// with the reason, so that it is neither lost nor retried forever.
func (r *runner) failToStart(ctx context.Context, b Beginning, prompt transcript.Waiting, cause error) error {
	f := attempt.Failure(cause)
	b.Start.Run, b.Start.Renderer, b.Start.Principal, b.Start.Terms = b.Run, transcript.Renderer, prompt.Principal, prompt.Terms
	var batch record.Batch
	for _, body := range []chat.Body{b.Start, chat.Took{Run: b.Run, Step: 1, Seqs: takenTogether(r.log.Waiting())},
		chat.RunEnded{Run: b.Run, Reason: chat.EndFailed, Error: f, Text: f.Message}} {
		batch.Events = append(batch.Events, chat.Event{Run: b.Run, Body: body})
	}
	return r.Commit(ctx, batch)
}

// afterAnswer continues after an answer without calls. Either there is more for this run, or it is over.
func (r *runner) afterAnswer(ctx context.Context, run *transcript.Run) (State, error) {
	if run.Stop == chat.StopRefused {
		return Finished, r.fail(ctx, &chat.Failure{Kind: string(model.Refused), Message: "the model refused to answer this"})
	}
	if run.Stop == chat.StopLength && run.Continued <= maxContinued {
		text := fmt.Sprintf("Your answer reached the length limit (part %d). Continue exactly where it stopped, without repeating anything.", run.Continued)
		if r.log.Note("continue") != text {
			if err := r.Write(ctx, chat.Noted{What: "continue", Text: text}); err != nil {
				return "", err
			}
		}
		return "", r.ask(ctx, run)
	}
	if run.Stop == chat.StopLength {
		return Finished, r.end(ctx, chat.RunEnded{Reason: chat.EndLimit,
			Text: fmt.Sprintf("The answer reached the length limit %d times and is cut off. Say \"go on\" to continue.", run.Continued)})
	}
	if run.Steps < maxSteps(run) {
		if took, err := r.take(ctx, run); took || err != nil {
			if err == nil {
				err = r.ask(ctx, r.log.Run())
			}
			return "", err
		}
	}
	end := chat.RunEnded{Reason: chat.EndDone}
	if !r.log.Run().Spoke {
		end.Text = "The model gave an empty answer. Send your message again, or rephrase it."
	}
	return Finished, r.end(ctx, end)
}

// take gives the run the words that arrived for it while it was active.
func (r *runner) take(ctx context.Context, run *transcript.Run) (bool, error) {
	var seqs []int64
	for _, w := range r.log.Waiting() {
		if w.Steer || w.Intake == chat.Inject || w.Intake == chat.Interrupt {
			seqs = append(seqs, w.Seq)
		}
	}
	if len(seqs) == 0 {
		return false, nil
	}
	return true, r.Write(ctx, chat.Took{Run: run.ID, Step: run.Step + 1, Seqs: seqs})
}

func (r *runner) failNow(ctx context.Context, newRun string, cause error) error {
	switch run := r.log.Run(); {
	case run != nil && run.Aborted:
		return r.end(ctx, chat.RunEnded{Reason: chat.EndAborted, Text: "Stopped."})
	case run != nil:
		return r.fail(ctx, attempt.Failure(cause))
	case len(r.log.Waiting()) > 0:
		return r.failToStart(ctx, Beginning{Run: newRun}, r.log.Waiting()[0], cause)
	default:
		return nil
	}
}

func (r *runner) fail(ctx context.Context, f *chat.Failure) error {
	reason := chat.EndFailed
	switch f.Kind {
	case "denied":
		reason = chat.EndDenied
	case "budget":
		reason = chat.EndBudget
	}
	return r.end(ctx, chat.RunEnded{Reason: reason, Error: f, Text: f.Message})
}

// end writes the run's last commit. In the same transaction, calls without a result
// get one first, so that the next run finds every pair complete.
func (r *runner) end(ctx context.Context, e chat.RunEnded) error {
	run := r.log.Run()
	e.Run, e.Steps, e.Usage = run.ID, run.Steps, run.Usage
	batch := record.Batch{Events: r.calls.AtEnd()}
	if run.AbortAll {
		for _, w := range r.log.Waiting() {
			batch.Events = append(batch.Events, chat.Event{Body: chat.Refused{Seq: w.Seq, Why: "stopped by " + run.AbortedBy}})
		}
	}
	batch.Events = append(batch.Events, chat.Event{Body: e})
	return r.Commit(ctx, batch)
}
