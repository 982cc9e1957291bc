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

// telemetryParts is the telemetry of an App.
type telemetryParts struct {
	counts   *telemetry.Telemetry // nil: nothing is counted
	follower *telemetry.Follower  // nil until something runs
}

// flushTime is how long the end waits for a collector to take the last spans.
const flushTime = 3 * time.Second

// close ends the telemetry and sends pending spans.
func (w *telemetryParts) close() {
	if w.counts != nil {
		w.counts.Close()
	}
	if w.follower != nil {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		w.follower.Close(ctx)
	}
}

// Telemetry returns the counters of this process, for a scraper. A server calls it before anything
// else starts, so that all commits are timed; other commands do not pay for it.
func (a *App) Telemetry() *telemetry.Telemetry {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.telemetry.counts == nil {
		a.telemetry.counts = telemetry.New(telemetry.Options{Bus: a.Bus, Version: a.Version, Snapshot: a.snapshot, BuiltInTool: a.builtInTool(), Log: a.Log})
	}
	return a.telemetry.counts
}

// followRuns logs a line for each run that ends in this process. The caller holds a.mu.
func (a *App) followRuns() {
	a.telemetry.follower = telemetry.Follow(telemetry.FollowOptions{Bus: a.Bus, Log: a.Log, Version: a.Version, Env: a.Env, RunStart: a.runStart})
}

// runStart finds the start of an event's run.
func (a *App) runStart(ctx context.Context, ev chat.Event) (chat.Event, error) {
	seqs, err := a.DB.Seqs(ctx, ev.Thread, chat.KindRunStarted, 0, ev.Seq, 1)
	if err != nil {
		return chat.Event{}, err
	}
	if len(seqs) == 0 {
		return chat.Event{}, fmt.Errorf("the start of run %s: %w", ev.Run, journal.ErrUnknown)
	}
	return a.DB.Event(ctx, ev.Thread, seqs[0])
}

// maxPending is how many pending approvals are counted; more are shown as this many.
const maxPending = 1000

// snapshot counts what is in the database and the engine now.
func (a *App) snapshot(ctx context.Context) (telemetry.Snapshot, error) {
	var s telemetry.Snapshot
	a.mu.Lock()
	e := a.Running()
	a.mu.Unlock()
	if e != nil {
		s.Actors, s.Abandoned, s.Lost = e.Actors(), e.Abandoned(), e.Fenced()
	}
	threads, err := a.DB.ActiveThreads(ctx)
	if err != nil {
		return s, err
	}
	for _, t := range threads {
		s.Queued += t.Waiting
		if t.Status == chat.Running {
			s.Running++
		}
	}
	asked, err := a.DB.Approvals(ctx, approval.Filter{State: approval.Open, Limit: maxPending})
	s.Approvals = len(asked)
	return s, err
}

// builtInTool reports whether a tool comes with the program.
func (a *App) builtInTool() func(string) bool {
	names := sync.OnceValue(func() map[string]bool {
		out := map[string]bool{}
		if b, err := a.Service.Handler().BareToolbox(); err == nil {
			for _, spec := range b.Tools.Specs() {
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

func (t timed) Commit(ctx context.Context, c journal.Commit) (journal.Committed, error) {
	began := time.Now()
	done, err := t.Journal.Commit(ctx, c)
	t.counts.Committed(time.Since(began), err)
	return done, err
}

func (t timed) Arrive(ctx context.Context, in journal.Arrival) (journal.Arrived, error) {
	began := time.Now()
	done, err := t.Journal.Arrive(ctx, in)
	t.counts.Committed(time.Since(began), err)
	return done, err
}
