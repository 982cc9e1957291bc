package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"chorus/internal/agent/attempt"
	"chorus/internal/agent/compaction"
	"chorus/internal/agent/deadline"
	"chorus/internal/agent/toolcall"
	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/transcript"
)

// ask sends the next request: the turn, or first the summary that makes room for it.
func (r *runner) ask(ctx context.Context, run *transcript.Run) error {
	if err := r.pause(ctx, run); err != nil {
		return nil // the loop checks the cause
	}
	if _, err := r.take(ctx, run); err != nil {
		return err
	}
	if roll, due := r.log.RollDue(run.Settings, time.Now()); due {
		if err := r.Write(ctx, roll); err != nil {
			return err
		}
	}
	r.waits(deadline.Wait{For: "the request to be assembled", Quiet: r.bounds.Setup})
	h, err := r.Model(run.Model)
	if err != nil {
		return r.unavailable(ctx, run, err)
	}
	if r.head == nil {
		if r.head, err = r.Head(run.Head); errors.Is(err, chat.ErrLost) {
			r.fatal = &chat.Failure{Kind: "lost", Message: "the system prompt and the tools of this run are lost; send your message again to start over"}
			return nil
		}
		if err != nil {
			return err
		}
		r.log.SetHead(r.head)
	}
	if done, err := r.makeRoom(ctx, run, h); done || err != nil {
		return err
	}
	if notes := r.changedNotes(ctx); len(notes) > 0 {
		if err := r.Write(ctx, notes...); err != nil {
			return err
		}
		if done, err := r.makeRoom(ctx, run, h); done || err != nil {
			return err
		}
	}
	req, err := r.log.Request(r.head, r.log.Seq())
	if err != nil {
		return err
	}
	said, err := r.call(ctx, run, h, req, chat.ForTurn)
	if err != nil || said == nil {
		return err
	}
	return r.calls.Answered(ctx, *said)
}

// makeRoom compacts when the next request would not fit. It reports whether
// it did something, so that the loop must start over.
func (r *runner) makeRoom(ctx context.Context, run *transcript.Run, h model.Handle) (bool, error) {
	if run.TooLong == 0 && !r.log.Over(run.Settings) {
		return false, nil
	}
	return r.compact(ctx, run, h)
}

// unavailable handles a model that cannot even be asked. Another model may
// replace it; the journal records this as a failed attempt.
func (r *runner) unavailable(ctx context.Context, run *transcript.Run, err error) error {
	failed := attempt.Failure(err)
	if failed.Next = r.Retry.Next(err, run.Model, run.Settings.Fallback); failed.Next == "" {
		r.fatal = failed
		return nil
	}
	asked := r.asked(run, chat.ForTurn)
	return r.Write(ctx, asked, chat.Said{Step: asked.Step, Attempt: asked.Attempt, Partial: true, Stop: chat.StopError, Error: failed})
}

// pause waits until the next attempt and tells watchers.
func (r *runner) pause(ctx context.Context, run *transcript.Run) error {
	at, say := attempt.Pause(run, r.Now())
	if say != "" {
		r.host.Live(chat.Progress{Run: run.ID, Text: say})
	}
	return r.wait(ctx, at)
}

// wait sleeps until t, or until the context ends.
func (r *runner) wait(ctx context.Context, t time.Time) error {
	d := t.Sub(r.Now())
	if t.IsZero() || d <= 0 {
		return ctx.Err()
	}
	r.waits(deadline.Wait{For: "the pause before the next attempt", Quiet: d + r.bounds.Setup})
	if !await.For(ctx, d) {
		return ctx.Err()
	}
	return nil
}

// call makes one attempt and returns its outcome for the journal. It returns nil
// when the loop must start over before anything is sent.
func (r *runner) call(ctx context.Context, run *transcript.Run, h model.Handle, req model.Request, purpose chat.Purpose) (*chat.Said, error) {
	req, digest, err := r.sender.Check(h, req)
	if err != nil {
		return nil, err
	}
	prepared, err := r.sender.Prepare(h, req)
	if err != nil {
		r.fatal = attempt.Failure(err)
		return nil, nil
	}
	asked := r.asked(run, purpose)
	asked.Digest, asked.Tokens, asked.Dropped = digest, max(prepared.Estimate, r.log.Tokens()), prepared.Dropped
	if purpose == chat.ForTurn {
		asked.Cached = r.log.Cached()
	}
	if err := r.Write(ctx, asked); err != nil {
		var no *ledger.Refusal
		if !errors.As(err, &no) {
			return nil, err
		}
		r.fatal = &chat.Failure{Kind: "budget", Message: no.Error()} // nothing was sent
		return nil, nil
	}
	said := r.stream(ctx, run, h, prepared, asked)
	if said.Error == nil {
		if purpose == chat.ForTurn && run.Settings.Dialogue.ReportActions {
			r.reportActions(run, &said)
		}
		said.Blocks = r.log.UniqueCalls(said.Blocks)
		if miss, ok := r.sender.CacheMiss(h, asked, said); ok && r.CacheMissed != nil {
			miss.Run = run.ID
			r.CacheMissed(miss)
		}
		if !said.Partial {
			r.sender.Done(prepared)
		}
	}
	return &said, nil
}

// reportActions lets an answer without words or calls say what was done.
func (r *runner) reportActions(run *transcript.Run, said *chat.Said) {
	if said.Partial || len(said.Blocks.Calls()) > 0 || strings.TrimSpace(said.Blocks.Text()) != "" || said.Stop == chat.StopRefused {
		return
	}
	text := toolcall.Actions(r.Tools, run.Called)
	said.Blocks = append(said.Blocks, chat.Text{Text: text})
	r.host.Live(chat.Delta{Run: run.ID, Step: said.Step, Attempt: said.Attempt, What: chat.DeltaText, Text: text})
}

// asked returns the next request. Its step is the answer that is wanted. Attempts
// keep counting through a compaction that has to come first.
func (r *runner) asked(run *transcript.Run, purpose chat.Purpose) chat.Asked {
	a := chat.Asked{Step: run.Steps + 1, Attempt: 1, Model: run.Model, Purpose: purpose, Sees: r.log.Seq()}
	if run.Step == a.Step {
		a.Attempt = run.Attempt + 1
	}
	return a
}

// stream sends the request, shows the answer to watchers as it arrives, and returns how it
// ended: complete, aborted with its text kept, or failed with what follows.
func (r *runner) stream(ctx context.Context, run *transcript.Run, h model.Handle, p model.Prepared, asked chat.Asked) chat.Said {
	r.waits(deadline.Wait{For: "the model " + run.Model, Quiet: r.bounds.Model, Total: r.bounds.Answer})
	said, err := attempt.Stream(ctx, h, p, chat.Said{Step: asked.Step, Attempt: asked.Attempt}, func(d chat.Delta) {
		if d.What == chat.DeltaArgs {
			d.Call = r.log.CallID(d.Call)
		}
		if d.Run = run.ID; asked.Purpose == chat.ForTurn {
			r.host.Live(d)
		}
	})
	if err == nil {
		return said
	}
	if context.Cause(ctx) == ErrAborted {
		said.Stop = chat.StopAborted
		return said
	}
	if s := deadline.Passed(ctx); s != nil {
		err = s
	}
	said = r.Retry.Failed(said, err, attempt.Failures{Count: run.Errors + 1, Since: run.Failing}, r.Now(), run.Model, run.Settings.Fallback)
	if errors.Is(context.Cause(ctx), ErrStopping) {
		// This is neither the provider's fault nor a lost attempt: the next start asks again.
		said.Error = &chat.Failure{Kind: "stopped", Message: ErrStopping.Error()}
	}
	return said
}

// compact replaces the older part of the window with a summary. It returns false if
// there is nothing to leave out and the turn should simply be tried.
func (r *runner) compact(ctx context.Context, run *transcript.Run, h model.Handle) (bool, error) {
	plan, err := compaction.Make(r.log, run, r.head)
	switch {
	case err != nil:
		return true, err
	case plan.Nothing:
		return false, nil
	case plan.Failure != nil:
		r.fatal = plan.Failure
		return true, nil
	case plan.Done != nil:
		return true, r.Write(ctx, *plan.Done)
	}
	r.host.Live(chat.Progress{Run: run.ID, Text: "compacting the conversation"})
	said, err := r.call(ctx, run, h, plan.Request, plan.Purpose)
	if err != nil || said == nil {
		return true, err
	}
	return true, r.Write(ctx, plan.Answered(*said))
}
