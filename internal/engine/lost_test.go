package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/owner"
	"chorus/internal/polltest"
)

// losing is an owner whose things can be taken away.
type losing struct {
	owner.Owner
	mu   sync.Mutex
	lose context.CancelCauseFunc
}

type losable struct {
	owner.Held
	ctx context.Context
}

func (l losable) Context() context.Context { return l.ctx }

func (l *losing) Take(ctx context.Context, name owner.Name) (owner.Held, error) {
	held, err := l.Owner.Take(ctx, name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var lost context.Context
	lost, l.lose = context.WithCancelCause(context.Background())
	return losable{held, lost}, nil
}

// A thread that is lost while its tool runs: the tool ends at once, without a grace, and whoever has the thread next
// finds a call that had begun.
func TestThreadLostWhileItRuns(t *testing.T) {
	t.Parallel()
	f, began, _ := hold("act", false)
	r := newRig(t, f)
	r.close()
	o := &losing{Owner: owner.Files{Dir: filepath.Join(r.dir, "locks")}}
	r.config = func(c *engine.Config) { c.Owner = o }
	r.open()
	r.say("!call act {}\n!---\n!say over")
	<-began
	o.mu.Lock()
	lose := o.lose
	o.mu.Unlock()
	lose(fmt.Errorf("the node is gone: %w", owner.ErrLost))
	polltest.Until(t, "the actor lets go", func() bool { return r.engine.Fenced() == 1 })
	r.engine.Wake(thread)
	events := r.untilEnds(1)
	if ran := bodies[chat.ToolRan](events); len(ran) != 1 || ran[0].Outcome != chat.Interrupted || len(began) != 0 {
		t.Fatalf("%+v\n%s", ran, show(events))
	}
}
