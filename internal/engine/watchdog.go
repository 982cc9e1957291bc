package engine

import (
	"context"
	"sync"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/lockfile"
)

// database is what is waited for when a run is at the journal. It is the one wait
// that does not end a run: what could not be written is tried again.
const database = "the database"

// watchdog is the clock over what an actor waits for. When nothing has come of a wait
// within its bound, the actor is told to end it; one that does not even obey that is
// left behind, like a process that died. The clock is one timer, set anew only when a
// wait ends sooner than it would ring; nothing ticks, and at rest it is not set.
type watchdog struct {
	bounds deadline.Bounds
	leave  func(*deadline.Stuck, *verdict) // gives the actor up

	mu     sync.Mutex
	cancel context.CancelCauseFunc // ends what the actor does now
	prompt int64                   // what it does: answers this one
	run    func() string           // in this run; nil: none was on
	timer  *time.Timer
	rings  time.Time     // when the timer will; zero: it will not
	wait   deadline.Wait // nothing in it: at rest
	since  time.Time     // when the wait began
	last   time.Time     // when something last came of it
	told   *deadline.Stuck
	left   bool
}

// waits begins another wait.
func (d *watchdog) waits(w deadline.Wait) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left {
		return
	}
	if d.told != nil { // it is on its way out, and writes that down
		w.Quiet = min(w.Quiet, d.bounds.Store+d.bounds.Grace)
		w.Total = w.Quiet
	}
	d.wait, d.since = w, time.Now()
	d.last = d.since
	d.arm(d.since)
}

// beat says that something came of the wait.
func (d *watchdog) beat() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = time.Now()
}

// rest: nothing is waited for, or nothing that has a bound.
func (d *watchdog) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wait, d.told, d.rings = deadline.Wait{}, nil, time.Time{}
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

// about begins a run, or goes on with one.
func (d *watchdog) about(prompt int64, run func() string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prompt, d.run = prompt, run
	d.told = nil // that was another run
}

// looped says who knows the run once its loop is on.
func (d *watchdog) looped(run func() string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.run = run
}

// hurry: the wait was ended by somebody else and has only its grace left.
func (d *watchdog) hurry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told == nil && d.wait.For != "" && !d.left {
		d.order(time.Now())
	}
}

// gone reports that the actor was left behind: it may do nothing any more.
func (d *watchdog) gone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left
}

// stuck is what the actor was told to end.
func (d *watchdog) stuck() *deadline.Stuck {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told
}

// due is when the wait has lasted too long.
func (d *watchdog) due() time.Time {
	due := d.last.Add(d.wait.Quiet)
	if most := d.since.Add(d.wait.Total); d.wait.Total > 0 && most.Before(due) {
		return most
	}
	return due
}

// arm sets the timer, unless it rings soon enough.
func (d *watchdog) arm(now time.Time) {
	due := d.due()
	if !d.rings.IsZero() && !due.Before(d.rings) {
		return
	}
	d.rings = due
	if d.timer == nil {
		d.timer = time.AfterFunc(due.Sub(now), d.ring)
		return
	}
	d.timer.Reset(due.Sub(now))
}

// order notes that the wait was told to end, and gives it twice the grace: a tool has
// one for itself.
func (d *watchdog) order(now time.Time) *deadline.Stuck {
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

// ring is the timer's.
func (d *watchdog) ring() {
	d.mu.Lock()
	now := time.Now()
	d.rings = time.Time{}
	switch {
	case d.left || d.wait.For == "":
		d.mu.Unlock()
	case now.Before(d.due()):
		d.arm(now)
		d.mu.Unlock()
	case d.told == nil:
		s, cancel := d.order(now), d.cancel
		d.mu.Unlock()
		cancel(s)
	default:
		d.left = true
		s, v := d.told, d.judge(d.told)
		d.mu.Unlock()
		d.leave(s, v)
	}
}

// verdict is how a run ends whose actor was left behind, or told to end it.
type verdict struct {
	run    string // "": none had begun
	prompt int64  // the prompt it was to begin with
	cause  *deadline.Stuck
}

// judge makes a verdict of what was waited for in vain; nil: the run just goes on.
func (d *watchdog) judge(s *deadline.Stuck) *verdict {
	if s.For == database {
		return nil
	}
	v := &verdict{prompt: d.prompt, cause: s}
	if d.run != nil {
		v.run = d.run()
	}
	return v
}

// ordered is the verdict on work that was told to end, and did.
func (d *watchdog) ordered() *verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.judge(d.told)
}

// abandon gives the thread to another actor, as if this one's process had died: the
// lock is let go, and the next epoch fences whatever this one still writes.
func (a *actor) abandon(s *deadline.Stuck, v *verdict) {
	e := a.engine
	a.grip.loosen(e.abandoned(s.For, "thread", a.thread, "waited", s.After))
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
	next.ring()
	e.Bus.Ring(a.thread, bus.Note{Err: s})
}

// abandoned counts and logs something that does not end when it is told to. back takes
// it off the count when it ends after all.
func (e *Engine) abandoned(what string, args ...any) (back func()) {
	e.lost.Add(1)
	since := time.Now()
	args = append([]any{"component", "watchdog", "what", what}, args...)
	e.Log.Error("something did not end when it was told to, and was left behind", append(args, "event", "wait_abandoned", "left", e.lost.Load())...)
	return func() {
		e.lost.Add(-1)
		e.Log.Info("something that was left behind has ended", append(args, "event", "wait_ended", "after", time.Since(since).Round(time.Millisecond), "left", e.lost.Load())...)
	}
}

// Abandoned is how many waits are left behind now: each holds a goroutine until
// whatever it waits for lets go.
func (e *Engine) Abandoned() int { return int(e.lost.Load()) }

// grip is an actor's hold on its thread's lock, which the watchdog can loosen.
type grip struct {
	mu    sync.Mutex
	lock  *lockfile.Lock
	loose bool   // nothing is held any more, and nothing will be
	back  func() // says that a loosened actor has ended
}

// keep holds on to a lock; false: too late, and it was let go.
func (g *grip) keep(l *lockfile.Lock) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.loose {
		l.Release()
		return false
	}
	g.lock = l
	return true
}

// release lets the lock go, once.
func (g *grip) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lock != nil {
		g.lock.Release()
		g.lock = nil
	}
}

// loosen takes the lock away from an actor that was left behind.
func (g *grip) loosen(back func()) {
	g.release()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.loose, g.back = true, back
}

// ended is the actor's last word.
func (g *grip) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.back != nil {
		g.back()
	}
}

// newActor makes a thread's actor. The engine's lock is held.
func (e *Engine) newActor(thread chat.ThreadID) *actor {
	a := &actor{engine: e, thread: thread, bell: make(chan struct{}, 1)}
	a.dog.bounds, a.dog.leave = e.Bounds, a.abandon
	e.actors[thread] = a
	e.wg.Add(1)
	go a.live()
	return a
}
