package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/agent/program"
	"chorus/internal/agent/record"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/tool"
	"chorus/internal/transcript"
	"chorus/internal/work"
	"chorus/internal/worker"
)

// loop is the smallest one: a journal in memory, a gate that is a function.
type loop struct {
	*record.Recorder
	log     *transcript.Log
	events  []chat.Event
	asks    int                                // that the budget allows; 0: any number
	gate    func(chat.ToolUse) program.Verdict // nil: all is allowed
	waited  []deadline.Wait
	between func() // runs before the next commit
}

func newLoop(t *testing.T) *loop {
	t.Helper()
	l := &loop{log: transcript.New(nil)}
	l.Recorder = record.New(l.log, l)
	err := l.Write(t.Context(), chat.Received{Blocks: chat.TextBlocks("do it"), Prompt: true}, chat.RunStarted{Run: "r", Model: "claude"}, chat.Took{Run: "r", Step: 1, Seqs: []int64{1}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *loop) Commit(_ context.Context, b record.Batch) ([]chat.Event, error) {
	seen := len(l.events)
	if between := l.between; between != nil && len(b.Events) > 0 {
		l.between = nil
		if between(); len(l.events) > seen {
			return slices.Clone(l.events[seen:]), journal.ErrMoved
		}
	}
	for _, ev := range b.Events {
		if _, asks := ev.Body.(chat.Asked); asks && l.asks > 0 && strings.Count(l.kinds(), "asked") == l.asks {
			return nil, &ledger.Refusal{Want: 5}
		}
	}
	for _, ev := range b.Events {
		ev.Seq, ev.At = int64(len(l.events)+1), time.UnixMicro(1)
		l.events = append(l.events, ev)
	}
	return slices.Clone(l.events[seen:]), nil
}

func (l *loop) kinds() string {
	var out []string
	for _, ev := range l.events {
		out = append(out, string(ev.Body.Kind()))
	}
	return strings.Join(out, " ")
}

func (l *loop) Asked(run *transcript.Run) chat.Asked {
	return chat.Asked{Step: run.Steps + 1, Attempt: 1, Model: run.Model, Purpose: chat.ForTurn, Sees: l.log.Seq()}
}

func (l *loop) Resolve(string, []byte) (tool.Tool, []byte, error) {
	return nil, nil, errors.New("none")
}
func (l *loop) Live(chat.Live)        {}
func (l *loop) Waits(w deadline.Wait) { l.waited = append(l.waited, w) }

func (l *loop) Gate(ctx context.Context, c transcript.Call, _ tool.Tool, _ []byte) (program.Verdict, error) {
	if l.gate == nil || c.Answered && c.OK {
		return program.Allowed, nil
	}
	v := l.gate(c.Use)
	if v == program.Waits {
		return v, l.Write(ctx, chat.ApprovalAsked{ID: "a1", Call: c.Use.ID, Name: c.Use.Name})
	}
	return v, l.Write(ctx, chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: chat.TextBlocks("not here"), Failed: true, Outcome: chat.Denied})
}

// said are the answers that the journal has.
func (l *loop) said() (out []chat.Said) {
	for _, ev := range l.events {
		if s, ok := ev.Body.(chat.Said); ok {
			out = append(out, s)
		}
	}
	return out
}

// scripted is a program that does what a test says.
type scripted func(ctx context.Context, job worker.Job, host worker.Host) (worker.Outcome, error)

func (s scripted) Work(ctx context.Context, job worker.Job, host worker.Host) (worker.Outcome, error) {
	return s(ctx, job, host)
}

// start starts the program once, for the loop's run.
func (l *loop) start(ctx context.Context, do scripted) (program.Left, *chat.Failure, error) {
	p := &program.Program{Worker: do, Name: "claude", Quiet: time.Minute, Dir: "/tree", Preamble: "You are careful."}
	return p.Run(ctx, program.Start{Loop: l, Log: l.log, Key: "r/worker", Grace: time.Second, Now: func() time.Time { return time.Unix(100, 0) }})
}

// one call of the program's, from its beginning to its result.
func one(host worker.Host, id string) error {
	return errors.Join(host.Said("I look. "), host.Began(worker.Call{ID: id, Name: "Bash", Args: json.RawMessage(`{"command":"ls"}`)}), host.Ended(worker.Result{Call: id, Text: "a.txt"}))
}

// Each step is reserved before it is taken: where the budget refuses the second one, the program is told to end in the middle of its
// work, and the run ends with the budget's words.
func TestTheBudgetIsSpentInTheMiddle(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	l.asks = 2
	steps := 0
	left, failure, err := l.start(t.Context(), func(_ context.Context, _ worker.Job, host worker.Host) (worker.Outcome, error) {
		for ; steps < 10; steps++ {
			if err := one(host, string(rune('a'+steps))); err != nil {
				return worker.Outcome{}, err
			}
		}
		return worker.Outcome{}, nil
	})
	if err != nil || left != program.GoesOn || failure == nil || failure.Kind != "budget" {
		t.Fatal(left, failure, err)
	}
	if steps != 1 {
		t.Errorf("the program took %d steps after the one that was paid for", steps)
	}
	if got := l.kinds(); got != "received run_started took asked said tool_ran asked said tool_ran" {
		t.Error(got)
	}
}

// A budget that is spent before the program begins does not start it.
func TestNothingIsStartedWithoutABudget(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	if err := l.Write(t.Context(), l.Asked(l.log.Run())); err != nil { // lost in a crash
		t.Fatal(err)
	}
	l.asks = 1
	_, failure, err := l.start(t.Context(), func(context.Context, worker.Job, worker.Host) (worker.Outcome, error) {
		t.Error("it was started")
		return worker.Outcome{}, nil
	})
	if err != nil || failure == nil || failure.Kind != "budget" {
		t.Error(failure, err)
	}
}

// A program that does not know its session any more begins anew, with who it is and everything that was said.
func TestAnUnknownSessionBeginsAnew(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	if err := l.Write(t.Context(), chat.Noted{What: program.SessionNote, Text: "s-1"}); err != nil {
		t.Fatal(err)
	}
	var jobs []worker.Job
	do := func(_ context.Context, job worker.Job, host worker.Host) (worker.Outcome, error) {
		if jobs = append(jobs, job); job.Session != "" {
			return worker.Outcome{}, worker.ErrNoSession
		}
		return worker.Outcome{Summary: "done"}, errors.Join(host.Session("s-2"))
	}
	for range 2 {
		if left, failure, err := l.start(t.Context(), do); left != program.GoesOn || failure != nil || err != nil {
			t.Fatal(left, failure, err)
		}
	}
	if len(jobs) != 2 || jobs[0].Session != "s-1" || jobs[1].Session != "" || jobs[1].Prompt != "You are careful.\n\ndo it" {
		t.Errorf("%+v", jobs)
	}
	if got := l.log.Note(program.SessionNote); got != "s-2" {
		t.Errorf("the session is %q", got)
	}
	said := l.said()
	if last := said[len(said)-1]; last.Stop != chat.StopEnd || last.Blocks.Text() != "done" {
		t.Errorf("%+v", last)
	}
}

// A program that knows no session although it was given none has failed: it would go on so for ever.
func TestNoSessionWithoutASessionFails(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	_, _, err := l.start(t.Context(), func(context.Context, worker.Job, worker.Host) (worker.Outcome, error) {
		return worker.Outcome{}, worker.ErrNoSession
	})
	if run := l.log.Run(); err != nil || run.Failure == nil || !run.Failure.Final {
		t.Errorf("%v %+v", err, run.Failure)
	}
}

// When Chorus stops, what the program has said is kept, and the next start goes on in its session and tells it what it was doing.
func TestADrainIsGoneOnWith(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	ctx, stop := context.WithCancelCause(t.Context())
	left, failure, err := l.start(ctx, func(ctx context.Context, _ worker.Job, host worker.Host) (worker.Outcome, error) {
		err := errors.Join(host.Session("s-1"), host.Said("I begin."), host.Began(worker.Call{ID: "a", Name: "Bash", Args: json.RawMessage(`{"command":"make"}`)}))
		if _, perr := host.Permit(worker.Call{ID: "a"}); err != nil || perr != nil { // now it stands in the journal
			return worker.Outcome{}, errors.Join(err, perr)
		}
		stop(deadline.ErrStopping)
		<-ctx.Done()
		return worker.Outcome{}, context.Cause(ctx)
	})
	if left != program.GoesOn || failure != nil || err != nil || !l.log.OpenCalls() {
		t.Fatal(left, failure, err)
	}
	var job worker.Job
	_, failure, err = l.start(t.Context(), func(_ context.Context, j worker.Job, _ worker.Host) (worker.Outcome, error) {
		job = j
		return worker.Outcome{Summary: "done"}, nil
	})
	if failure != nil || err != nil || l.log.OpenCalls() {
		t.Fatal(failure, err)
	}
	if job.Session != "s-1" || !strings.HasPrefix(job.Prompt, `You were interrupted during this: Bash {"command":"make"}`) {
		t.Errorf("%+v", job)
	}
	if got := l.kinds(); got != "received run_started took asked noted said tool_ran asked said" {
		t.Error(got)
	}
}

// Whoever watches over the run is told how long the program may say nothing, anew with each sign of life. One that hangs is ended by
// its worker, and the failure says so.
func TestAProgramThatHangs(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	_, failure, err := l.start(t.Context(), func(_ context.Context, _ worker.Job, host worker.Host) (worker.Outcome, error) {
		before := len(l.waited)
		if host.Alive(); len(l.waited) != before+1 {
			t.Error("a sign of life is not told")
		}
		return worker.Outcome{}, errors.Join(host.Said("I think"), worker.Errorf(work.ErrorTimeout, "claude printed nothing for 1m0s and was ended"))
	})
	if failure != nil || err != nil {
		t.Fatal(failure, err)
	}
	if w := l.waited[len(l.waited)-1]; w.For != "the program claude" || w.Quiet != time.Minute+2*time.Second {
		t.Errorf("waits %+v", w)
	}
	run := l.log.Run()
	if run.Failure == nil || run.Failure.Kind != string(work.ErrorTimeout) || !run.Failure.Final || l.said()[0].Blocks.Text() != "I think" {
		t.Errorf("%+v %+v", run.Failure, l.said())
	}
}

// One that ignores being ended is given up by the watchdog: the run's context ends with a Stuck, and nothing is lost of what was said.
func TestAProgramThatIsGivenUp(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	left, failure, err := l.start(ctx, func(ctx context.Context, _ worker.Job, host worker.Host) (worker.Outcome, error) {
		err := host.Said("I think")
		cancel(&deadline.Stuck{Wait: l.waited[0], After: time.Minute})
		return worker.Outcome{}, errors.Join(err, context.Cause(ctx))
	})
	if left != program.GoesOn || failure != nil || err != nil {
		t.Fatal(left, failure, err)
	}
	if said := l.said(); len(said) != 1 || said[0].Stop != chat.StopAborted || said[0].Blocks.Text() != "I think" {
		t.Errorf("%+v", said)
	}
}

// Output that ends in the middle is a failure that keeps what was understood; a call that was only begun is no part of the answer.
func TestOutputCutInHalf(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	_, failure, err := l.start(t.Context(), func(_ context.Context, _ worker.Job, host worker.Host) (worker.Outcome, error) {
		err := errors.Join(host.Said("half of "), host.Began(worker.Call{ID: "a", Name: "Bash", Args: json.RawMessage(`{"comm`)}))
		return worker.Outcome{}, errors.Join(err, &worker.Error{Kind: work.ErrorRateLimit, Message: "claude ended in the middle", Reset: time.Unix(160, 0)})
	})
	if failure != nil || err != nil {
		t.Fatal(failure, err)
	}
	said := l.said()
	if len(said) != 1 || len(said[0].Blocks.Calls()) > 0 || said[0].Blocks.Text() != "half of " || !said[0].Partial || said[0].Error.RetryMS != 60_000 {
		t.Errorf("%+v", said)
	}
}

// A call that needs a yes ends the program; with the answer it is told of it, and makes the same call without a second question.
func TestAQuestionEndsTheProgram(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	l.gate = func(chat.ToolUse) program.Verdict { return program.Waits }
	call := worker.Call{ID: "a", Name: "Bash", Args: json.RawMessage(`{"command":"make"}`)}
	ask := func(_ context.Context, job worker.Job, host worker.Host) (worker.Outcome, error) {
		d, err := host.Permit(call)
		if err == nil && !d.Allow {
			t.Errorf("refused: %s", d.Why)
		}
		return worker.Outcome{Summary: job.Prompt}, err
	}
	if left, failure, err := l.start(t.Context(), ask); left != program.Suspended || failure != nil || err != nil {
		t.Fatal(left, failure, err)
	}
	if err := l.Write(t.Context(), chat.ApprovalAnswered{ID: "a1", Call: l.log.Calls()[0].Use.ID, OK: true, By: "Mara", Note: "quietly"}); err != nil {
		t.Fatal(err)
	}
	if left, failure, err := l.start(t.Context(), ask); left != program.GoesOn || failure != nil || err != nil {
		t.Fatal(left, failure, err)
	}
	said := l.said()
	if got := said[len(said)-1].Blocks.Text(); !strings.Contains(got, "It was given: quietly. Make the same call again now") {
		t.Error(got)
	}
	if n := strings.Count(l.kinds(), "approval_asked"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A rule that ends the run ends the program with it; one that only refuses is told to the program.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for verdict, goesOn := range map[program.Verdict]bool{program.Refused: true, program.EndsRun: false} {
		l := newLoop(t)
		l.gate = func(chat.ToolUse) program.Verdict { return verdict }
		told := false
		_, _, err := l.start(t.Context(), func(_ context.Context, _ worker.Job, host worker.Host) (worker.Outcome, error) {
			d, err := host.Permit(worker.Call{ID: "a", Name: "Bash", Args: json.RawMessage(`{}`)})
			if told = err == nil; told && (d.Allow || d.Why != "not here") {
				t.Errorf("%+v", d)
			}
			return worker.Outcome{}, err
		})
		if err != nil || told != goesOn {
			t.Errorf("%v: %v, told %v", verdict, err, told)
		}
	}
}

// Somebody stops the run while the program works: its next step is not begun.
func TestAStopMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	left, failure, err := l.start(t.Context(), func(_ context.Context, _ worker.Job, host worker.Host) (worker.Outcome, error) {
		if err := host.Began(worker.Call{ID: "a", Name: "Bash", Args: json.RawMessage(`{}`)}); err != nil {
			return worker.Outcome{}, err
		}
		l.between = func() {
			l.events = append(l.events, chat.Event{Seq: int64(len(l.events) + 1), Body: chat.AbortAsked{Run: "r", By: "Mara"}})
		}
		err := host.Ended(worker.Result{Call: "a"})
		if err == nil {
			t.Error("it may go on")
		}
		return worker.Outcome{}, err
	})
	if left != program.GoesOn || failure != nil || err != nil || !l.log.Run().Aborted {
		t.Error(left, failure, err)
	}
}
