package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/agent"
	"chorus/internal/agent/attempt"
	"chorus/internal/agent/deadline"
	"chorus/internal/agent/toolcall"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/model/demo"
	"chorus/internal/store/storetest"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// seams are all the ways out of a thread: the methods of its interfaces and the
// functions of its settings, as the compiler knows them. One that is added appears
// here by itself, and fails the test until the scenario reaches it or pure says why it cannot hang.
func seams() []string {
	var out []string
	for _, t := range []reflect.Type{reflect.TypeFor[engine.Journal](), reflect.TypeFor[engine.Gate](), reflect.TypeFor[toolcall.Tools](),
		reflect.TypeFor[model.Model](), reflect.TypeFor[tool.Tool](), reflect.TypeFor[tool.Previewer]()} {
		for m := range t.NumMethod() {
			out = append(out, t.Name()+"."+t.Method(m).Name)
		}
	}
	for _, t := range []reflect.Type{reflect.TypeFor[engine.Config](), reflect.TypeFor[engine.Setup](), reflect.TypeFor[agent.Agent](), reflect.TypeFor[attempt.Policy]()} {
		for f := range t.NumField() {
			if t.Field(f).Type.Kind() == reflect.Func {
				out = append(out, t.Name()+"."+t.Field(f).Name)
			}
		}
	}
	return append(out, "Model.Stream, later")
}

// pure do not leave the process: there is nothing in them that could hang.
var pure = map[string]string{
	"Tool.Spec":         "gives a value",
	"Config.Takes":      "looks at what was chosen",
	"Config.Adopt":      "compares names",
	"Config.Now":        "reads the clock",
	"Config.AfterRush":  "runs beside everything, and nothing waits for it",
	"Setup.Price":       "looks into a table",
	"Policy.FallsBack":  "compares kinds of errors",
	"Agent.CacheMissed": "writes to the log",
	"Agent.Waits":       "is the watchdog's own",
	"Agent.Abandoned":   "counts",
	"Agent.Now":         "reads the clock",
	"Policy.Random":     "throws dice",
}

// blind is for ways out that have no context, and so can only be deaf.
var blind = context.TODO()

// hang is one call that does not come back: the nth through a seam.
type hang struct {
	at      string
	nth     int
	deaf    bool // also when its context ends
	release chan struct{}
	hit     atomic.Bool
	held    atomic.Int64 // how long it was waited for

	mu    sync.Mutex
	count map[string]int
	blind map[string]bool // seams without a context
}

// pass is called by everything that goes out.
func (h *hang) pass(ctx context.Context, seam string) error {
	h.mu.Lock()
	n := h.count[seam]
	h.count[seam]++
	if ctx == blind {
		h.blind[seam] = true
	}
	h.mu.Unlock()
	if seam != h.at || n != h.nth {
		return nil
	}
	h.hit.Store(true)
	begun := time.Now()
	defer func() { h.held.Store(int64(time.Since(begun))) }()
	h.held.Store(int64(time.Hour)) // until it is known
	if h.deaf || ctx == blind {
		<-h.release
		return errors.New("much too late")
	}
	<-ctx.Done()
	return ctx.Err()
}

// through is a call with a result.
func through[T any](ctx context.Context, h *hang, seam string, f func() (T, error)) (T, error) {
	if err := h.pass(ctx, seam); err != nil {
		var none T
		return none, err
	}
	return f()
}

// hungJournal is a store in which one call hangs.
type hungJournal struct {
	engine.Journal
	h *hang
}

func (j hungJournal) Commit(ctx context.Context, c journal.Commit) (journal.Committed, error) {
	return through(ctx, j.h, "Journal.Commit", func() (journal.Committed, error) { return j.Journal.Commit(ctx, c) })
}
func (j hungJournal) Arrive(ctx context.Context, a journal.Arrival) (journal.Arrived, error) {
	return through(ctx, j.h, "Journal.Arrive", func() (journal.Arrived, error) { return j.Journal.Arrive(ctx, a) })
}
func (j hungJournal) Take(ctx context.Context, id chat.ThreadID) (journal.Thread, error) {
	return through(ctx, j.h, "Journal.Take", func() (journal.Thread, error) { return j.Journal.Take(ctx, id) })
}
func (j hungJournal) SaveSnapshot(ctx context.Context, s journal.Snapshot) error {
	_, err := through(ctx, j.h, "Journal.SaveSnapshot", func() (int, error) { return 0, j.Journal.SaveSnapshot(ctx, s) })
	return err
}
func (j hungJournal) Thread(ctx context.Context, id chat.ThreadID) (journal.Thread, error) {
	return through(ctx, j.h, "Journal.Thread", func() (journal.Thread, error) { return j.Journal.Thread(ctx, id) })
}
func (j hungJournal) Events(ctx context.Context, id chat.ThreadID, after int64, limit int) ([]chat.Event, error) {
	return through(ctx, j.h, "Journal.Events", func() ([]chat.Event, error) { return j.Journal.Events(ctx, id, after, limit) })
}
func (j hungJournal) Snapshot(ctx context.Context, id chat.ThreadID, codec string) (journal.Snapshot, error) {
	return through(ctx, j.h, "Journal.Snapshot", func() (journal.Snapshot, error) { return j.Journal.Snapshot(ctx, id, codec) })
}
func (j hungJournal) Blob(ctx context.Context, hash string) ([]byte, error) {
	return through(ctx, j.h, "Journal.Blob", func() ([]byte, error) { return j.Journal.Blob(ctx, hash) })
}
func (j hungJournal) ActiveThreads(ctx context.Context) ([]journal.Thread, error) {
	return through(ctx, j.h, "Journal.ActiveThreads", func() ([]journal.Thread, error) { return j.Journal.ActiveThreads(ctx) })
}
func (j hungJournal) DataVersion(ctx context.Context) (int64, error) {
	return through(ctx, j.h, "Journal.DataVersion", func() (int64, error) { return j.Journal.DataVersion(ctx) })
}
func (j hungJournal) LastRun(ctx context.Context, id chat.ThreadID) (string, error) {
	return through(ctx, j.h, "Journal.LastRun", func() (string, error) { return j.Journal.LastRun(ctx, id) })
}
func (j hungJournal) PendingPrompts(ctx context.Context, id chat.ThreadID) ([]int64, error) {
	return through(ctx, j.h, "Journal.PendingPrompts", func() ([]int64, error) { return j.Journal.PendingPrompts(ctx, id) })
}
func (j hungJournal) Approval(ctx context.Context, id string) (approval.Approval, error) {
	return through(ctx, j.h, "Journal.Approval", func() (approval.Approval, error) { return j.Journal.Approval(ctx, id) })
}
func (j hungJournal) Approvals(ctx context.Context, f approval.Filter) ([]approval.Approval, error) {
	return through(ctx, j.h, "Journal.Approvals", func() ([]approval.Approval, error) { return j.Journal.Approvals(ctx, f) })
}
func (j hungJournal) Overdue(ctx context.Context, now time.Time) ([]approval.Approval, error) {
	return through(ctx, j.h, "Journal.Overdue", func() ([]approval.Approval, error) { return j.Journal.Overdue(ctx, now) })
}
func (j hungJournal) RunCost(ctx context.Context, run string) (ledger.Nanos, error) {
	return through(ctx, j.h, "Journal.RunCost", func() (ledger.Nanos, error) { return j.Journal.RunCost(ctx, run) })
}

// hungModel is a model that hangs before or in the middle of an answer.
type hungModel struct {
	model.Model
	h *hang
}

func (m hungModel) Prepare(r model.Request) (model.Prepared, error) {
	return through(blind, m.h, "Model.Prepare", func() (model.Prepared, error) { return m.Model.Prepare(r) })
}

func (m hungModel) Stream(ctx context.Context, p model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		seam := "Model.Stream"
		for c, err := range m.Model.Stream(ctx, p) {
			if herr := m.h.pass(ctx, seam); herr != nil {
				yield(nil, &model.Error{Kind: model.Network, Provider: "demo", Err: herr, Message: herr.Error()})
				return
			}
			seam = "Model.Stream, later"
			if !yield(c, err) {
				return
			}
		}
	}
}

// hungTools and hungTool are tools that hang.
type hungTools struct {
	*tool.Set
	h *hang
}

func (s hungTools) Resolve(name string, args []byte) (tool.Tool, []byte, error) {
	if err := s.h.pass(blind, "Tools.Resolve"); err != nil {
		return nil, nil, err
	}
	return s.Set.Resolve(name, args)
}

func (s hungTools) Validate(t tool.Tool, args []byte) error {
	if err := s.h.pass(blind, "Tools.Validate"); err != nil {
		return err
	}
	return s.Set.Validate(t, args)
}

type hungTool struct {
	tool.Tool
	h *hang
}

func (t *hungTool) Access(args []byte) []tool.Access {
	_ = t.h.pass(blind, "Tool.Access")
	return t.Tool.Access(args)
}

func (t *hungTool) Run(ctx context.Context, args []byte) (tool.Result, error) {
	if err := t.h.pass(ctx, "Tool.Run"); err != nil {
		return tool.Fail("told to end"), nil
	}
	return t.Tool.Run(ctx, args)
}

func (t *hungTool) Preview(ctx context.Context, _ []byte) string {
	_ = t.h.pass(ctx, "Previewer.Preview")
	return "it would act"
}

var (
	_ engine.Journal = hungJournal{}
	_ model.Model    = hungModel{}
	_ toolcall.Tools = hungTools{}
	_ tool.Previewer = (*hungTool)(nil)
)

// hungSetup puts the hang between an engine and its settings.
func hungSetup(c *engine.Config, h *hang, set *tool.Set) {
	c.Here = func(journal.Thread) error { return h.pass(blind, "Config.Here") }
	inner := c.Setup
	c.Setup = func(ctx context.Context, row journal.Thread, work engine.Work) (engine.Setup, error) {
		s, err := through(ctx, h, "Config.Setup", func() (engine.Setup, error) { return inner(ctx, row, work) })
		if err != nil {
			return s, err
		}
		a, gate := s.Agent, s.Gate
		s.Gate = gateFunc(func(q agent.ProposedCall, who chat.Principal) approval.Ruling {
			_ = h.pass(blind, "Gate.Judge")
			return gate.Judge(q, who)
		})
		a.Tools = hungTools{set, h}
		models, head, begin := a.Model, a.Head, a.Begin
		a.Model = func(name string) (model.Handle, error) {
			return through(blind, h, "Agent.Model", func() (model.Handle, error) { return models(name) })
		}
		a.Head = func(hash string) (*model.Head, error) {
			return through(blind, h, "Agent.Head", func() (*model.Head, error) { return head(hash) })
		}
		a.Begin = func(ctx context.Context, log *transcript.Log, w transcript.Waiting) (agent.Beginning, error) {
			return through(ctx, h, "Agent.Begin", func() (agent.Beginning, error) { return begin(ctx, log, w) })
		}
		a.Defer = func(ctx context.Context, c toolcall.Call, _ *transcript.Run) (agent.Deferral, error) {
			return through(ctx, h, "Agent.Defer", func() (agent.Deferral, error) {
				other := chat.ThreadID("cli:here:" + id.New() + "@other")
				return agent.Deferral{Thread: other, Result: chat.TextBlocks("told"), Begin: journal.Commit{Thread: other, Create: &journal.Thread{ID: other}}}, nil
			})
		}
		if h.at == "" || h.at == "Agent.Before" || h.at == "Agent.After" { // with hooks the first call of an answer goes another way
			a.Before = func(ctx context.Context, _ string, args []byte) toolcall.HookVerdict {
				if err := h.pass(ctx, "Agent.Before"); err != nil {
					return toolcall.HookVerdict{Denied: "the hook was told to end"}
				}
				return toolcall.HookVerdict{Args: args}
			}
			a.After = func(ctx context.Context, _ string, _ []byte, _ chat.ToolRan) string {
				_ = h.pass(ctx, "Agent.After")
				return ""
			}
		}
		a.Notes = func(ctx context.Context, _ *transcript.Log) []chat.Noted {
			if h.pass(ctx, "Agent.Notes") != nil {
				return nil
			}
			return []chat.Noted{{What: "date", Text: "today"}}
		}
		a.Reap = func(ctx context.Context, _ string) error { return h.pass(ctx, "Agent.Reap") }
		return s, nil
	}
}

// ends reports runs by how often they ended, and texts that people or the model read.
func account(events []chat.Event) (ends map[string]int, texts []string) {
	ends = map[string]int{}
	for _, ev := range events {
		switch b := ev.Body.(type) {
		case chat.RunStarted:
			ends[b.Run] += 0
		case chat.RunEnded:
			ends[b.Run]++
			texts = append(texts, b.Text)
		case chat.ToolRan:
			texts = append(texts, b.Blocks.Text())
		}
	}
	return ends, texts
}

// maxWait is how long the scenario waits for anything in virtual time.
var maxWait = deadline.Defaults().Longest()

// scene is one talk in which every way out is taken.
type scene struct {
	*rig
	h       *hang
	blocked atomic.Bool
	began   chan string
	release chan struct{}

	mu     sync.Mutex
	errors []string // what people were told besides the journal
}

func (s *scene) tell(err error) {
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errors = append(s.errors, err.Error())
	}
}

// until looks, a second apart, until the thread is as it should be; false: it never was.
func (s *scene) until(want func(journal.Thread) bool) bool {
	pause := time.Second
	for end := time.Now().Add(maxWait); time.Now().Before(end); pause = min(2*pause, time.Minute) {
		if row, err := s.db.Thread(context.Background(), thread); err == nil && want(row) {
			return true
		}
		time.Sleep(pause)
	}
	return false
}

func quiet(row journal.Thread) bool {
	return row.Waiting == 0 && (row.Status == chat.Idle || row.Status == chat.Failed)
}

func (s *scene) say(text string) int64 {
	got, err := s.engine.Deliver(context.Background(), chat.Inbound{Threads: []chat.ThreadID{thread}, Principal: ada,
		From: chat.Participant{ID: "ada", Name: "Ada", Kind: chat.Person}, Blocks: chat.TextBlocks(text), Prompt: true}, nil)
	s.tell(err)
	if err != nil {
		return 0
	}
	return got[0].Seq
}

// play goes through the talk, whatever hangs in it. Each part begins when the thread
// is free again, and says whether it was in time.
func (s *scene) play(t *testing.T) {
	free := func(after string) {
		if !s.until(quiet) {
			t.Errorf("the thread was not free again after %s", after)
		}
	}
	s.say("!call look {\"text\":\"a\"}\n!---\n!call act {\"text\":\"b\"}\n!---\n!call give {}\n!---\n!say one two three")
	free("the tools")

	s.say("!call ask {}\n!---\n!say asked")
	s.until(func(row journal.Thread) bool { return row.Status == chat.Waiting || quiet(row) })
	if open, err := s.db.Approvals(context.Background(), approval.Filter{State: approval.Open}); err == nil && len(open) == 1 {
		for range 2 {
			s.tell(s.engine.Answer(context.Background(), open[0].ID, ada, true, ""))
		}
	}
	free("the approval")

	s.say("!call hold {}\n!---\n!say held")
	if s.holds() {
		s.tell(ignore(s.engine.Abort(context.Background(), thread, "ada", true)))
		s.tell(ignore(s.engine.Abort(context.Background(), thread, "ada", true)))
	}
	free("the abort")

	s.say("!call hold {}\n!---\n!say fenced")
	if s.holds() { // somebody takes the thread away, and dies
		_, err := s.db.Take(context.Background(), thread)
		s.tell(err)
		s.release <- struct{}{}
	}
	free("the crash")

	s.blocked.Store(true)
	s.say("!say never")
	synctest.Wait()
	for range 2 {
		s.tell(ignore(s.engine.Abort(context.Background(), thread, "ada", true)))
	}
	s.blocked.Store(false)
	s.engine.Wake(thread)
	free("the refusal")
}

// holds waits until the tool that holds has begun.
func (s *scene) holds() bool {
	s.until(func(row journal.Thread) bool { return quiet(row) || len(s.began) > 0 })
	select {
	case <-s.began:
		return true
	default:
		return false
	}
}

func ignore(_ bool, err error) error { return err }

// newScene prepares a thread with a past: something imported, and enough for a snapshot where one is wanted.
func newScene(t *testing.T, h *hang) *scene {
	s := &scene{h: h}
	look, act, ask := echo(true).(*fakeTool), echo(false).(*fakeTool), echo(false).(*fakeTool)
	ask.spec.Name = "ask"
	give := echo(false).(*fakeTool)
	give.spec.Name, give.spec.Deferred = "give", true
	hold, began, release := hold("hold", false)
	s.began, s.release = began, release
	list := []tool.Tool{&hungTool{look, h}, &hungTool{act, h}, &hungTool{ask, h}, give, hold}
	s.rig = &rig{t: t, dir: storetest.FreshHome(t)}
	var err error
	if s.tools, err = tool.NewSet(list...); err != nil {
		t.Fatal(err)
	}
	s.gate = func(q agent.ProposedCall) approval.Ruling {
		if q.Call.Name == "ask" {
			return approval.Ruling{Verdict: approval.Pending, Rule: "ask"}
		}
		return approval.Ruling{Verdict: approval.Allow}
	}
	s.provider = hungModel{demo.New(), h}
	s.config = func(c *engine.Config) {
		c.Journal, c.SweepEvery = hungJournal{s.db, h}, time.Minute
		c.Takes = func(chat.ThreadID, transcript.Waiting) bool { return !s.blocked.Load() }
		hungSetup(c, h, s.tools)
	}
	s.open()
	t.Cleanup(s.close)
	blob := chat.NewBlob([]byte("[]"))
	past := journal.Commit{Thread: thread, Create: &journal.Thread{ID: thread, Agent: "helper", Owner: ada}, Blobs: []chat.Blob{blob}}
	length := 1
	if h.at == "" || strings.HasSuffix(h.at, "Snapshot") {
		length = 201 // enough for a snapshot
	}
	for i := range length {
		var body chat.Body = chat.Received{From: chat.Participant{Name: "Ada"}, Principal: ada, Blocks: chat.TextBlocks("hm")}
		if i == 0 {
			body = chat.Imported{Source: "there", Blob: blob.Hash}
		}
		past.Events = append(past.Events, chat.Event{Thread: thread, Body: body, Platform: "local", PlatformID: fmt.Sprint("past", i)})
	}
	if _, err := s.db.Commit(context.Background(), past); err != nil {
		t.Fatal(err)
	}
	return s
}

// hungScene plays the talk with one call hanging and holds what must be true of it.
func hungScene(t *testing.T, at string, nth int, deaf bool) *hang {
	h := &hang{at: at, nth: nth, deaf: deaf, release: make(chan struct{}), count: map[string]int{}, blind: map[string]bool{}}
	s := newScene(t, h)
	ctx, cancel := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for _, err := range s.engine.Watch(ctx, thread, 0) {
			s.tell(err)
		}
	}()
	s.play(t)
	if at != "" && nth == 0 && !h.hit.Load() {
		t.Errorf("%s was not called", at)
	}
	asked := time.Now()
	seq := s.say("!say and now")
	if !s.until(quiet) || seq == 0 {
		t.Fatal("the next message was not answered")
	}
	if took := time.Since(asked); took > maxWait {
		t.Errorf("the next message was answered after %s", took)
	}
	time.Sleep(time.Minute) // also whoever only watches gives up in the end
	cancel()
	<-watched
	events, err := s.db.Events(context.Background(), thread, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if got := lastText(events); got != "and now" {
		t.Errorf("the next message was answered with %q", got)
	}
	ends, texts := account(events)
	for run, n := range ends {
		if n != 1 {
			t.Errorf("run %s ended %d times", run, n)
		}
	}
	heard := strings.Join(append(texts, s.errors...), "\n")
	if said := strings.Contains(heard, "without success") || strings.Contains(heard, "did not answer within") || strings.Contains(heard, "told to"); h.hit.Load() && h.held.Load() > int64(time.Second) && !said && !silent[at] {
		t.Error("nobody was told what happened")
	}
	if t.Failed() {
		t.Logf("%s\n%s", kinds(events), heard)
	}
	close(h.release)
	synctest.Wait()
	if n := s.engine.Abandoned(); n != 0 {
		t.Errorf("%d waits are still left behind", n)
	}
	return h
}

// silent are those that nobody waits for: the sweep tries again, and a snapshot or a
// notification more or less is no harm. The log has them.
var silent = map[string]bool{"Journal.ActiveThreads": true, "Journal.DataVersion": true, "Journal.Overdue": true,
	"Journal.Approvals": true, "Journal.SaveSnapshot": true}

// Whatever does not come back, the thread does: every way out is made to hang in turn,
// once by something that obeys its context and once by something that does not.
func TestNoHangHoldsAThread(t *testing.T) {
	t.Parallel()
	if _, err := storetest.Empty(); err != nil { // not in a bubble: it is for all of them
		t.Fatal(err)
	}
	var all *hang
	synctest.Test(t, func(t *testing.T) { all = hungScene(t, "", 0, false) })
	if t.Failed() {
		return
	}
	calls := all.count
	for _, seam := range seams() {
		if calls[seam] == 0 && pure[seam] == "" {
			t.Errorf("nothing shows what happens when %s hangs", seam)
		}
	}
	for _, seam := range slices.Sorted(maps.Keys(calls)) {
		if !slices.Contains(seams(), seam) {
			t.Errorf("%s is no way out that anybody knows", seam)
		}
		for nth := range min(calls[seam], each) {
			for _, deaf := range []bool{false, true} {
				if !deaf && (all.blind[seam] || each == 1) {
					continue // it has no context to obey, or the harder case must do
				}
				t.Run(fmt.Sprintf("%s/%d/deaf=%v", seam, nth+1, deaf), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { hungScene(t, seam, nth, deaf) })
				})
			}
		}
	}
}
