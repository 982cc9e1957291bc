package room

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/catalog"
	"chorus/internal/owner"
	"chorus/internal/sim/llmsim"
	"chorus/internal/store"
	"chorus/internal/tool"
	"chorus/internal/transcript"
)

// Wrap tells a model who says what; nil: names are not shown.
type Wrap func(model.Model, catalog.Entry) model.Model

// Limits are those of the measured case.
var Limits = chat.Window{Messages: 400, Threshold: 50}

const (
	thread    = chat.ThreadID("sim:room:main@chorus")
	modelName = "claude-sonnet-4-5"
)

// room is a store, an engine and a simulator that answers by the script.
type room struct {
	db     *store.DB
	engine *engine.Engine
	sim    *llmsim.Server
	stop   func()
	model  model.Model
	entry  catalog.Entry
	head   *model.Head
}

func open(ctx context.Context, dir string, wrap Wrap) (*room, error) {
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, "chorus.db"), BlobDir: filepath.Join(dir, "blobs")})
	if err != nil {
		return nil, err
	}
	r := &room{db: db, sim: llmsim.New(llmsim.Options{}), head: &model.Head{System: system()}}
	url, stop, err := r.sim.Start()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	r.stop = stop
	r.entry, _ = catalog.Lookup("anthropic", modelName)
	r.model = anthropic.New(anthropic.Options{APIKey: "test-key", BaseURL: url})
	if wrap != nil {
		r.model = wrap(r.model, r.entry)
	}
	r.engine = engine.New(engine.Config{Journal: db, Bus: &bus.Bus{}, Owner: owner.Files{Dir: filepath.Join(dir, "locks")}, SweepEvery: time.Hour, Setup: r.setup})
	return r, nil
}

func (r *room) close(ctx context.Context) error {
	err := r.engine.Stop(ctx)
	r.stop()
	return errors.Join(err, r.db.Close())
}

type openGate struct{}

func (openGate) Judge(agent.ProposedCall, chat.Principal) approval.Ruling {
	return approval.Ruling{Verdict: approval.Allow}
}

func (r *room) setup(context.Context, journal.Thread, engine.Work) (engine.Setup, error) {
	none, err := tool.NewSet()
	if err != nil {
		return engine.Setup{}, err
	}
	return engine.Setup{
		Gate:  openGate{},
		Price: func(string) (ledger.Price, int) { return r.entry.Price, r.entry.MaxOutput },
		Agent: &agent.Agent{
			Tools: none,
			Model: func(string) (model.Handle, error) {
				return model.Handle{Model: r.model, Name: modelName, Entry: r.entry}, nil
			},
			Head: func(string) (*model.Head, error) { return r.head, nil },
			Begin: func(context.Context, *transcript.Log, transcript.Waiting) (agent.Beginning, error) {
				data, err := r.head.Bytes()
				return agent.Beginning{Run: id.New(), Head: chat.NewBlob(data), Start: chat.RunStarted{Model: "anthropic/" + modelName,
					Settings: chat.Settings{MaxTokens: 1000, Window: Limits}}}, err
			},
			Now: time.Now,
		},
	}, nil
}

// hear lets somebody speak; with asks set the agent answers, and its last events
// are returned when it has.
func (r *room) hear(ctx context.Context, line Line) ([]chat.Event, error) {
	who := chat.Principal{Kind: chat.LocalUser, ID: line.From}
	in := chat.Inbound{Threads: []chat.ThreadID{thread}, Principal: who, From: chat.Participant{ID: line.From, Name: line.From, Kind: chat.Person},
		Blocks: chat.TextBlocks(line.Text), Prompt: line.Asks}
	if line.Asks {
		r.sim.Push(llmsim.Text(line.Answer))
	}
	got, err := r.engine.Deliver(ctx, in, func(chat.ThreadID) journal.Thread { return journal.Thread{Agent: "chorus", Place: "room", Owner: who} })
	if err != nil || !line.Asks {
		return nil, err
	}
	return r.answer(ctx, got[0].Seq)
}

// answer waits for the end of the run that a prompt set off.
func (r *room) answer(ctx context.Context, after int64) ([]chat.Event, error) {
	var events []chat.Event
	for item, err := range r.engine.Watch(ctx, thread, after) {
		if err != nil {
			return nil, err
		}
		if item.Event == nil {
			continue
		}
		events = append(events, *item.Event)
		if end, ok := item.Event.Body.(chat.RunEnded); ok {
			if end.Reason != chat.EndDone {
				return nil, fmt.Errorf("the run ended as %s: %s", end.Reason, end.Text)
			}
			return events, nil
		}
	}
	return nil, ctx.Err()
}
