package watch_test

import (
	"context"
	"sync/atomic"
	"testing"

	"chorus/internal/background"
	"chorus/internal/background/watch"
	"chorus/internal/polltest"
)

// looked counts how often a watcher looks.
type looked struct {
	watch.Store
	times atomic.Int32
}

func (l *looked) OpenProcesses(ctx context.Context) ([]background.Process, error) {
	defer l.times.Add(1)
	return l.Store.OpenProcesses(ctx)
}

// A machine that shares the database has no folder of the process, and must not take it for ended.
func TestProcessOfAnotherMachineIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	first := h.server(h.db)
	p, err := h.start(first, ada, "sleep 60", say)
	if err != nil {
		t.Fatal(err)
	}
	store := &looked{Store: h.db}
	other := h.server(store)
	other.Dir, other.Places = t.TempDir(), &places{}
	stop := h.serve(other)
	polltest.Until(t, "the other machine has looked", func() bool { other.Changed(); return store.times.Load() > 2 })
	stop()
	if now, err := h.db.Process(t.Context(), h.id); err != nil || now.Over() {
		t.Errorf("%+v, %v", now, err)
	}
	defer h.serve(first)()
	if _, err := first.Stop(p); err != nil {
		t.Error(err)
	}
	h.over()
}
