package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"chorus/internal/bus"
)

// databaseChanged handles that the database can no longer be written, or can be
// written again. It logs that and tells whoever follows a session.
func (a *App) databaseChanged(err error) {
	if err == nil {
		a.Log.Info("the database can be written again", "component", "store", "event", "database_recovered")
		return
	}
	a.Log.Error("the database cannot be written: "+err.Error(), "component", "store", "event", "database_failed")
	a.Notices.WarnOnce("the database cannot be written: " + err.Error()) // the log may be on the same disk
	a.Bus.PublishAll(bus.Note{Err: err})
}

// checkTime is how long a server reads its database at the start, in search of damage. That may
// not cover a very big database; `chorus doctor --thorough` reads the rest.
const checkTime = time.Minute

// checkDatabase finds damage before somebody's message does; from then on posts are refused. It runs
// alongside the server until it is done or the returned function is called.
func (a *App) checkDatabase(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	var looking sync.WaitGroup
	looking.Go(func() { a.lookForDamage(ctx) })
	return func() { cancel(); looking.Wait() }
}

func (a *App) lookForDamage(ctx context.Context) {
	if err := a.DB.CheckPages(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		a.Log.Error("the database was checked: "+err.Error(), "component", "store", "event", "database_checked")
	}
}
