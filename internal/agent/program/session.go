package program

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"chorus/internal/agent/deadline"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/tool"
	"chorus/internal/transcript"
	"chorus/internal/work"
	"chorus/internal/worker"
)

// The reasons to end a program before it has done its work, besides its own failures.
var (
	errWaits   = errors.New("somebody is asked first")       // it continues when they have answered
	errOver    = errors.New("the run ends")                  // the budget does not allow its next step, or a rule says so
	errAborted = errors.New("the run was stopped meanwhile") // the journal says so
)

// session is a running program. It implements the program's host.
type session struct {
	*Program
	Start
	ctx    context.Context
	run    *transcript.Run
	asked  chat.Asked
	open   bool // a request has no answer yet
	blocks chat.Blocks
	usage  chat.Usage
	spoke  int                        // bytes of text shown of this answer
	began  map[string]chat.ToolUse    // calls of this session, by the program's id
	grants map[string]transcript.Call // what people approved, by what was asked
	fatal  *chat.Failure              // the run ends with it
}

var _ worker.Host = (*session)(nil)

// waits tells the watchdog that the run waits for the program.
func (s *session) waits() {
	quiet := s.Quiet
	if quiet <= 0 {
		quiet = worker.DefaultQuiet
	}
	s.Loop.Waits(deadline.Wait{For: "the program " + s.Name, Quiet: quiet + 2*s.Grace})
}

// write commits events. Those that must follow everything are tried again when
// something came in between, unless that ended the run.
func (s *session) write(make func() []chat.Body) error {
	for {
		err := s.Loop.Write(s.ctx, make()...)
		if errors.Is(err, journal.ErrMoved) {
			if run := s.Log.Run(); run == nil || run.Aborted {
				return errAborted
			}
			continue
		}
		s.waits()
		return err
	}
}

// settle gives results to calls that a stop left open, and returns what to tell the program about them.
func (s *session) settle() (string, error) {
	var told []string
	var bodies []chat.Body
	for _, c := range s.Log.Calls() {
		if c.Done {
			continue
		}
		ran := chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Failed: true, Outcome: chat.Interrupted, Blocks: transcript.Interrupted()}
		what := c.Use.Name + " " + worker.Brief(string(c.Use.Args), 2000)
		switch {
		case c.Answered && c.OK:
			s.grants[grantKey(c.Use)] = c
			ran.Outcome, ran.Blocks = chat.Skipped, chat.TextBlocks("allowed by "+c.By+"; the program makes the call again")
			told = append(told, "You asked for permission for this: "+what+"\nIt was given"+said(c.Note)+". Make the same call again now, and continue with your task.")
		case c.Answered:
			ran.Outcome, ran.Blocks = chat.Denied, chat.TextBlocks("denied by "+c.By+said(c.Note))
			told = append(told, "You asked for permission for this: "+what+"\nIt was refused"+said(c.Note)+". Continue without it.")
		default:
			told = append(told, "You were interrupted during this: "+what+"\nIt may be done, or half done: check before you repeat it, then continue with your task.")
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
		s.asked = s.Loop.Asked(s.Log.Run())
		s.asked.Tokens = model.Tokens(len(prompt))
		return []chat.Body{s.asked}
	})
	if no, ok := errors.AsType[*ledger.Refusal](err); ok {
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

// reopen makes the next request. If the budget does not allow it, the program is ended.
func (s *session) reopen() error {
	blocks, usage := s.blocks, s.usage
	if err := s.ask(""); err != nil {
		return err
	}
	if s.fatal != nil {
		return errOver
	}
	s.blocks, s.usage = blocks, usage
	return nil
}

func (s *session) Alive() { s.waits() }

func (s *session) Session(id string) error {
	if s.Log.Note(SessionNote) == id {
		return nil
	}
	return s.write(func() []chat.Body { return []chat.Body{chat.Noted{What: SessionNote, Text: id}} })
}

func (s *session) Said(text string) error {
	if text == "" {
		return nil
	}
	s.Loop.Live(chat.Delta{Run: s.run.ID, Step: s.asked.Step, Attempt: s.asked.Attempt, What: chat.DeltaText, Offset: s.spoke, Text: text})
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
		s.Loop.Live(chat.Progress{Run: s.run.ID, Text: worker.Brief(text, 200)})
	}
	return nil
}

// Began adds a call to the answer that is being assembled. A call that arrives
// while others are being answered belongs to a new answer.
func (s *session) Began(c worker.Call) error {
	args := c.Args
	if !json.Valid(args) {
		args, _ = json.Marshal(map[string]string{"input": string(args)}) // a text
	}
	use := chat.ToolUse{ID: fmt.Sprintf("%d-%s", s.run.Steps, c.ID), Name: c.Name, Args: args}
	if s.began[c.ID] = use; s.Log.OpenCalls() {
		return nil // its result is reported when it arrives
	}
	s.blocks = append(s.blocks, use)
	return nil
}

// flush writes the calls that have begun.
func (s *session) flush() error {
	if len(s.blocks.Calls()) == 0 {
		return nil
	}
	return s.answer(chat.StopTools, 0)
}

// inLog makes sure that a call belongs to the last answer.
func (s *session) inLog(id string) (transcript.Call, bool, error) {
	use, ok := s.began[id]
	if !ok {
		return transcript.Call{}, false, nil
	}
	if err := s.flush(); err != nil {
		return transcript.Call{}, false, err
	}
	for _, c := range s.Log.Calls() {
		if c.Use.ID == use.ID {
			return c, true, nil
		}
	}
	if s.Log.OpenCalls() {
		return transcript.Call{}, false, nil // begun during other calls: it has no place of its own
	}
	s.blocks = append(s.blocks, use)
	return s.inLog(id)
}

func (s *session) Ended(res worker.Result) error {
	c, ok, err := s.inLog(res.Call)
	if err != nil || !ok || c.Done {
		return err
	}
	text := cmp.Or(worker.Brief(res.Text, maxResult), tool.NoOutput)
	ran := chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: chat.TextBlocks(text), Failed: res.Failed, Exit: res.Exit, Outcome: chat.Ran, Changed: res.Changed, UntrustedFrom: s.Name}
	if err := s.write(func() []chat.Body { return []chat.Body{ran} }); err != nil || s.Log.OpenCalls() {
		return err
	}
	return s.reopen()
}

// maxResult is how much of the output of a program's tool is kept.
const maxResult = 64 << 10

func (s *session) Used(u chat.Usage) error {
	s.usage = s.usage.Plus(u)
	return nil
}

// Permit judges a call by the rules for our equivalent tool. If people must be
// asked, the program is ended and continues when they have answered, so that
// nothing waits in memory or occupies a slot.
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
	var t tool.Tool = programTool{c.Name}
	args := []byte(call.Use.Args)
	if c.Like != nil {
		if like, plain, err := s.Loop.Resolve(c.Like.Name, c.Like.Args); err == nil {
			t, args = like, plain
		}
	}
	verdict, err := s.Loop.Gate(s.ctx, call, t, args)
	if err != nil {
		return worker.Decision{}, err
	}
	switch s.waits(); verdict {
	case Allowed:
		return worker.Decision{Allow: true}, nil
	case Waits:
		return worker.Decision{}, errWaits
	case EndsRun:
		return worker.Decision{}, errOver
	}
	why := "this is not allowed"
	for _, now := range s.Log.Calls() {
		if now.Use.ID == call.Use.ID && now.Done {
			why = now.Result.Blocks.Text()
		}
	}
	return worker.Decision{Why: why}, nil
}

// programTool is a program's tool for which we have no equivalent.
type programTool struct{ name string }

func (f programTool) Spec() tool.Spec               { return tool.Spec{Name: f.name} }
func (f programTool) Access(_ []byte) []tool.Access { return nil }
func (f programTool) Run(context.Context, []byte) (tool.Result, error) {
	return tool.Fail("this is a tool of another program"), nil
}

// end writes how the program ended and returns how the run is left.
func (s *session) end(out worker.Outcome, err error) (Left, error) {
	var failed *worker.Error
	switch {
	case err == nil:
		if len(s.blocks) == 0 && out.Summary != "" {
			s.blocks = chat.TextBlocks(out.Summary)
		}
		s.began = map[string]chat.ToolUse{}
		s.blocks = withoutCalls(s.blocks)
		return GoesOn, s.answer(chat.StopEnd, out.Cost)
	case errors.Is(err, errWaits):
		return Suspended, nil
	case errors.Is(err, worker.ErrNoSession):
		if s.Log.Note(SessionNote) == "" {
			failed = worker.Errorf(work.ErrorWorker, "%s: %v", s.Name, err)
			break
		}
		return GoesOn, errors.Join(s.Session(""), s.broken(&chat.Failure{Kind: string(work.ErrorWorker), Message: err.Error()}))
	case errors.As(err, &failed):
	case errors.Is(err, errAborted), errors.Is(err, errOver), s.ctx.Err() != nil:
		if s.open {
			s.blocks = withoutCalls(s.blocks)
			if werr := s.writePartial(); werr != nil {
				return GoesOn, werr
			}
		}
		if errors.Is(err, errOver) {
			return GoesOn, nil
		}
		return GoesOn, s.Loop.Write(s.ctx) // the loop checks the cause
	default:
		return GoesOn, err
	}
	f := &chat.Failure{Kind: failureKind(failed.Kind), Message: failed.Message, Final: true}
	if wait := failed.Reset.Sub(s.Now()); !failed.Reset.IsZero() && wait > 0 {
		f.RetryMS = wait.Milliseconds()
	}
	return GoesOn, s.broken(f)
}

// failureKind translates a program's error into a kind of failure.
func failureKind(kind work.ErrorKind) string {
	if kind == work.ErrorContext {
		return string(model.TooLong)
	}
	return string(kind)
}

// broken ends the open request with a failure.
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
	return s.Loop.Write(context.WithoutCancel(s.ctx), said)
}

func withoutCalls(blocks chat.Blocks) (out chat.Blocks) {
	for _, b := range blocks {
		if _, call := b.(chat.ToolUse); !call {
			out = append(out, b)
		}
	}
	return out
}
