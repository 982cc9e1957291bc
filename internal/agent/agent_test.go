package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/agent"
	"chorus/internal/agent/record"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is the smallest one: a journal in memory, a gate that is a function.
type host struct {
	journal []chat.Event
	seen    int64
	judge   func(agent.ProposedCall) approval.Ruling
	now     func() time.Time // nil: always the same
	// before, when set, may let a guest write right before a commit.
	before func(b record.Batch)
}

func (h *host) guest(body chat.Body) {
	h.journal = append(h.journal, chat.Event{Seq: int64(len(h.journal) + 1), Body: body})
}

func (h *host) Commit(_ context.Context, b record.Batch) ([]chat.Event, error) {
	if h.before != nil && len(b.Events) > 0 {
		before := h.before
		h.before = nil
		before(b)
	}
	begins := slices.ContainsFunc(b.Events, func(ev chat.Event) bool {
		switch ev.Body.(type) {
		case chat.RunStarted, chat.Asked, chat.ToolBegan, chat.RunEnded:
			return true
		}
		return false
	})
	moved := (begins || b.Next) && int64(len(h.journal)) > h.seen
	if !moved {
		for _, ev := range b.Events {
			ev.Seq, ev.At = int64(len(h.journal)+1), time.UnixMicro(1)
			if h.now != nil {
				ev.At = h.now()
			}
			h.journal = append(h.journal, ev)
		}
	}
	news := slices.Clone(h.journal[h.seen:])
	h.seen = int64(len(h.journal))
	if moved {
		return news, journal.ErrMoved
	}
	return news, nil
}

func (h *host) Judge(_ context.Context, q agent.ProposedCall) (approval.Ruling, error) {
	if h.judge != nil {
		return h.judge(q), nil
	}
	return approval.Ruling{Verdict: approval.Allow}, nil
}

func (h *host) Live(chat.Live) {}

func (h *host) kinds() string {
	var out []string
	for _, ev := range h.journal {
		out = append(out, string(ev.Body.Kind()))
	}
	return strings.Join(out, " ")
}

// scripted answers with one entry after the other.
type scripted struct {
	answers []chat.Blocks
	dropped []string
}

func (s *scripted) Prepare(r model.Request) (model.Prepared, error) {
	return model.Prepared{Model: r.Model, Dropped: s.dropped}, nil
}

func (s *scripted) Stream(context.Context, model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		blocks := s.answers[0]
		s.answers = s.answers[1:]
		yield(model.Done{Blocks: blocks, Stop: chat.StopEnd}, nil)
	}
}

type act struct {
	ran  []string
	fail error
}

func (a *act) Spec() tool.Spec {
	return tool.Spec{Name: "act", Schema: json.RawMessage(`{"type":"object"}`)}
}
func (a *act) Access([]byte) []tool.Access { return nil }
func (a *act) Run(_ context.Context, args []byte) (tool.Result, error) {
	a.ran = append(a.ran, string(args))
	return tool.OK("ok"), a.fail
}

func call(n int) chat.Blocks {
	return chat.Blocks{chat.ToolUse{ID: fmt.Sprint("c", n), Name: "act", Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}}
}

func newAgent(t *testing.T, a *act, answers ...chat.Blocks) *agent.Agent {
	t.Helper()
	set, err := tool.NewSet(a)
	if err != nil {
		t.Fatal(err)
	}
	m := &scripted{answers: answers}
	return &agent.Agent{
		Tools: set,
		Model: func(string) (model.Handle, error) { return model.Handle{Model: m, Name: "m"}, nil },
		Head:  func(string) (*model.Head, error) { return &model.Head{}, nil },
		Begin: func(context.Context, *transcript.Log, transcript.Waiting) (agent.Beginning, error) {
			return agent.Beginning{Run: "r", Start: chat.RunStarted{Model: "x/m"}}, nil
		},
		Now: func() time.Time { return time.UnixMicro(1) },
	}
}

func prompt() chat.Received { return chat.Received{Blocks: chat.TextBlocks("do it"), Prompt: true} }

// fold is the log of a host's journal.
func fold(t *testing.T, h *host) *transcript.Log {
	t.Helper()
	log := transcript.New(nil)
	for _, ev := range h.journal {
		if err := log.Apply(ev); err != nil {
			t.Fatal(err)
		}
	}
	h.seen = int64(len(h.journal))
	return log
}

// TestEveryCrashPoint stops the loop's life after each of its commits and lets another one
// go on from the journal alone.
func TestEveryCrashPoint(t *testing.T) {
	t.Parallel()
	answers := []chat.Blocks{call(1), call(2), chat.TextBlocks("done")}
	for crash := 0; ; crash++ {
		a := &act{}
		h := &host{}
		h.guest(prompt())
		commits := 0
		died := errors.New("died")
		dying := &dyingHost{host: h, die: func() error {
			if commits++; commits > crash {
				return died
			}
			return nil
		}}
		_, err := newAgent(t, a, answers...).Run(context.Background(), fold(t, h), dying)
		if err == nil {
			return // it got through: every point has been tried
		}
		if !errors.Is(err, died) {
			t.Fatal(err)
		}
		// What the model would say next depends on how far the journal is.
		said := strings.Count(h.kinds(), "said")
		state, err := newAgent(t, a, answers[said:]...).Run(context.Background(), fold(t, h), h)
		if err != nil || state != agent.Finished {
			t.Fatalf("crash at %d: %v %v\n%s", crash, state, err, h.kinds())
		}
		if !strings.HasSuffix(h.kinds(), "said run_ended") || strings.Count(h.kinds(), "run_ended") != 1 || strings.Count(h.kinds(), "tool_ran") != 2 {
			t.Fatalf("crash at %d: %s", crash, h.kinds())
		}
		if len(a.ran) > 2 || len(slices.Compact(slices.Clone(a.ran))) != len(a.ran) {
			t.Fatalf("crash at %d: ran %v", crash, a.ran)
		}
	}
}

type dyingHost struct {
	*host
	die   func() error
	after func(record.Batch) // hears of what was written; may be nil
}

func (d *dyingHost) Commit(ctx context.Context, b record.Batch) ([]chat.Event, error) {
	if err := d.die(); err != nil {
		return nil, err
	}
	if d.after != nil {
		defer d.after(b)
	}
	return d.host.Commit(ctx, b)
}

// TestNewsBeforeEveryCommit lets an interrupt arrive right before each commit in turn: it is
// never lost, and no call that had not begun runs after it.
func TestNewsBeforeEveryCommit(t *testing.T) {
	t.Parallel()
	for at := 0; at < 8; at++ {
		a := &act{}
		h := &host{}
		h.guest(prompt())
		n := 0
		var watch func(record.Batch)
		watch = func(record.Batch) {
			if n == at {
				h.guest(chat.Steered{Blocks: chat.TextBlocks("wait"), Mode: chat.Interrupt})
			}
			if n++; n <= at {
				h.before = watch
			}
		}
		h.before = watch
		answers := []chat.Blocks{call(1), call(2), call(3), chat.TextBlocks("done"), chat.TextBlocks("done"), chat.TextBlocks("done")}
		log := fold(t, h)
		ag := newAgent(t, a, answers...)
		for {
			state, err := ag.Run(context.Background(), log, h)
			if err != nil {
				t.Fatalf("at %d: %v", at, err)
			}
			if state == agent.Nothing {
				break
			}
		}
		if len(log.Waiting()) != 0 || log.Run() != nil {
			t.Fatalf("at %d: the words were lost\n%s", at, h.kinds())
		}
		if strings.Count(h.kinds(), "took") < 2 {
			t.Fatalf("at %d: %s", at, h.kinds())
		}
		if got, want := snapshot(t, log), snapshot(t, fold(t, h)); got != want {
			t.Fatalf("at %d: the loop's log is not what the journal folds to:\n%s\n%s", at, got, want)
		}
	}
}

func snapshot(t *testing.T, log *transcript.Log) string {
	t.Helper()
	data, err := log.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOurOwnFailureEndsTheRun(t *testing.T) {
	t.Parallel()
	a := &act{fail: errors.New("disk on fire")}
	h := &host{}
	h.guest(prompt())
	state, err := newAgent(t, a, call(1)).Run(context.Background(), fold(t, h), h)
	if err != nil || state != agent.Finished {
		t.Fatal(state, err)
	}
	end := h.journal[len(h.journal)-1].Body.(chat.RunEnded)
	if end.Reason != chat.EndFailed || !strings.Contains(end.Text, "disk on fire") {
		t.Fatalf("%+v", end)
	}
}

// withSettings lets the agent's runs begin with these.
func withSettings(ag *agent.Agent, s chat.Settings) {
	ag.Begin = func(context.Context, *transcript.Log, transcript.Waiting) (agent.Beginning, error) {
		return agent.Beginning{Run: "r", Start: chat.RunStarted{Model: "x/m", Settings: s}}, nil
	}
}

// TestPromptsThatWaitTogether: in a room several wishes of one person to hear the agent are
// one run, others have each their own.
func TestPromptsThatWaitTogether(t *testing.T) {
	t.Parallel()
	for together, want := range map[bool][]int64{true: {1, 2}, false: {1}} {
		h := &host{}
		for _, text := range []string{"one", "two", "by another", "three"} {
			by := chat.Principal{Kind: "discord", ID: "1"}
			if text == "by another" {
				by.ID = "2"
			}
			h.guest(chat.Received{Principal: by, Blocks: chat.TextBlocks(text), Prompt: true, Together: together})
		}
		if _, err := newAgent(t, &act{}, chat.TextBlocks("done")).Run(context.Background(), fold(t, h), h); err != nil {
			t.Fatal(err)
		}
		for _, ev := range h.journal {
			if took, ok := ev.Body.(chat.Took); ok && !slices.Equal(took.Seqs, want) {
				t.Errorf("together %v: the run took %v, not %v: what another said between is not overtaken", together, took.Seqs, want)
			}
		}
	}
}

// A server that numbers the calls of each answer anew, or gives two calls one id: the second
// call was shown and never run, and the next request was refused for ever.
func TestCallsThatShareAnID(t *testing.T) {
	t.Parallel()
	use := func(n int) chat.Block {
		return chat.ToolUse{ID: "call_0", Name: "act", Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
	}
	a, h := &act{}, &host{}
	h.guest(prompt())
	agt := newAgent(t, a, chat.Blocks{use(1), use(2)}, chat.Blocks{use(3)}, chat.TextBlocks("done"))
	if state, err := agt.Run(context.Background(), fold(t, h), h); err != nil || state != agent.Finished {
		t.Fatalf("%v %v\n%s", state, err, h.kinds())
	}
	if want := `{"n":1} {"n":2} {"n":3}`; strings.Join(a.ran, " ") != want {
		t.Errorf("ran %v, want %s", a.ran, want)
	}
	called, answered := map[string]int{}, map[string]int{}
	for _, ev := range h.journal {
		switch b := ev.Body.(type) {
		case chat.Said:
			for _, c := range b.Blocks.Calls() {
				called[c.ID]++
			}
		case chat.ToolRan:
			answered[b.Call]++
		}
	}
	if len(called) != 3 || fmt.Sprint(called) != fmt.Sprint(answered) {
		t.Errorf("called %v, answered %v", called, answered)
	}
}

// A run whose beginning is lost from the disk ends and says so; it was tried for ever.
func TestALostBeginningEndsTheRun(t *testing.T) {
	t.Parallel()
	h := &host{}
	h.guest(prompt())
	agt := newAgent(t, &act{})
	agt.Head = func(string) (*model.Head, error) { return nil, fmt.Errorf("blob x: %w", chat.ErrLost) }
	state, err := agt.Run(context.Background(), fold(t, h), h)
	end, ok := h.journal[len(h.journal)-1].Body.(chat.RunEnded)
	if err != nil || state != agent.Finished || !ok || end.Error == nil || end.Error.Kind != "lost" {
		t.Errorf("%v %v %+v", state, err, end)
	}
}

// A setting that the model does not take was left out without a word.
func TestDroppedSettingsAreWrittenDown(t *testing.T) {
	t.Parallel()
	h := &host{}
	h.guest(prompt())
	agt := newAgent(t, &act{})
	m := &scripted{answers: []chat.Blocks{chat.TextBlocks("done")}, dropped: []string{"thinkingBudget: it cannot think"}}
	agt.Model = func(string) (model.Handle, error) { return model.Handle{Model: m, Name: "m"}, nil }
	if _, err := agt.Run(context.Background(), fold(t, h), h); err != nil {
		t.Fatal(err)
	}
	for _, ev := range h.journal {
		if asked, ok := ev.Body.(chat.Asked); ok && !slices.Equal(asked.Dropped, m.dropped) {
			t.Errorf("dropped %v", asked.Dropped)
		}
	}
}

// Three crashes in one answer failed a run that could have gone on: it waits longer between
// its attempts instead.
func TestCrashesWhileTheModelAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		h.guest(prompt())
		died := errors.New("died")
		began := time.Now()
		for lost := range 8 {
			agt := newAgent(t, &act{}, chat.TextBlocks("lost"))
			agt.Now = time.Now
			asked := false
			dying := &dyingHost{host: h, die: func() error {
				if asked {
					return died
				}
				return nil
			}}
			h.now = time.Now
			h.before = nil
			dying.after = func(b record.Batch) {
				asked = slices.ContainsFunc(b.Events, func(ev chat.Event) bool { _, ok := ev.Body.(chat.Asked); return ok })
			}
			if _, err := agt.Run(t.Context(), fold(t, h), dying); !errors.Is(err, died) {
				t.Fatalf("life %d: %v\n%s", lost, err, h.kinds())
			}
		}
		if waited := time.Since(began); waited < time.Minute || waited > 10*time.Minute {
			t.Errorf("it waited %s in all", waited)
		}
		agt := newAgent(t, &act{}, chat.TextBlocks("here I am"))
		agt.Now = time.Now
		if state, err := agt.Run(t.Context(), fold(t, h), h); err != nil || state != agent.Finished {
			t.Fatal(state, err)
		}
		if end := h.journal[len(h.journal)-1].Body.(chat.RunEnded); end.Reason != chat.EndDone {
			t.Errorf("%+v", end)
		}
	})
}

// An empty answer ended a run as done without a word; a failed prompt stood in the next request
// without its failure.
func TestWhatWasNotAnsweredIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []chat.Blocks
		want    string
	}{
		"nothing":           {[]chat.Blocks{nil}, "empty answer"},
		"white space":       {[]chat.Blocks{chat.TextBlocks(" \n")}, "empty answer"},
		"nothing at last":   {[]chat.Blocks{append(chat.TextBlocks("I look"), call(1)...), nil}, ""},
		"a call, then none": {[]chat.Blocks{call(1), nil}, "empty answer"},
		"words":             {[]chat.Blocks{chat.TextBlocks("hi")}, ""},
	} {
		h := &host{}
		h.guest(prompt())
		if _, err := newAgent(t, &act{}, c.answers...).Run(context.Background(), fold(t, h), h); err != nil {
			t.Fatal(err)
		}
		end := h.journal[len(h.journal)-1].Body.(chat.RunEnded)
		if end.Reason != chat.EndDone || (end.Text != "") != (c.want != "") || !strings.Contains(end.Text, c.want) {
			t.Errorf("%s: %+v", name, end)
		}
	}
	h := &host{}
	h.guest(prompt())
	agt := newAgent(t, &act{})
	agt.Model = func(string) (model.Handle, error) { return model.Handle{}, errors.New("the key was not accepted") }
	if _, err := agt.Run(context.Background(), fold(t, h), h); err != nil {
		t.Fatal(err)
	}
	log := fold(t, h)
	req, err := log.Request(&model.Head{}, log.Seq())
	if err != nil || len(req.Messages) != 2 || !strings.Contains(req.Messages[1].Blocks.Text(), "could not answer what was said before this: the key was not accepted") {
		t.Errorf("the next request: %v, %v", req.Messages, err)
	}
}

// A part of the answer was lost on the way: its calls may be others than the model meant.
func TestCallsOfAGarbledAnswerAreNotRun(t *testing.T) {
	t.Parallel()
	a, h := &act{}, &host{}
	h.guest(prompt())
	agt := newAgent(t, a, call(1), chat.TextBlocks("done"))
	m := &garbled{scripted{answers: []chat.Blocks{call(1), chat.TextBlocks("done")}}}
	agt.Model = func(string) (model.Handle, error) { return model.Handle{Model: m, Name: "m"}, nil }
	if _, err := agt.Run(context.Background(), fold(t, h), h); err != nil {
		t.Fatal(err)
	}
	if len(a.ran) != 0 || !strings.HasSuffix(h.kinds(), "said tool_ran asked said run_ended") {
		t.Errorf("ran %v: %s", a.ran, h.kinds())
	}
}

// garbled loses a part of every answer.
type garbled struct{ scripted }

func (g *garbled) Stream(ctx context.Context, p model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if yield(model.Unreadable{Data: `{"half":`}, nil) {
			g.scripted.Stream(ctx, p)(yield)
		}
	}
}
