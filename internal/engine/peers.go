package engine

import (
	"errors"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/peernotify"
)

// A process that may not run a thread itself notifies the others of what it wrote. A process that
// may run it does so only when it finds the thread locked. So nobody is notified of a run that does
// not concern them, or of a prompt that the writing process is about to take.

// pendingElsewhere reports whether, according to the log, words wait that this process does not answer.
func (a *actor) pendingElsewhere() bool {
	return a.log.Run() == nil && len(a.log.Waiting()) > 0 && (a.engine.ctx.Err() != nil || !a.takes(a.log.Waiting()[0]))
}

// passToPeers notifies other processes when the thread was released and words for one of them wait
// in it, since they may have found it locked. It does so once for the same words; otherwise two
// processes that both do not answer would notify each other forever. A stopping engine may have
// dropped its log while reading it, and then notifies to be safe.
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

// NotifyPeers tells other processes that something was written, if there is a way to tell them.
func (e *Engine) NotifyPeers(topic peernotify.Topic) {
	if e.Peers != nil {
		e.Peers.Notify(topic)
	}
}

// notifyWatchers tells watchers of the thread in other processes that it has new events.
func (e *Engine) notifyWatchers(thread chat.ThreadID) {
	if e.NotifyRuns {
		e.NotifyPeers(peernotify.Events(thread))
	}
}

// Relisted tells those who show lists of threads, here and in other processes,
// that a thread has a new title or place in them, or is gone.
func (e *Engine) Relisted(thread chat.ThreadID) {
	e.Bus.OthersWrote()
	e.notifyWatchers(thread)
}

// isElsewhere passes what this process wrote to those that have the
// thread's files, and says so if nobody has them.
func (a *actor) isElsewhere(why error) {
	if !a.news.Swap(false) {
		return
	}
	a.engine.NotifyPeers(peernotify.Thread(a.thread))
	if !errors.Is(why, ErrElsewhere) {
		a.engine.Bus.Publish(a.thread, bus.Note{Err: why})
	}
}

// peerPause is how long notifications are collected after the first. A
// storm of them costs at most a hundred checks a second.
const peerPause = 10 * time.Millisecond

// overviewPause is how long those who follow every thread are left alone after runs of other
// processes have written. Their checks are expensive, and runs write all the time.
const overviewPause = 200 * time.Millisecond

// subscribePeers receives the notifications of other processes. Where that is not possible (a file
// system without sockets, a read-only folder), the sweep sees what they do.
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

// waitForPeers reads what other processes wrote until the next sweep is
// due. It returns false when the engine stops.
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

// peersWrote wakes whoever follows the topics, and the actors of threads in which
// something waits. all means that there were too many to list, or some were lost. It
// reports whether threads grew that only their watchers were told of.
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
