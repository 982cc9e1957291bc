package bwrap

import (
	"context"

	"chorus/internal/sandbox"
)

// StartEarly starts the sandbox of a command that is likely to come, and returns when the sandbox waits for
// it. It does nothing if one is already waiting. It reports no failure: the command will. Only the parts of
// the command that the sandbox depends on matter, and all of them are compared again when the command comes.
func (e *Executor) StartEarly(ctx context.Context, command sandbox.Command) {
	a, err := e.attempt(command)
	if err != nil {
		return
	}
	defer a.view.release()
	a.view.lookAgain()
	place := a.place()
	if !e.pool.wants(place, a.key) {
		return
	}
	a.ctx = ctx
	if i, err := a.start(); err == nil {
		e.pool.putNew(place, i)
	}
}
