package runner

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/hook"
)

// other is a second source of events, with one event.
type other struct{ told bool }

func (*other) Wake() <-chan struct{}      { return nil }
func (*other) Pass(context.Context) error { return nil }

func (o *other) Read(_ context.Context, _ time.Time, take func(Happened) error) error {
	if o.told {
		return nil
	}
	o.told = true
	return take(Happened{Reader: "other", Thread: thread, Seq: 1, Cause: func() (chat.Principal, error) { return ada, nil },
		Events: []hook.Event{{Key: "other/1", Type: "task_completed", At: begin.Add(time.Minute), Thread: thread, Data: json.RawMessage(`{"task":"t-1"}`)}}})
}

// A second source triggers hooks beside the journal.
func TestASecondSourceOfEvents(t *testing.T) {
	t.Parallel()
	b, w := newBench(t), newWorker()
	b.hook(hook.Hook{ID: "done", Definition: hook.Definition{Trigger: hook.Trigger{Type: hook.OnEvent, Event: "task_completed"}, Template: "{{event.task}}"}})
	b.hook(hook.Hook{ID: "ended", Definition: hook.Definition{Trigger: onCompleted, Template: "x"}})
	r := b.runner(w)
	r.Sources = append(r.Sources, &other{})
	b.pass(time.Minute)
	b.ended(1, ada)
	b.look(r)
	if runs := b.runs("done"); len(runs) != 1 || runs[0].Prompt != "t-1" || runs[0].Reason != "event:task_completed" {
		t.Errorf("%+v", runs)
	}
	if runs := b.runs("ended"); len(runs) != 1 {
		t.Errorf("%+v", runs)
	}
}

// What can be written in a trigger is what the sources bring.
func TestEventTypes(t *testing.T) {
	t.Parallel()
	types := EventTypes()
	for _, name := range JournalTypes() {
		if !slices.Contains(types, name) {
			t.Errorf("%s can trigger nothing", name)
		}
	}
	sources, end := OpenSources(SourceDeps{Journal: newBench(t).db, Bus: newBench(t).bus})
	defer end()
	if len(sources) != len(sourceKinds()) {
		t.Error(len(sources))
	}
}
