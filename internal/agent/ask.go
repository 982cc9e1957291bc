package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/transcript"
)

// ask sends the next request: the turn, or first the summary that makes room for it.
func (r *runner) ask(ctx context.Context, run *transcript.Run) error {
	if err := r.wait(ctx, run.RetryAt); err != nil {
		return nil // the loop looks at the cause
	}
	if _, err := r.take(ctx, run); err != nil {
		return err
	}
	if roll, due := r.log.RollDue(run.Settings); due {
		if err := r.write(ctx, roll); err != nil {
			return err
		}
	}
	r.waits("the request to be put together", r.bounds.Setup, 0)
	engine, err := r.Model(run.Model)
	if err != nil {
		return r.unavailable(ctx, run, err)
	}
	if r.head == nil {
		if r.head, err = r.Head(run.Head); err != nil {
			return err
		}
		r.log.SetHead(r.head)
	}
	if run.TooLong > 0 || r.log.Over(run.Settings) {
		done, err := r.compact(ctx, run, engine)
		if done || err != nil {
			return err
		}
	}
	req, err := r.log.Request(r.head, r.log.Seq())
	if err != nil {
		return err
	}
	said, err := r.call(ctx, run, engine, req, chat.ForTurn)
	if err != nil || said == nil {
		return err
	}
	return r.answered(ctx, *said)
}

// unavailable: the model cannot even be asked. Another one may take its place; that
// is written down as an attempt that failed.
func (r *runner) unavailable(ctx context.Context, run *transcript.Run, err error) error {
	next := r.fallback(run, err)
	if next == "" {
		r.fatal = failure(err)
		return nil
	}
	said := chat.Said{Step: run.Steps + 1, Attempt: 1, Partial: true, Stop: chat.StopError, Error: failure(err)}
	said.Error.Next = next
	if run.Step == said.Step {
		said.Attempt = run.Attempt + 1
	}
	asked := chat.Asked{Step: said.Step, Attempt: said.Attempt, Model: run.Model, Purpose: chat.ForTurn, Sees: r.log.Seq()}
	return r.write(ctx, asked, said)
}

// fallback is the model to turn to after an error; "": none.
func (r *runner) fallback(run *transcript.Run, err error) string {
	if r.FallsBack == nil || !r.FallsBack(model.KindOf(err)) {
		return ""
	}
	chain := run.Settings.Fallback
	if i := slices.Index(chain, run.Model); i >= 0 {
		chain = chain[i+1:]
	}
	if len(chain) == 0 {
		return ""
	}
	return chain[0]
}

// answered writes the answer down. Where its first call is allowed and changes
// something, the call's beginning is written with it: one commit less in every turn
// of the commonest kind.
func (r *runner) answered(ctx context.Context, said chat.Said) error {
	one, ok, err := r.firstCall(ctx, said)
	if err != nil {
		return err
	}
	if ok {
		err := r.write(ctx, said, chat.ToolBegan{Call: one.use.ID, Name: one.use.Name})
		if err == nil {
			return r.finish(ctx, one)
		}
		if !errors.Is(err, journal.ErrMoved) {
			return err
		}
		// Something arrived meanwhile: the answer stands, the loop decides anew.
	}
	return r.write(ctx, said)
}

// firstCall is the call that an answer begins with, if it may run at once and alone.
func (r *runner) firstCall(ctx context.Context, said chat.Said) (ready, bool, error) {
	calls := said.Blocks.Calls()
	if len(calls) == 0 || said.Error != nil || said.Partial || said.Stop == chat.StopLength || ctx.Err() != nil || r.interrupted() {
		return ready{}, false, nil
	}
	t, args, err := r.Tools.Resolve(calls[0].Name, calls[0].Args)
	if err != nil || t.Spec().ReadOnly || calls[0].ID == "" || r.Tools.Validate(t, args) != nil {
		return ready{}, false, nil // the loop answers it in its own time
	}
	ruling, err := r.host.Judge(ctx, Question{Call: calls[0], Tool: t, Args: args, Touches: t.Access(args)})
	return ready{calls[0], t, args}, ruling.Verdict == approval.Allow, err
}

// wait sleeps until t, or until the context ends.
func (r *runner) wait(ctx context.Context, t time.Time) error {
	d := t.Sub(r.Now())
	if t.IsZero() || d <= 0 {
		return ctx.Err()
	}
	r.waits("the pause before the next attempt", d+r.bounds.Setup, 0)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// call makes one attempt and returns how it ended, for the journal. It returns nil
// when the loop must look again before anything is sent.
func (r *runner) call(ctx context.Context, run *transcript.Run, engine Engine, req model.Request, purpose chat.Purpose) (*chat.Said, error) {
	req.Model = engine.Name
	if most := engine.Entry.MaxOutput; most > 0 && req.Settings.MaxTokens > most {
		req.Settings.MaxTokens = most // the settings were made for another model of the chain
	}
	known := 0
	if n := len(r.sent); n > 0 && n <= len(req.Messages) && req.Messages[n-1] == r.sent[n-1] {
		known = n
	}
	if err := transcript.CheckPairsFrom(req.Messages, known); err != nil {
		return nil, fmt.Errorf("render request: %w", err)
	}
	changed := firstChange(r.sent, req.Messages)
	r.sent = req.Messages
	digest, err := req.Digest()
	if err != nil {
		return nil, err
	}
	req.Scratch, r.room = r.room, nil
	prepared, err := engine.Model.Prepare(req)
	if err != nil {
		r.fatal = failure(err)
		return nil, nil
	}
	// The step is the answer that is being sought; attempts count on through a
	// compaction that has to come first.
	step, attempt := run.Steps+1, 1
	if run.Step == step {
		attempt = run.Attempt + 1
	}
	asked := chat.Asked{Step: step, Attempt: attempt, Model: run.Model, Purpose: purpose,
		Sees: r.log.Seq(), Digest: digest, Tokens: max(prepared.Estimate, r.log.Tokens())}
	if purpose == chat.ForTurn {
		asked.Cached = r.log.Cached()
	}
	if err := r.write(ctx, asked); err != nil {
		return nil, r.unpaid(err)
	}
	said := r.listen(ctx, engine, prepared, chat.Said{Step: step, Attempt: attempt}, run.ID, purpose)
	if said.Error == nil {
		r.lookAtCache(run, engine, asked, said, changed)
		if !said.Partial {
			r.room = prepared.Body // heard to its end, so nobody reads it any more
		}
		return &said, nil
	}
	if context.Cause(ctx) == ErrStopping {
		// Not the provider's fault, and no lost attempt: the next start asks again.
		said.Error = &chat.Failure{Kind: "stopped", Message: ErrStopping.Error()}
	}
	return &said, nil
}

// unpaid ends the run where a budget forbids the request: nothing was sent.
func (r *runner) unpaid(err error) error {
	var no *ledger.Refusal
	if !errors.As(err, &no) {
		return err
	}
	r.fatal = &chat.Failure{Kind: "budget", Message: no.Error()}
	return nil
}

// firstChange is the index of the first message that is not as it was in the last
// request; -1 when all of them are still there.
func firstChange(before, now []*model.Message) int {
	for i, m := range before {
		if i >= len(now) || now[i] != m {
			return i
		}
	}
	return -1
}

// leastCached is what providers do not cache below.
const leastCached = 2048

// lookAtCache reports an answer for which the provider's cache held much less than
// it should have.
func (r *runner) lookAtCache(run *transcript.Run, engine Engine, asked chat.Asked, said chat.Said, changed int) {
	got := said.Usage.CacheRead
	if r.CacheMissed == nil || asked.Cached < leastCached || got >= asked.Cached*8/10 || engine.Entry.Price.CacheRead == 0 {
		return
	}
	miss := CacheMiss{Run: run.ID, Step: asked.Step, Model: asked.Model, Expected: asked.Cached, Read: got, Fragment: -1}
	if changed >= 0 && changed < len(r.sent) {
		if text, err := r.sent[changed].Fragment(); err == nil {
			miss.Fragment, miss.Text = changed, string(text[:min(len(text), 200)])
		}
	}
	r.CacheMissed(miss)
}

// listen plays the stream to whoever watches and gathers how it ended.
func (r *runner) listen(ctx context.Context, engine Engine, p model.Prepared, said chat.Said, run string, purpose chat.Purpose) chat.Said {
	var text, thinking strings.Builder
	live := func(what chat.DeltaKind, call string, offset int, s string) {
		if purpose == chat.ForTurn && s != "" {
			r.host.Live(chat.Delta{Run: run, Step: said.Step, Attempt: said.Attempt, What: what, Call: call, Offset: offset, Text: s})
		}
	}
	args := map[string]int{}
	r.waits("the model "+r.log.Run().Model, r.bounds.Model, r.bounds.Answer)
	for chunk, err := range engine.Model.Stream(ctx, p) {
		if err != nil {
			return r.broken(ctx, said, err, text.String())
		}
		switch c := chunk.(type) {
		case model.TextDelta:
			live(chat.DeltaText, "", text.Len(), c.Text)
			text.WriteString(c.Text)
		case model.ThinkingDelta:
			live(chat.DeltaThinking, "", thinking.Len(), c.Text)
			thinking.WriteString(c.Text)
		case model.ArgsDelta:
			live(chat.DeltaArgs, c.Call, args[c.Call], c.Text)
			args[c.Call] += len(c.Text)
		case model.Done:
			said.Blocks, said.Usage, said.Stop = c.Blocks, c.Usage, c.Stop
			return said
		}
	}
	return r.broken(ctx, said, &model.Error{Kind: model.Network, Provider: engine.Entry.Provider, Model: engine.Name,
		Message: "the answer ended without an end mark"}, text.String())
}

// broken is an attempt that did not come to its end: aborted, with its text
// kept, or failed, with or without another try.
func (r *runner) broken(ctx context.Context, said chat.Said, err error, text string) chat.Said {
	if text != "" {
		said.Blocks = chat.TextBlocks(text)
	}
	if context.Cause(ctx) == ErrAborted {
		said.Partial, said.Stop = true, chat.StopAborted
		return said
	}
	said.Partial, said.Stop = true, chat.StopError
	if s := stuckBy(ctx); s != nil {
		err = s
	}
	said.Error = failure(err)
	var e *model.Error
	if !errors.As(err, &e) {
		said.Error.Final = true
		return said
	}
	if e.Kind == model.TooLong {
		return said // a compaction may help
	}
	pause, again := r.Backoff.Pause(r.log.Run().Errors+1, e, r.random())
	if !again && text == "" {
		// Never in the middle of an answer that somebody has begun to read.
		said.Error.Next = r.fallback(r.log.Run(), err)
	}
	if said.Error.Next != "" {
		return said
	}
	if !again && e.RetryAfter > 0 {
		said.Error.Message += fmt.Sprintf("; it asks to wait %s", e.RetryAfter)
	}
	said.Error.RetryMS, said.Error.Final = pause.Milliseconds(), !again
	return said
}

func (r *runner) random() float64 {
	if r.Random == nil {
		return 0
	}
	return r.Random()
}

func failure(err error) *chat.Failure {
	f := &chat.Failure{Kind: "internal", Message: err.Error()}
	var s *Stuck
	if errors.As(err, &s) {
		f.Kind, f.Message = "stuck", "stopped: "+s.Error()+"; say it again to try once more"
	}
	if kind := model.KindOf(err); kind != "" {
		f.Kind = string(kind)
	}
	return f
}

// compact replaces the older part of the window by a summary. It reports false
// when there is nothing to leave out and the turn should simply be tried.
func (r *runner) compact(ctx context.Context, run *transcript.Run, engine Engine) (bool, error) {
	sees := r.log.Seq()
	cut, ok := r.log.Plan(sees, run.Settings)
	if !ok && run.TooLong == 0 {
		return false, nil
	}
	if !ok || run.Compacted >= maxCompactions {
		r.fatal = &chat.Failure{Kind: string(model.TooLong),
			Message: "the conversation does not fit the model's context window and cannot be shortened further; start a new thread or choose a model with a larger window"}
		return true, nil
	}
	read, modified := r.log.Files()
	done := chat.Compacted{UpTo: cut.UpTo, Read: read, Modified: modified, Tokens: r.log.Tokens()}
	purpose, mechanical := run.SummaryWay()
	if mechanical {
		done.Step, done.Attempt, done.How = run.Step, run.Attempt, "mechanical"
		done.Summary = r.log.Mechanical(sees, cut)
		return true, r.write(ctx, done)
	}
	r.host.Live(chat.Progress{Run: run.ID, Text: "compacting the conversation"})
	req, err := r.log.CompactionRequest(r.head, sees, cut)
	done.How = "model"
	if purpose == chat.ForExcerpt {
		req, err = r.log.ExcerptRequest(sees, cut)
		done.How = "excerpt"
	}
	if err != nil {
		return true, err
	}
	said, err := r.call(ctx, run, engine, req, purpose)
	if err != nil || said == nil {
		return true, err
	}
	summary := strings.TrimSpace(said.Blocks.Text())
	if said.Error == nil && !said.Partial && summary == "" {
		said.Stop, said.Error = chat.StopError, &chat.Failure{Kind: string(model.Refused), Message: "the model wrote no summary"}
	}
	if said.Error != nil || said.Partial {
		if said.Error != nil && (said.Error.Kind == string(model.Refused) || said.Error.Kind == string(model.BadRequest)) {
			said.Error.Final = false // the mechanical summary is still left
		}
		said.Blocks = nil // half a summary is no answer
		return true, r.write(ctx, *said)
	}
	done.Step, done.Attempt, done.Summary, done.Usage = said.Step, said.Attempt, summary, said.Usage
	return true, r.write(ctx, done)
}
