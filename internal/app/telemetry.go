package app

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/telemetry"
)

// watching is what an App has to tell machines.
type watching struct {
	counts   *telemetry.Telemetry // nil: nobody counts
	follower *telemetry.Follower  // nil until something runs
}

// flushTime is how long the end waits for a collector to take the last spans.
const flushTime = 3 * time.Second

// close tells what there is to tell.
func (w *watching) close() {
	if w.counts != nil {
		w.counts.Close()
	}
	if w.follower != nil {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		w.follower.Close(ctx)
	}
}

// Telemetry counts what happens here, for a scraper. A server asks for it before anything
// else starts, so that its commits are timed too; nobody else pays for it.
func (a *App) Telemetry() *telemetry.Telemetry {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watched.counts == nil {
		a.watched.counts = telemetry.New(telemetry.Options{Bus: a.bus, Version: a.Version, Look: a.standing, Tool: a.toolKnown(), Log: a.Log})
	}
	return a.watched.counts
}

// follow writes a line for each run that ends here. a.mu is held.
func (a *App) follow() {
	a.watched.follower = telemetry.Follow(telemetry.FollowOptions{Bus: a.bus, Log: a.Log, Version: a.Version, Env: a.Env, Began: a.runBegan})
}

// runBegan finds where the run of an event began.
func (a *App) runBegan(ctx context.Context, ev chat.Event) (chat.Event, error) {
	seqs, err := a.DB.Seqs(ctx, ev.Thread, chat.KindRunStarted, 0, ev.Seq, 1)
	if err != nil {
		return chat.Event{}, err
	}
	if len(seqs) == 0 {
		return chat.Event{}, fmt.Errorf("the start of run %s: %w", ev.Run, journal.ErrUnknown)
	}
	return a.DB.Event(ctx, ev.Thread, seqs[0])
}

// manyQuestions bounds how many open questions are counted: more are shown as this many.
const manyQuestions = 1000

// standing is what stands in the books now.
func (a *App) standing(ctx context.Context) (telemetry.Standing, error) {
	var s telemetry.Standing
	a.mu.Lock()
	e := a.engine
	a.mu.Unlock()
	if e != nil {
		s.Actors, s.Abandoned, s.Lost = e.Actors(), e.Abandoned(), e.Fenced()
	}
	threads, err := a.DB.Stirring(ctx)
	if err != nil {
		return s, err
	}
	for _, t := range threads {
		s.Queued += t.Waiting
		if t.Status == chat.Running {
			s.Running++
		}
	}
	asked, err := a.DB.Approvals(ctx, approval.Filter{State: approval.Open, Limit: manyQuestions})
	s.Approvals = len(asked)
	return s, err
}

// toolKnown reports whether a tool is one that the program brings along.
func (a *App) toolKnown() func(string) bool {
	names := sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		if b, err := a.service().bare(); err == nil {
			for _, spec := range b.tools.Specs() {
				out[spec.Name] = !strings.HasPrefix(spec.Name, "mcp__")
			}
		}
		return out
	})
	return func(name string) bool { return names()[name] }
}

// timed measures how long commits take.
type timed struct {
	engine.Journal
	counts *telemetry.Telemetry
}

var _ engine.Journal = timed{}

// Commit implements engine.Journal.
func (t timed) Commit(ctx context.Context, c journal.Commit) (journal.Committed, error) {
	began := time.Now()
	done, err := t.Journal.Commit(ctx, c)
	t.counts.Committed(time.Since(began), err)
	return done, err
}

// Arrive implements engine.Journal.
func (t timed) Arrive(ctx context.Context, in journal.Arrival) (journal.Arrived, error) {
	began := time.Now()
	done, err := t.Journal.Arrive(ctx, in)
	t.counts.Committed(time.Since(began), err)
	return done, err
}
