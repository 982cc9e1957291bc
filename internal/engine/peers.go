package engine

import (
	"errors"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/peernotify"
)

// A process that may not run a thread itself notifies the others of what it wrote; one that
// may does so only when it finds the thread locked. So nobody is notified of a run that is no
// concern of theirs, or of a prompt that the writing process is about to take.

// pendingElsewhere reports whether words wait, as far as the log goes, that this process does
// not answer.
func (a *actor) pendingElsewhere() bool {
	return a.log.Run() == nil && len(a.log.Waiting()) > 0 && (a.engine.ctx.Err() != nil || !a.takes(a.log.Waiting()[0]))
}

// passToPeers notifies other processes when the thread was released and words wait in it for one
// of them, which may have found it locked. Once for the same words: else two processes that both do
// not answer would notify each other for ever. An engine that stops may have dropped its log in the
// middle of reading: then it notifies to be safe.
func (a *actor) passToPeers() {
	switch {
	case a.engine.draining():
		a.engine.handedOver(a)
	case a.log == nil && a.engine.ctx.Err() != nil:
		a.engine.NotifyPeers(peernotify.Thread(a.thread))
	case a.log != nil && a.log.Seq() > a.passed && a.pendingElsewhere():
		a.passed = a.log.Seq()
		a.engine.NotifyPeers(peernotify.Thread(a.thread))
	}
}

// NotifyPeers tells other processes that something was written, if any can be told.
func (e *Engine) NotifyPeers(topic peernotify.Topic) {
	if e.Peers != nil {
		e.Peers.Notify(topic)
	}
}

// notifyWatchers tells whoever watches the thread in another process that it has new events.
func (e *Engine) notifyWatchers(thread chat.ThreadID) {
	if e.NotifyRuns {
		e.NotifyPeers(peernotify.Events(thread))
	}
}

// Relisted tells those who show lists of threads, here and in other processes, that one has another title or place in them, or is gone.
func (e *Engine) Relisted(thread chat.ThreadID) {
	e.Bus.OthersWrote()
	e.notifyWatchers(thread)
}

// isElsewhere passes what this process wrote to those that have the thread's files, and says so where nobody has them.
func (a *actor) isElsewhere(why error) {
	if !a.news.Swap(false) {
		return
	}
	a.engine.NotifyPeers(peernotify.Thread(a.thread))
	if !errors.Is(why, ErrElsewhere) {
		a.engine.Bus.Publish(a.thread, bus.Note{Err: why})
	}
}

// peerPause is how long notifications gather after some came: a storm of them costs at most
// a hundred looks a second.
const peerPause = 10 * time.Millisecond

// overviewPause is how long those who follow every thread are left alone after other processes' runs have written: they
// look at much, and runs write all the time.
const overviewPause = 200 * time.Millisecond

// subscribePeers receives the notifications of other processes. Where that cannot be (a file
// system without sockets, a folder that cannot be written) the sweep sees what they do.
func (e *Engine) subscribePeers() *peernotify.Subscription {
	if e.Peers == nil || e.ctx.Err() != nil {
		return nil
	}
	peers, err := e.Peers.Subscribe()
	if err != nil {
		e.Log.Debug("other processes cannot notify this one", "component", "engine", "event", "no_peer_notifications", "error", err)
		return nil
	}
	return peers
}

// waitForPeers looks at what other processes wrote, until it is time for the
// next sweep; false when the engine stops.
func (e *Engine) waitForPeers(peers *peernotify.Subscription, tick <-chan time.Time) bool {
	woken := peers.Woken()
	var paused, overview <-chan time.Time
	defer func() {
		if overview != nil {
			e.Bus.OthersWrote()
		}
	}()
	for {
		select {
		case <-e.ctx.Done():
			return false
		case <-tick:
			return true
		case <-paused:
			woken, paused = peers.Woken(), nil
		case <-overview:
			e.Bus.OthersWrote()
			overview = nil
		case <-woken:
			if grew := e.peersWrote(peers.Take()); grew && overview == nil {
				overview = time.After(overviewPause)
			}
			woken, paused = nil, time.After(peerPause)
		}
	}
}

// peersWrote wakes whoever follows the topics, and the actors of threads in which something waits; all: there were too
// many to list, or some were lost. It reports whether threads grew of which only their watchers were told.
func (e *Engine) peersWrote(topics []peernotify.Topic, all bool) (grew bool) {
	if all {
		e.wakeAll()
		e.wakeActive()
		return false
	}
	for _, topic := range topics {
		thread, watched := topic.Thread()
		switch {
		case thread == "":
			e.Bus.TopicChanged(string(topic))
		case watched:
			e.Bus.TopicChanged(string(thread))
			grew = true
		default:
			e.Bus.ThreadChanged(thread)
			if e.adopts(thread) || e.Awake(thread) {
				e.Wake(thread)
			}
		}
	}
	return grew
}
