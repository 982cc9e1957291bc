package engine

import (
	"context"
	"time"

	"chorus/internal/agent/deadline"
	"chorus/internal/peernotify"
)

// Drain hands over all threads. Each is released at its next commit, running tools
// get at most the given time to finish, and other processes are notified of each
// free thread. Nothing begins here until Resume.
func (e *Engine) Drain(tools time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.endRun(&deadline.Stopping{Tools: tools})
	for _, a := range e.actors {
		a.wake() // idle actors hold nothing, but may have words for others
	}
}

// Resume lets threads run here again.
func (e *Engine) Resume() {
	e.mu.Lock()
	if e.runs.Err() != nil && e.ctx.Err() == nil {
		e.runs, e.endRun = context.WithCancelCause(e.ctx)
	}
	e.mu.Unlock()
	e.LookAgain()
}

// running returns the context of what runs.
func (e *Engine) running() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs
}

// draining reports whether threads are being handed over while the engine keeps running.
func (e *Engine) draining() bool { return e.ctx.Err() == nil && e.running().Err() != nil }

// handedOver notifies other processes of a thread that they may take.
func (e *Engine) handedOver(a *actor) { e.NotifyPeers(peernotify.Thread(a.thread)) }
