package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/agent"
	"chorus/internal/agent/deadline"
	"chorus/internal/await"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/owner"
	"chorus/internal/peernotify"
	"chorus/internal/transcript"
)

// snapshotEvery is how many events may follow the last snapshot at a run's end. Folding 200
// takes a few milliseconds; the cost of a snapshot grows with the window.
const snapshotEvery = 200

// actor runs one thread in this process. It has one goroutine while there is
// something to do or it was busy lately, and none otherwise.
type actor struct {
	engine *Engine
	thread chat.ThreadID
	wakeUp chan struct{} // buffer of one
	news   atomic.Bool   // this process wrote to the thread, and the process that runs it may not know

	log      *transcript.Log
	passed   int64 // last event up to which other processes were notified of words for them
	snapshot int64 // event of the last snapshot
	failures int   // failures in a row, for the pause before the next attempt

	watchdog watchdog
	lockHold lockHold
	slot     atomic.Pointer[slot] // of the current or next run; nil if none was requested
	queued   atomic.Bool          // it waits for its slot
	verdict  *verdict             // how to end the run in which the previous actor was stuck
	over     sync.Once            // tells the engine once that it need not wait for this actor

	liveMu  sync.Mutex
	partial liveText
}

// liveText is the unfinished answer, for readers that join late.
type liveText struct {
	run            string
	step, attempt  int
	text, thinking []byte
}

// held reports whether the text is not shown yet because it may become a silent answer.
func (t *liveText) held() bool { return chat.MayBeSilent(string(t.text[:min(len(t.text), 64)])) }

// wake makes the actor look for work.
func (a *actor) wake() { await.Notify(a.wakeUp) }

// loop works whenever it is woken. It ends after being idle for long, when the
// thread waits for an approval, or when another process has it.
func (a *actor) loop() {
	e := a.engine
	defer a.lockHold.ended()
	defer a.over.Do(e.wg.Done)
	idle := time.NewTimer(e.idleAfter())
	defer idle.Stop()
	for {
		select {
		case <-e.ctx.Done():
			a.leave(true)
			return
		case <-a.wakeUp:
			stay := a.work()
			if a.watchdog.gone() || !stay && a.leave(false) {
				return
			}
			idle.Reset(e.idleAfter())
		case <-idle.C:
			if a.leave(false) {
				return
			}
			idle.Reset(e.idleAfter())
		}
	}
}

// leave removes the actor from the engine, unless it was woken meanwhile.
func (a *actor) leave(always bool) bool {
	e := a.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.actors[a.thread] != a {
		return true // abandoned: another actor has the thread
	}
	if !always && len(a.wakeUp) > 0 {
		return false
	}
	delete(e.actors, a.thread)
	return true
}

// waits tells the watchdog what the actor is about to wait for.
func (a *actor) waits(what string, most time.Duration) {
	a.watchdog.waits(deadline.Wait{For: what, Quiet: most})
}

// waitsForStore gives a commit time to fail by itself.
func (a *actor) waitsForStore() { a.waits(database, a.engine.Bounds.Store+a.engine.Bounds.Grace/2) }

// work takes the thread and continues until nothing can be done now. It
// reports whether the actor should stay for the next words.
func (a *actor) work() (stay bool) {
	e := a.engine
	ctx, cancel := context.WithCancelCause(e.running())
	defer cancel(nil)
	if ctx.Err() != nil { // other processes handle it
		a.engine.handedOver(a)
		return false
	}
	a.watchdog.begin(cancel)
	defer a.watchdog.rest()
	a.waitsForStore()
	row, err := e.Journal.Thread(ctx, a.thread)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return false
	case err != nil:
		return a.retryLater(ctx, err)
	case row.Status != chat.Running && !row.Wake:
		return row.Status != chat.Waiting && row.Status != chat.Delegated // nothing to do; a suspended thread needs no actor
	case row.Status != chat.Running && a.verdict == nil && a.log != nil && a.log.Seq()+1 == row.Next && a.pendingElsewhere():
		return true // taking the lock for nothing would block other processes
	}
	if e.Here != nil {
		a.waits("a check of where its files are", e.Bounds.Store) // they may be on a network disk
		if err := e.Here(row); err != nil {
			a.isElsewhere(err)
			return false
		}
	}
	defer func() { a.slot.Load().release() }()
	if run, stay := a.awaitSlot(ctx, row); !run {
		return stay
	}
	a.waits("the thread's lock", e.Bounds.Store)
	news := a.news.Swap(false)
	held, err := e.Owner.Take(ctx, owner.Thread(a.thread))
	if errors.Is(err, owner.ErrHeld) || errors.Is(err, owner.ErrDraining) {
		if news {
			e.NotifyPeers(peernotify.Thread(a.thread))
		}
		return false // whoever has it sees the same events
	}
	if err != nil {
		return a.retryLater(ctx, err)
	}
	if !a.lockHold.keep(held) {
		return false
	}
	defer a.passToPeers()
	defer a.lockHold.release()
	defer a.endWhenLost(held, cancel)()
	a.waitsForStore()
	if row, err = e.Journal.Take(ctx, a.thread); err != nil {
		return a.retryLater(ctx, err)
	}
	for {
		if stay, again := a.step(ctx, row); !again {
			return stay
		}
		if e.slots.contended() { // others wait, so this conversation continues when it is its turn again
			a.wake()
			return true
		}
	}
}

// endWhenLost ends what runs as soon as the thread is lost; its new owner continues from the
// journal. Tools get no grace period, and a run that does not end is abandoned.
func (a *actor) endWhenLost(held owner.Held, cancel context.CancelCauseFunc) (stop func() bool) {
	lost := held.Context()
	if lost.Done() == nil { // it cannot be lost
		return func() bool { return true }
	}
	return context.AfterFunc(lost, func() {
		cause := context.Cause(lost)
		a.engine.Log.Warn("a thread was lost while it ran here: "+cause.Error(), "component", "engine", "event", "thread_lost", "thread", a.thread)
		cancel(fmt.Errorf("%w: %w", deadline.ErrStopping, cause))
		a.watchdog.expedite()
	})
}

// step runs the loop once, or carries out a verdict. again means that there may be more to do.
func (a *actor) step(ctx context.Context, row journal.Thread) (stay, again bool) {
	e := a.engine
	err := a.catchUp(ctx)
	if err == nil {
		err = a.carryOut(ctx, row)
	}
	if err != nil {
		return a.retryLater(ctx, err), false
	}
	if a.log.Run() == nil && (len(a.log.Waiting()) == 0 || !a.takes(a.log.Waiting()[0])) {
		a.save()
		return true, false
	}
	state, err := a.runOnce(ctx, row)
	switch {
	case errors.Is(err, journal.ErrFenced):
		if !a.watchdog.gone() { // otherwise our own watchdog ended it
			e.fenced.Add(1)
		}
		a.log = nil
		return false, false
	case e.ctx.Err() != nil:
		a.save()
		return false, false
	case errors.Is(context.Cause(ctx), owner.ErrLost):
		e.fenced.Add(1)
		a.log = nil
		return false, false
	case e.draining():
		a.save()
		return false, false
	case ctx.Err() != nil: // stuck: the rest is done with a new context
		if err != nil {
			a.verdict = a.watchdog.verdictOnEnded()
		}
		switch {
		case err != nil && a.verdict == nil:
			return a.retryLater(ctx, err), false
		case err == nil && state != agent.Finished: // it made progress after all
			e.Bus.Publish(a.thread, bus.Note{Err: context.Cause(ctx)})
		}
		a.log = nil
		a.wake()
		return true, false
	case err != nil:
		return a.retryLater(ctx, err), false
	}
	a.failures = 0
	if state == agent.Suspended {
		before := a.log.Seq()
		if err := a.catchUp(ctx); err != nil {
			return a.retryLater(ctx, err), false
		}
		if a.log.Seq() == before {
			a.save()
			return false, false
		}
	}
	a.save()
	return true, true
}

// carryOut ends the run, or answers the prompt, in which the previous actor was stuck.
func (a *actor) carryOut(ctx context.Context, row journal.Thread) error {
	v := a.verdict
	if v == nil {
		return nil
	}
	run, waiting := a.log.Run(), a.log.Waiting()
	if run != nil && run.ID == v.run || run == nil && v.run == "" && len(waiting) > 0 && waiting[0].Seq == v.prompt {
		a.engine.Log.Error("run stuck", "component", "watchdog", "event", "run_stuck", "thread", a.thread, "run", v.run, "error", v.cause)
		if err := agent.Fail(ctx, a.log, newHost(a, Setup{}, row), id.New(), v.cause); err != nil {
			return err
		}
	}
	a.verdict = nil
	return nil
}

func (a *actor) takes(w transcript.Waiting) bool {
	return a.engine.Takes == nil || a.engine.Takes(a.thread, w)
}

// running returns a function that gives the current run's id, or nil if there is no run.
func (a *actor) running() func() string {
	run := a.log.Run()
	if run == nil {
		return nil
	}
	id := run.ID
	return func() string { return id }
}

// due describes the work of the next run.
func (a *actor) due() Work {
	if run := a.log.Run(); run != nil {
		return Work{run.Terms, run.Seq, a.senders()}
	}
	w := a.log.Waiting()[0]
	return Work{w.Terms, w.Seq, []transcript.Sender{{Principal: w.Principal, Terms: w.Terms, Seq: w.Seq}}}
}

// senders returns everybody whose words the run has taken, or whoever began it if it has taken none.
func (a *actor) senders() []transcript.Sender {
	run := a.log.Run()
	switch {
	case run == nil:
		return nil
	case len(run.Senders) == 0:
		return []transcript.Sender{{Principal: run.Principal, Terms: run.Terms, Seq: run.Seq}}
	default:
		return slices.Clone(run.Senders)
	}
}

// retryLater tells watchers what could not be written, and tries again after a pause. A full
// disk or a lost database connection is no reason to abandon a run.
func (a *actor) retryLater(ctx context.Context, err error) bool {
	e := a.engine
	if e.ctx.Err() != nil || a.watchdog.gone() || errors.Is(err, journal.ErrFenced) || errors.Is(context.Cause(ctx), owner.ErrLost) || e.draining() {
		a.log = nil
		return false
	}
	if s := a.watchdog.stuck(); s != nil && ctx.Err() != nil {
		err = s
	}
	a.watchdog.rest() // this pause is intended
	e.Log.Error("thread stopped", "component", "engine", "event", "thread_stopped", "thread", a.thread, "error", err)
	e.Bus.Publish(a.thread, bus.Note{Err: err})
	a.log = nil // folded again from what is really in the journal
	a.failures++
	pause := min(time.Second<<min(a.failures, 5), 30*time.Second)
	if await.For(e.ctx, pause) {
		a.wake()
	}
	return true
}

// catchUp folds the events that the log does not have yet. Without a log it starts from the last snapshot.
func (a *actor) catchUp(ctx context.Context) error {
	e := a.engine
	a.waitsForStore()
	if a.log == nil {
		log, err := Load(ctx, e.Journal, a.thread)
		if err != nil {
			return err
		}
		a.log, a.snapshot = log, log.Seq()
	}
	return fold(ctx, e.Journal, a.thread, a.log, a.waitsForStore)
}

// Load returns the log as of the thread's last snapshot. Use Fold to add the rest.
func Load(ctx context.Context, j Reader, thread chat.ThreadID) (*transcript.Log, error) {
	blob := func(hash string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline.Defaults().Store)
		defer cancel()
		data, err := j.Blob(ctx, hash)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%s did not answer within %s: %w", database, deadline.Defaults().Store, err)
		}
		return data, err
	}
	snap, err := j.Snapshot(ctx, thread, transcript.Codec)
	if err == nil {
		if log, err := transcript.Restore(snap.State, blob); err == nil {
			return log, nil
		}
		// An unreadable snapshot costs time but loses nothing.
		return transcript.New(blob), nil
	}
	if errors.Is(err, journal.ErrUnknown) {
		return transcript.New(blob), nil
	}
	return nil, err
}

// Fold brings a log up to the journal's last event.
func Fold(ctx context.Context, j Reader, thread chat.ThreadID, log *transcript.Log) error {
	return fold(ctx, j, thread, log, func() {})
}

// page is how many events are read at a time.
const page = 500

// fold calls before ahead of each page it reads.
func fold(ctx context.Context, j Reader, thread chat.ThreadID, log *transcript.Log, before func()) error {
	for {
		before()
		events, err := j.Events(ctx, thread, log.Seq(), page)
		if err != nil {
			return err
		}
		for _, ev := range events {
			if err := log.Apply(ev); err != nil {
				return err
			}
		}
		if len(events) < page {
			return nil
		}
	}
}

// save writes a snapshot if enough events follow the last one. A failure does no harm.
func (a *actor) save() {
	if a.log == nil || a.log.Seq()-a.snapshot < snapshotEvery {
		return
	}
	data, err := a.log.Snapshot()
	if err != nil {
		a.engine.Log.Warn("could not make a snapshot", "component", "engine", "thread", a.thread, "error", err)
		return
	}
	a.waitsForStore()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.engine.ctx), a.engine.Bounds.Store)
	defer cancel()
	err = a.engine.Journal.SaveSnapshot(ctx, journal.Snapshot{Thread: a.thread, Seq: a.log.Seq(), Codec: transcript.Codec, State: data})
	if err != nil {
		a.engine.Log.Warn("could not keep a snapshot", "component", "engine", "thread", a.thread, "error", err)
		return
	}
	a.snapshot = a.log.Seq()
}
