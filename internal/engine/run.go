package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"chorus/internal/agent"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/journal"
)

// runOnce runs the loop next to a goroutine that watches for aborts and for a newer epoch.
func (a *actor) runOnce(ctx context.Context, row journal.Thread) (agent.State, error) {
	e := a.engine
	work := a.due()
	a.watchdog.setPrompt(work.Seq, a.running())
	a.waits("its settings, servers and sandbox", e.Bounds.Setup)
	setup, err := e.Setup(ctx, row, work)
	if err != nil {
		return agent.Stopped, err
	}
	if a.watchdog.gone() {
		return agent.Stopped, journal.ErrFenced
	}
	setup.Agent.Terms = work.Terms
	setup.Agent.Bounds = setup.Agent.Bounds.Or(e.Bounds)
	setup.Agent.Waits = a.watchdog.waits
	setup.Agent.Abandoned = func(what string) func() { return e.abandoned(what, "thread", a.thread) }
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	h := newHost(a, setup, row)
	a.watchdog.setRun(h.runID)
	done := make(chan struct{})
	var watching sync.WaitGroup
	seen := a.log.Seq() // from here on the log belongs to the loop
	watching.Go(func() { a.watch(ctx, h, seen, cancel, done) })
	state, err := setup.Agent.Run(ctx, a.log, h)
	if state == agent.Suspended && err == nil {
		err = h.rest(ctx)
		if errors.Is(err, journal.ErrMoved) {
			err = nil // what arrived is handled next
		}
	}
	close(done)
	a.waits(database, e.Bounds.Store+2*e.Bounds.Grace) // it has a bound of its own
	watching.Wait()
	a.liveMu.Lock()
	a.partial = liveText{}
	a.liveMu.Unlock()
	return state, err
}

// watch answers wake-ups while the loop runs. It cancels the run when
// somebody aborted it or another process has the thread.
func (a *actor) watch(ctx context.Context, h *host, seen int64, cancel context.CancelCauseFunc, done <-chan struct{}) {
	woken := false
	defer func() {
		if woken {
			a.wake() // the loop may not have seen what it was woken for
		}
	}()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-a.wakeUp:
			woken = true
		}
		row, err := a.engine.timed.Thread(ctx, a.thread)
		if err == nil && row.Epoch != h.epoch {
			cancel(journal.ErrFenced)
			a.watchdog.expedite()
			return
		}
		var events []chat.Event
		if err == nil {
			events, err = a.engine.timed.Events(ctx, a.thread, seen, page)
		}
		if err != nil && ctx.Err() == nil {
			a.engine.Bus.Publish(a.thread, bus.Note{Err: fmt.Errorf("look for an abort: %w", err)})
		}
		for _, ev := range events {
			seen = ev.Seq
			if abort, ok := ev.Body.(chat.AbortAsked); ok && (abort.Run == h.runID() || abort.Run == "") {
				cancel(agent.ErrAborted)
				a.watchdog.expedite()
				return
			}
		}
	}
}
