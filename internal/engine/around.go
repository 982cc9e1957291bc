package engine

import (
	"time"

	"chorus/internal/chat"
	"chorus/internal/peernotify"
)

// A guest that may not run the thread itself rings at the neighbours; one that may rings
// when it finds the lock taken. So a run that nobody else has rings nowhere, and nobody is
// called to a prompt that its own process is about to take.

// forOthers reports whether words wait, as far as the log goes, that this process does not answer.
func (a *actor) forOthers() bool {
	return a.log.Run() == nil && len(a.log.Waiting()) > 0 && (a.engine.ctx.Err() != nil || !a.takes(a.log.Waiting()[0]))
}

// passOn rings when the thread was let go of and words wait in it for somebody else, who may
// have found it taken. Once for the same words: else two that both do not answer would ring for ever.
// An engine that stops may have dropped its log in the middle of reading: then it rings in case.
func (a *actor) passOn() {
	switch {
	case a.log == nil && a.engine.ctx.Err() != nil:
		a.engine.Neighbours.Notify(a.thread)
	case a.log != nil && a.log.Seq() > a.passed && a.forOthers():
		a.passed = a.log.Seq()
		a.engine.Neighbours.Notify(a.thread)
	}
}

// ringRest is how long rings gather after some were heard: a storm of them costs a hundred
// looks a second at most.
const ringRest = 10 * time.Millisecond

// listenAround opens the ear for other processes. Without one (a file system that has no
// sockets, a folder that cannot be written) the sweep sees what they do.
func (e *Engine) listenAround() *peernotify.Subscription {
	if e.Neighbours == nil || e.ctx.Err() != nil {
		return nil
	}
	ear, err := e.Neighbours.Subscribe()
	if err != nil {
		e.Log.Debug("other processes cannot ring here", "component", "engine", "event", "no_bell", "error", err)
		return nil
	}
	return ear
}

// hear looks where other processes rang, until it is time to look at everything; false
// when the engine stops.
func (e *Engine) hear(ear *peernotify.Subscription, tick <-chan time.Time) bool {
	rings := ear.Woken()
	var rested <-chan time.Time
	for {
		select {
		case <-e.ctx.Done():
			return false
		case <-tick:
			return true
		case <-rested:
			rings, rested = ear.Woken(), nil
		case <-rings:
			e.heard(ear.Take())
			rings, rested = nil, time.After(ringRest)
		}
	}
}

// heard lets everybody look who has to do with the threads.
func (e *Engine) heard(threads []chat.ThreadID, many bool) {
	if many {
		e.ringAll()
		e.stir()
		return
	}
	for _, thread := range threads {
		e.Bus.Stir(thread)
		if e.Adopt(thread) || e.Awake(thread) {
			e.Wake(thread)
		}
	}
	e.ringDesks()
}
