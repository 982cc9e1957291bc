package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/agent"
	"chorus/internal/agent/attempt"
	"chorus/internal/approval"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/model/demo"
	"chorus/internal/owner"
	"chorus/internal/store"
	"chorus/internal/store/audit"
	"chorus/internal/store/storetest"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an engine on a real store with the scripted model.
type rig struct {
	t      *testing.T
	db     *store.DB
	dir    string
	engine *engine.Engine
	gate   func(agent.ProposedCall) approval.Ruling
	tools  *tool.Set
	config func(*engine.Config)
	steps  int
	asking engine.Asking

	provider model.Model    // nil: the scripted one
	settings *chat.Settings // nil: plain ones
}

var storeAll audit.Filter

type gateFunc func(agent.ProposedCall, chat.Principal) approval.Ruling

func (g gateFunc) Judge(q agent.ProposedCall, p chat.Principal) approval.Ruling { return g(q, p) }

var ada = chat.Principal{Kind: chat.LocalUser, ID: "ada"}

const thread = chat.ThreadID("cli:here:01test@helper")

func newRig(t *testing.T, tools ...tool.Tool) *rig {
	t.Helper()
	r := &rig{t: t, dir: storetest.FreshHome(t)}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	r.tools = set
	r.gate = func(agent.ProposedCall) approval.Ruling { return approval.Ruling{Verdict: approval.Allow, Rule: ".*"} }
	r.open()
	t.Cleanup(r.close)
	return r
}

func (r *rig) open() {
	r.t.Helper()
	db, err := store.Open(context.Background(), store.Options{Path: filepath.Join(r.dir, "chorus.db"), BlobDir: filepath.Join(r.dir, "blobs")})
	if err != nil {
		r.t.Fatal(err)
	}
	r.db = db
	r.start()
}

func (r *rig) start() {
	var provider model.Model = demo.New()
	if r.provider != nil {
		provider = r.provider
	}
	c := engine.Config{Journal: r.db, Bus: &bus.Bus{}, Owner: owner.Files{Dir: filepath.Join(r.dir, "locks")}, SweepEvery: time.Hour}
	c.Setup = func(ctx context.Context, row journal.Thread, _ engine.Work) (engine.Setup, error) {
		return engine.Setup{
			Gate:  gateFunc(func(q agent.ProposedCall, _ chat.Principal) approval.Ruling { return r.gate(q) }),
			Price: func(string) (ledger.Price, int) { return ledger.Price{Input: 1000, Output: 2000}, 1000 },
			Dir:   r.dir, Asking: r.asking,
			Agent: &agent.Agent{
				Tools: r.tools,
				Model: func(name string) (model.Handle, error) {
					return model.Handle{Model: provider, Name: strings.TrimPrefix(name, "demo/")}, nil
				},
				Head: func(hash string) (*model.Head, error) {
					data, err := r.db.Blob(context.Background(), hash)
					if err != nil {
						return nil, err
					}
					return model.ParseHead(data)
				},
				Begin: r.begin,
				Retry: attempt.Policy{Backoff: model.Backoff{Base: time.Millisecond}},
				Now:   time.Now,
			},
		}, nil
	}
	if r.config != nil {
		r.config(&c)
	}
	r.engine = engine.New(c)
}

func (r *rig) begin(context.Context, *transcript.Log, transcript.Waiting) (agent.Beginning, error) {
	head := &model.Head{System: "be good"}
	for _, s := range r.tools.Specs() {
		head.Tools = append(head.Tools, model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}
	data, err := head.Bytes()
	settings := chat.Settings{MaxSteps: r.steps, ContextWindow: 100000}
	if r.settings != nil {
		settings = *r.settings
	}
	return agent.Beginning{Run: id.New(), Head: chat.NewBlob(data), Start: chat.RunStarted{Model: "demo/script", Settings: settings}}, err
}

func (r *rig) close() {
	if r.engine == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.engine.Stop(ctx); err != nil {
		r.t.Error(err)
	}
	if err := r.db.Close(); err != nil {
		r.t.Error(err)
	}
	r.engine = nil
}

func (r *rig) say(text string) engine.Receipt {
	r.t.Helper()
	got, err := r.engine.Deliver(context.Background(), chat.Inbound{Threads: []chat.ThreadID{thread}, Principal: ada,
		From: chat.Participant{ID: "ada", Name: "Ada", Kind: chat.Person}, Blocks: chat.TextBlocks(text), Prompt: true},
		func(id chat.ThreadID) journal.Thread { return journal.Thread{ID: id, Agent: "helper", Owner: ada} })
	if err != nil {
		r.t.Fatal(err)
	}
	return got[0]
}

// until watches from the start until want is true of an event, and returns all events up to it.
func (r *rig) until(want func(chat.Event) bool) []chat.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var seen []chat.Event
	for item, err := range r.engine.Watch(ctx, thread, 0) {
		if err != nil {
			r.t.Fatalf("watch: %v", err)
		}
		if item.Event == nil {
			continue
		}
		seen = append(seen, *item.Event)
		if want(*item.Event) {
			return seen
		}
	}
	r.t.Fatalf("the awaited event never came; seen:\n%s", show(seen))
	return nil
}

func (r *rig) untilEnds(n int) []chat.Event {
	r.t.Helper()
	return r.until(func(ev chat.Event) bool {
		if _, ok := ev.Body.(chat.RunEnded); ok {
			n--
		}
		return n == 0
	})
}

func show(events []chat.Event) string {
	var b strings.Builder
	for _, ev := range events {
		data, _ := json.Marshal(ev.Body)
		fmt.Fprintf(&b, "%3d %-18s %s\n", ev.Seq, ev.Body.Kind(), data)
	}
	return b.String()
}

func kinds(events []chat.Event) string {
	var out []string
	for _, ev := range events {
		out = append(out, string(ev.Body.Kind()))
	}
	return strings.Join(out, " ")
}

func echo(readOnly bool) tool.Tool {
	return &fakeTool{spec: tool.Spec{Name: map[bool]string{true: "look", false: "act"}[readOnly], ReadOnly: readOnly,
		Description: "d", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)}}
}

type fakeTool struct {
	spec tool.Spec
	run  func(ctx context.Context, args []byte) (tool.Result, error)
}

func (f *fakeTool) Spec() tool.Spec             { return f.spec }
func (f *fakeTool) Access([]byte) []tool.Access { return nil }
func (f *fakeTool) Run(ctx context.Context, args []byte) (tool.Result, error) {
	if f.run != nil {
		return f.run(ctx, args)
	}
	return tool.OK("did " + string(args)), nil
}

func TestAPromptIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, echo(true), echo(false))
	r.say("!call act {\"text\":\"a\"}\n!---\n!say it said {{last}}")
	events := r.untilEnds(1)
	want := "received run_started took asked said tool_began tool_ran asked said run_ended"
	if got := kinds(events); got != want {
		t.Fatalf("got  %s\nwant %s\n%s", got, want, show(events))
	}
	if end := events[len(events)-1].Body.(chat.RunEnded); end.Reason != chat.EndDone || end.Steps != 2 || end.Cost == 0 {
		t.Fatalf("ended %+v", end)
	}
}
