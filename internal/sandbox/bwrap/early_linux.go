package bwrap

import (
	"context"

	"chorus/internal/sandbox"
)

// StartEarly puts up the sandbox of a command that is likely to come, and returns when it waits for that. It does nothing
// where one waits already, and does not say when it fails: the command will. Of the command only what a sandbox depends
// on counts, and all of that is compared once more when it comes.
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
