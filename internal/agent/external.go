package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/agent/record"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/tool"
	"chorus/internal/transcript"
	"chorus/internal/work"
	"chorus/internal/worker"
)

// SessionNote is the note that keeps a program's own name for what it did in a thread.
const SessionNote = "worker session"

// External is a program that does the work of a run instead of a model and our tools.
type External struct {
	worker.Worker
	Name  string        // for people
	Quiet time.Duration // how long it may say nothing
	Dir   string
	// Preamble says who the agent is; it stands before the first prompt of a session.
	Preamble string
}

// errSuspended ends a program because somebody must be asked first: it goes on when they have answered.
var errSuspended = errors.New("somebody is asked first")

// external is next for a run that a program does. What the program says and does becomes the same events as those of a model: an answer with calls, their
// results, and so on. Whatever a program was in the middle of when it was ended is told to it when it goes on.
func (r *runner) external(ctx context.Context, run *transcript.Run) (State, error) {
	switch {
	case run.Failure != nil && run.Failure.Final:
		return Finished, r.fail(ctx, run.Failure)
	case run.Open && run.Lost+1 >= maxLost:
		return Finished, r.fail(ctx, &chat.Failure{Kind: "lost", Message: fmt.Sprintf("the process ended %d times while %s was at work", maxLost, r.External.Name)})
	case run.Final && !run.Open && run.Failure == nil && !r.openCalls():
		if took, err := r.take(ctx, run); took || err != nil {
			return "", err
		}
		end := chat.RunEnded{Reason: chat.EndDone}
		if !run.Spoke {
			end.Text = r.External.Name + " ended without a word."
		}
		return Finished, r.end(ctx, end)
	}
	for _, c := range r.log.Calls() {
		if c.Approval != "" && !c.Answered && !c.Done {
			return Suspended, nil
		}
	}
	if r.Reap != nil {
		r.waits(deadline.Wait{For: "what still runs of " + r.External.Name + " to be ended", Quiet: r.bounds.Setup})
		if err := r.Reap(ctx, callKey(run, "worker")); err != nil {
			return "", err
		}
	}
	s := &session{runner: r, ctx: ctx, run: run, began: map[string]chat.ToolUse{}, grants: map[string]transcript.Call{}}
	prompt, err := s.settle()
	if err != nil {
		return "", err
	}
	id := r.log.Note(SessionNote)
	if words := r.log.Heard(id == ""); words != "" {
		prompt = strings.TrimSpace(words + "\n\n" + prompt)
		if id == "" && r.External.Preamble != "" {
			prompt = r.External.Preamble + "\n\n" + prompt
		}
	}
	if prompt == "" {
		prompt = "You were interrupted: the process that you ran in ended. Look at what is there of your last step, then go on with your task."
	}
	if err := s.ask(prompt); err != nil {
		return "", err
	}
	if r.fatal != nil {
		return "", nil // a budget forbids it; nothing was started
	}
	s.waits()
	out, err := r.External.Work(ctx, worker.Job{Prompt: prompt, Session: id, Dir: r.External.Dir, Key: callKey(run, "worker")}, s)
	return s.end(out, err)
}

// session is a program at work. It is the program's host.
type session struct {
	*runner
	ctx    context.Context
	run    *transcript.Run
	asked  chat.Asked
	open   bool // a request stands that has no answer yet
	blocks chat.Blocks
	usage  chat.Usage
	spoke  int                        // bytes of text shown of this answer
	began  map[string]chat.ToolUse    // calls of this session, by the program's id
	grants map[string]transcript.Call // what people said yes to, by what was asked
}

var _ worker.Host = (*session)(nil)

// waits tells the watchdog that the program is waited for.
func (s *session) waits() {
	quiet := s.External.Quiet
	if quiet <= 0 {
		quiet = worker.DefaultQuiet
	}
	s.runner.waits(deadline.Wait{For: "the program " + s.External.Name, Quiet: quiet + 2*s.bounds.Grace})
}

// write commits events; those that must follow everything are tried again when something came between, unless that ended the run.
func (s *session) write(make func() []chat.Body) error {
	for {
		err := s.Write(s.ctx, make()...)
		if errors.Is(err, journal.ErrMoved) {
			if run := s.log.Run(); run == nil || run.Aborted {
				return ErrAborted
			}
			continue
		}
		s.waits()
		return err
	}
}

// settle gives calls that a stop left open their results, and says what the program is to be told of them.
func (s *session) settle() (string, error) {
	var told []string
	var bodies []chat.Body
	for _, c := range s.log.Calls() {
		if c.Done {
			continue
		}
		ran := chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Failed: true, Outcome: chat.Interrupted, Blocks: transcript.Interrupted()}
		what := c.Use.Name + " " + worker.Brief(string(c.Use.Args), 2000)
		switch {
		case c.Answered && c.OK:
			s.grants[grantKey(c.Use)] = c
			ran.Outcome, ran.Blocks = chat.Skipped, chat.TextBlocks("allowed by "+c.By+"; the program makes the call again")
			told = append(told, "You asked for permission for this: "+what+"\nIt was given"+said(c.Note)+". Make the same call again now, and go on with your task.")
		case c.Answered:
			ran.Outcome, ran.Blocks = chat.Denied, chat.TextBlocks("denied by "+c.By+said(c.Note))
			told = append(told, "You asked for permission for this: "+what+"\nIt was refused"+said(c.Note)+". Go on without it.")
		default:
			told = append(told, "You were interrupted during this: "+what+"\nIt may be done, or half done: look before you repeat it, then go on with your task.")
		}
		bodies = append(bodies, ran)
	}
	if len(bodies) == 0 {
		return "", nil
	}
	return strings.Join(told, "\n\n"), s.write(func() []chat.Body { return bodies })
}

func said(note string) string {
	if note == "" {
		return ""
	}
	return ": " + note
}

func grantKey(use chat.ToolUse) string { return use.Name + "\x00" + string(use.Args) }

// ask opens a request, within the budget.
func (s *session) ask(prompt string) error {
	err := s.write(func() []chat.Body {
		s.asked = s.runner.asked(s.log.Run(), chat.ForTurn)
		s.asked.Tokens = model.Tokens(len(prompt))
		return []chat.Body{s.asked}
	})
	var no *ledger.Refusal
	if errors.As(err, &no) {
		s.fatal = &chat.Failure{Kind: "budget", Message: no.Error()}
		return nil
	}
	s.open = err == nil
	s.blocks, s.usage, s.spoke = nil, chat.Usage{}, 0
	return err
}

// answer writes what the program said since the request as its answer.
func (s *session) answer(stop chat.Stop, cost int64) error {
	if !s.open {
		if err := s.reopen(); err != nil {
			return err
		}
	}
	said := chat.Said{Step: s.asked.Step, Attempt: s.asked.Attempt, Blocks: s.blocks, Usage: s.usage, Stop: stop, Cost: cost, Partial: stop == chat.StopAborted}
	if err := s.write(func() []chat.Body { return []chat.Body{said} }); err != nil {
		return err
	}
	s.open, s.blocks, s.usage = false, nil, chat.Usage{}
	return nil
}

// reopen makes the next request. Where the budget does not allow it, the program is ended.
func (s *session) reopen() error {
	blocks, usage := s.blocks, s.usage
	if err := s.ask(""); err != nil {
		return err
	}
	if s.fatal != nil {
		return errSpent
	}
	s.blocks, s.usage = blocks, usage
	return nil
}

// errSpent ends a program whose next step nobody pays for.
var errSpent = errors.New("the budget is spent")

func (s *session) Alive() { s.waits() }

func (s *session) Session(id string) error {
	if s.log.Note(SessionNote) == id {
		return nil
	}
	return s.write(func() []chat.Body { return []chat.Body{chat.Noted{What: SessionNote, Text: id}} })
}

func (s *session) Said(text string) error {
	if text == "" {
		return nil
	}
	s.host.Live(chat.Delta{Run: s.run.ID, Step: s.asked.Step, Attempt: s.asked.Attempt, What: chat.DeltaText, Offset: s.spoke, Text: text})
	s.spoke += len(text)
	if n := len(s.blocks); n > 0 {
		if before, ok := s.blocks[n-1].(chat.Text); ok {
			before.Text += text
			s.blocks[n-1] = before
			return nil
		}
	}
	s.blocks = append(s.blocks, chat.Text{Text: text})
	return nil
}

func (s *session) Thought(text string) error {
	if text != "" {
		s.host.Live(chat.Progress{Run: s.run.ID, Text: worker.Brief(text, 200)})
	}
	return nil
}

// Began adds a call to the answer that is being put together; one that comes while others are being answered belongs to a new one.
func (s *session) Began(c worker.Call) error {
	args := c.Args
	if !json.Valid(args) {
		args, _ = json.Marshal(map[string]string{"input": string(args)}) // a text
	}
	use := chat.ToolUse{ID: fmt.Sprintf("%d-%s", s.run.Steps, c.ID), Name: c.Name, Args: args}
	if s.began[c.ID] = use; s.openCalls() {
		return nil // its result is told when it is there
	}
	s.blocks = append(s.blocks, use)
	return nil
}

// flush writes the calls that were begun.
func (s *session) flush() error {
	if len(s.blocks.Calls()) == 0 {
		return nil
	}
	return s.answer(chat.StopTools, 0)
}

// inLog makes sure that a call is one of the last answer.
func (s *session) inLog(id string) (transcript.Call, bool, error) {
	use, ok := s.began[id]
	if !ok {
		return transcript.Call{}, false, nil
	}
	if err := s.flush(); err != nil {
		return transcript.Call{}, false, err
	}
	for _, c := range s.log.Calls() {
		if c.Use.ID == use.ID {
			return c, true, nil
		}
	}
	if s.openCalls() {
		return transcript.Call{}, false, nil // begun while others were on: it has no place of its own
	}
	s.blocks = append(s.blocks, use)
	return s.inLog(id)
}

func (s *session) Ended(res worker.Result) error {
	c, ok, err := s.inLog(res.Call)
	if err != nil || !ok || c.Done {
		return err
	}
	text := worker.Brief(res.Text, maxResult)
	if text == "" {
		text = tool.NoOutput
	}
	ran := chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: chat.TextBlocks(text), Failed: res.Failed, Exit: res.Exit, Outcome: chat.Ran, Changed: res.Changed, Foreign: s.External.Name}
	if err := s.write(func() []chat.Body { return []chat.Body{ran} }); err != nil || s.openCalls() {
		return err
	}
	return s.reopen()
}

// maxResult is how much of what a program's tool gave is kept.
const maxResult = 64 << 10

func (s *session) Used(u chat.Usage) error {
	s.usage = s.usage.Plus(u)
	return nil
}

// Permit judges a call by the rules for the tool of ours that does the same. Where people must be asked the program is ended, and goes on when they have
// answered: nothing waits in memory, and no place is held.
func (s *session) Permit(c worker.Call) (worker.Decision, error) {
	if _, ok := s.began[c.ID]; !ok {
		if err := s.Began(c); err != nil {
			return worker.Decision{}, err
		}
	}
	call, ok, err := s.inLog(c.ID)
	if err != nil {
		return worker.Decision{}, err
	}
	if !ok {
		return worker.Decision{Why: "another call is not finished; make this one afterwards"}, nil
	}
	if given, ok := s.grants[grantKey(call.Use)]; ok {
		call.Approval, call.Answered, call.OK, call.By, call.Note = given.Approval, true, true, given.By, given.Note
	}
	var t tool.Tool = foreignTool{c.Name}
	args := []byte(call.Use.Args)
	if c.Like != nil {
		if like, plain, err := s.Tools.Resolve(c.Like.Name, c.Like.Args); err == nil {
			t, args = like, plain
		}
	}
	_, verdict, err := s.gate(s.ctx, call, t, args, false)
	if err != nil {
		return worker.Decision{}, err
	}
	switch s.runner.waits(deadline.Wait{For: "the program " + s.External.Name, Quiet: worker.DefaultQuiet}); verdict {
	case gateOpen:
		return worker.Decision{Allow: true}, nil
	case gateSuspended:
		return worker.Decision{}, errSuspended
	}
	why := "this is not allowed"
	for _, now := range s.log.Calls() {
		if now.Use.ID == call.Use.ID && now.Done {
			why = now.Result.Blocks.Text()
		}
	}
	return worker.Decision{Why: why}, nil
}

// foreignTool is a tool of a program that none of ours is like.
type foreignTool struct{ name string }

func (f foreignTool) Spec() tool.Spec               { return tool.Spec{Name: f.name} }
func (f foreignTool) Access(_ []byte) []tool.Access { return nil }
func (f foreignTool) Run(context.Context, []byte) (tool.Result, error) {
	return tool.Fail("this is a tool of another program"), nil
}

// end writes how the program ended, and says how the thread is left.
func (s *session) end(out worker.Outcome, err error) (State, error) {
	var failed *worker.Error
	switch {
	case err == nil:
		if len(s.blocks) == 0 && out.Summary != "" {
			s.blocks = chat.TextBlocks(out.Summary)
		}
		s.began = map[string]chat.ToolUse{}
		s.blocks = withoutCalls(s.blocks)
		return "", s.answer(chat.StopEnd, out.Cost)
	case errors.Is(err, errSuspended):
		return Suspended, nil
	case errors.Is(err, worker.ErrNoSession):
		if s.log.Note(SessionNote) == "" {
			failed = worker.Errorf(work.ErrorWorker, "%s: %v", s.External.Name, err)
			break
		}
		return "", errors.Join(s.Session(""), s.broken(&chat.Failure{Kind: string(work.ErrorWorker), Message: err.Error()}))
	case errors.As(err, &failed):
	case errors.Is(err, ErrAborted), errors.Is(err, errSpent), s.ctx.Err() != nil:
		if s.open {
			s.blocks = withoutCalls(s.blocks)
			if werr := s.writePartial(); werr != nil {
				return "", werr
			}
		}
		if errors.Is(err, errSpent) {
			return "", nil
		}
		return "", s.Commit(s.ctx, record.Batch{}) // the loop looks at the cause
	default:
		return "", err
	}
	f := &chat.Failure{Kind: failureKind(failed.Kind), Message: failed.Message, Final: true}
	if wait := failed.Reset.Sub(s.Now()); !failed.Reset.IsZero() && wait > 0 {
		f.RetryMS = wait.Milliseconds()
	}
	return "", s.broken(f)
}

// failureKind is an error of a program as runs know it.
func failureKind(kind work.ErrorKind) string {
	if kind == work.ErrorContext {
		return string(model.TooLong)
	}
	return string(kind)
}

// broken ends the request that stands with a failure.
func (s *session) broken(f *chat.Failure) error {
	if !s.open {
		if f.Final {
			s.fatal = f
		}
		return nil
	}
	s.open = false
	said := chat.Said{Step: s.asked.Step, Attempt: s.asked.Attempt, Blocks: withoutCalls(s.blocks), Usage: s.usage, Stop: chat.StopError, Partial: true, Error: f}
	return s.write(func() []chat.Body { return []chat.Body{said} })
}

// writePartial keeps what was said before the end.
func (s *session) writePartial() error {
	s.open = false
	said := chat.Said{Step: s.asked.Step, Attempt: s.asked.Attempt, Blocks: s.blocks, Usage: s.usage, Stop: chat.StopAborted, Partial: true}
	return s.Write(context.WithoutCancel(s.ctx), said)
}

func withoutCalls(blocks chat.Blocks) (out chat.Blocks) {
	for _, b := range blocks {
		if _, call := b.(chat.ToolUse); !call {
			out = append(out, b)
		}
	}
	return out
}
