package engine

import (
	"context"
	"sync"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/owner"
)

// database is what a run that uses the journal waits for. It is the only wait that
// does not end a run: what could not be written is tried again.
const database = "the database"

// watchdog limits how long an actor waits. When a wait has lasted too long, its context is
// cancelled. An actor that ignores this is abandoned, like a process that died. There is one timer.
// It is reset only when a wait ends sooner than it would fire, and it is not set at rest.
type watchdog struct {
	bounds deadline.Bounds
	leave  func(*deadline.Stuck, *verdict) // abandons the actor

	mu     sync.Mutex
	cancel context.CancelCauseFunc // ends what the actor does now
	prompt int64                   // which prompt it answers
	run    func() string           // its current run; nil if there was none
	timer  *time.Timer
	fires  time.Time       // when the timer fires; zero if it is not set
	wait   deadline.Wait   // zero value: at rest
	since  time.Time       // when the wait began
	last   time.Time       // when there was last progress
	told   *deadline.Stuck // the wait that it was told to end
	left   bool            // the actor was abandoned
}

// waits begins another wait.
func (d *watchdog) waits(w deadline.Wait) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left {
		return
	}
	if d.told != nil { // it is ending, and writes that into the journal
		w.Quiet = min(w.Quiet, d.bounds.Store+d.bounds.Grace)
		w.Total = w.Quiet
	}
	d.wait, d.since = w, time.Now()
	d.last = d.since
	d.arm(d.since)
}

// progressed records that the wait made progress.
func (d *watchdog) progressed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = time.Now()
}

// rest ends the wait: there is nothing to wait for, or nothing with a limit.
func (d *watchdog) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait, d.told, d.fires = deadline.Wait{}, nil, time.Time{}
	if d.timer != nil {
		d.timer.Stop()
	}
}

// begin starts a piece of work that cancel ends.
func (d *watchdog) begin(cancel context.CancelCauseFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancel, d.prompt, d.run = cancel, 0, nil
}

// setPrompt sets which prompt is being answered and, if there is one, in which run.
func (d *watchdog) setPrompt(prompt int64, run func() string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prompt, d.run = prompt, run
	d.told = nil // that was another run
}

// setRun says how to find the run once the loop has begun.
func (d *watchdog) setRun(run func() string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.run = run
}

// expedite shortens a wait that somebody else cancelled to its grace period.
func (d *watchdog) expedite() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told == nil && d.wait.For != "" && !d.left {
		d.tellToEnd(time.Now())
	}
}

// gone reports whether the actor was abandoned. It may then no longer write.
func (d *watchdog) gone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// stuck returns what the actor was told to end.
func (d *watchdog) stuck() *deadline.Stuck {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told
}

// due returns when the wait will have lasted too long.
func (d *watchdog) due() time.Time {
	due := d.last.Add(d.wait.Quiet)
	if most := d.since.Add(d.wait.Total); d.wait.Total > 0 && most.Before(due) {
		return most
	}
	return due
}

// arm sets the timer, unless it already fires soon enough.
func (d *watchdog) arm(now time.Time) {
	due := d.due()
	if !d.fires.IsZero() && !due.Before(d.fires) {
		return
	}
	d.fires = due
	if d.timer == nil {
		d.timer = time.AfterFunc(due.Sub(now), d.fire)
		return
	}
	d.timer.Reset(due.Sub(now))
}

// tellToEnd notes that the wait was told to end, and gives it twice the
// grace period, because a tool has one of its own.
func (d *watchdog) tellToEnd(now time.Time) *deadline.Stuck {
	s := &deadline.Stuck{Wait: d.wait, After: now.Sub(d.last)}
	if d.wait.Total > 0 && now.Sub(d.since) >= d.wait.Total {
		s.After = now.Sub(d.since)
	}
	d.told = s
	d.since, d.last = now, now
	d.wait.Quiet, d.wait.Total = 2*d.bounds.Grace, 2*d.bounds.Grace
	d.arm(now)
	return s
}

// fire is called by the timer.
func (d *watchdog) fire() {
	d.mu.Lock()
	now := time.Now()
	d.fires = time.Time{}
	switch {
	case d.left || d.wait.For == "":
		d.mu.Unlock()
	case now.Before(d.due()):
		d.arm(now)
		d.mu.Unlock()
	case d.told == nil:
		s, cancel := d.tellToEnd(now), d.cancel
		d.mu.Unlock()
		cancel(s)
	default:
		d.left = true
		s, v := d.told, d.verdictOn(d.told)
		d.mu.Unlock()
		d.leave(s, v)
	}
}

// verdict says how a run ends whose actor was abandoned or told to end it.
type verdict struct {
	run    string // "" if none had begun
	prompt int64  // the prompt it was to begin with
	cause  *deadline.Stuck
}

// verdictOn returns how a run ends that waited too long, or nil if it continues.
func (d *watchdog) verdictOn(s *deadline.Stuck) *verdict {
	if s.For == database {
		return nil
	}
	v := &verdict{prompt: d.prompt, cause: s}
	if d.run != nil {
		v.run = d.run()
	}
	return v
}

// verdictOnEnded returns how a run ends that was told to end, and did.
func (d *watchdog) verdictOnEnded() *verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.verdictOn(d.told)
}

// abandon gives the thread to another actor, as if this one's process had died. The lock is
// released, and the next epoch fences off whatever this one still writes.
func (a *actor) abandon(s *deadline.Stuck, v *verdict) {
	e := a.engine
	a.lockHold.revoke(e.abandoned(s.For, "thread", a.thread, "waited", s.After))
	a.slot.Load().release()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer a.over.Do(e.wg.Done)
	if e.actors[a.thread] == a {
		delete(e.actors, a.thread)
	}
	if e.ctx.Err() != nil || e.actors[a.thread] != nil {
		return
	}
	next := e.newActor(a.thread)
	next.verdict = v
	next.wake()
	e.Bus.Publish(a.thread, bus.Note{Err: s})
}

// abandoned counts and logs a wait that does not end when cancelled. back
// removes it from the count if it ends after all.
func (e *Engine) abandoned(what string, args ...any) (back func()) {
	e.lost.Add(1)
	since := time.Now()
	args = append([]any{"component", "watchdog", "what", what}, args...)
	e.Log.Error("a wait did not end when it was cancelled, and was abandoned", append(args, "event", "wait_abandoned", "left", e.lost.Load())...)
	return func() {
		e.lost.Add(-1)
		e.Log.Info("an abandoned wait has ended", append(args, "event", "wait_ended", "after", time.Since(since).Round(time.Millisecond), "left", e.lost.Load())...)
	}
}

// Abandoned returns how many abandoned waits have not ended. Each holds a goroutine.
func (e *Engine) Abandoned() int { return int(e.lost.Load()) }

// lockHold is an actor's lock on its thread. The watchdog can take it away.
type lockHold struct {
	mu      sync.Mutex
	lock    owner.Held
	revoked bool   // there is no lock any more, and there will be none
	back    func() // reports that an abandoned actor has ended
}

// keep stores the lock. It returns false if it was too late, and has then released the lock.
func (g *lockHold) keep(l owner.Held) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.revoked {
		l.Release()
		return false
	}
	g.lock = l
	return true
}

// release releases the lock once.
func (g *lockHold) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lock != nil {
		g.lock.Release()
		g.lock = nil
	}
}

// revoke takes the lock away from an abandoned actor.
func (g *lockHold) revoke(back func()) {
	g.release()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.revoked, g.back = true, back
}

// ended reports that the actor's goroutine has ended.
func (g *lockHold) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.back != nil {
		g.back()
	}
}

// newActor creates a thread's actor. The caller holds the engine's lock.
func (e *Engine) newActor(thread chat.ThreadID) *actor {
	a := &actor{engine: e, thread: thread, wakeUp: make(chan struct{}, 1)}
	a.watchdog.bounds, a.watchdog.leave = e.Bounds, a.abandon
	e.actors[thread] = a
	e.wg.Add(1)
	go a.loop()
	return a
}
