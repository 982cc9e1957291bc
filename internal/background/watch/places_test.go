package watch_test

import (
	"context"
	"sync"
	"testing"

	"chorus/internal/background"
	"chorus/internal/polltest"
)

// places is one machine beside which there are others.
type places struct {
	mu    sync.Mutex
	lost  bool
	stops []string
	done  []string
}

func (p *places) Place(context.Context, string) error { return nil }

func (p *places) PlaceOf(context.Context, string) (string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "berlin", p.lost, nil
}

func (p *places) AskStop(_ context.Context, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops = append(p.stops, id)
	return nil
}

func (p *places) StopsAsked(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.stops...), nil
}

func (p *places) StopDone(_ context.Context, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops, p.done = nil, append(p.done, id)
	return nil
}

// A process of a machine that never comes back is closed as lost by another, which has not seen how it ended.
func TestProcessOfALostMachineIsClosed(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	first := h.server(h.db)
	p, err := h.start(first, ada, "sleep 60", say)
	if err != nil {
		t.Fatal(err)
	}
	other := h.server(h.db)
	other.Dir, other.Places = t.TempDir(), &places{lost: true}
	if now := other.Observe(p); now.Over() {
		t.Errorf("it is taken for ended where it never was: %+v", now)
	}
	if name, err := other.PlaceOf(t.Context(), p.ID); err != nil || name != "berlin" {
		t.Errorf("it is on %q (%v)", name, err)
	}
	defer h.serve(other)()
	polltest.Until(t, "it is closed", func() bool {
		now, err := h.db.Process(t.Context(), h.id)
		return err == nil && now.State == background.Lost && now.Why == "its machine, berlin, is gone"
	})
	if _, err := first.Stop(p); err != nil { // on the machine itself it still runs
		t.Error(err)
	}
}

// The end of a process that was asked for on another machine comes from its own.
func TestProcessIsEndedFromAnotherMachine(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	first, shared := h.server(h.db), &places{}
	first.Places = shared
	p, err := h.start(first, ada, "sleep 60", say)
	if err != nil {
		t.Fatal(err)
	}
	other := h.server(h.db)
	other.Dir, other.Places = t.TempDir(), shared
	if other.Here(p.ID) || !first.Here(p.ID) {
		t.Error("it is on the other machine")
	}
	if err := other.AskStop(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	defer h.serve(first)()
	h.over()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if len(shared.done) != 1 {
		t.Errorf("done: %v", shared.done)
	}
}
