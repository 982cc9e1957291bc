package app

import (
	"context"
	"fmt"
	"os"

	"chorus/internal/gate"
	"chorus/internal/notice"
	tables "chorus/internal/store/documents"
)

// changedDocuments is what machines tell each other when settings, rules or agents change.
const changedDocuments = "documents"

// openDocuments makes the configuration of this home the one of all machines on the database, before anything is made of it.
func (a *App) openDocuments(ctx context.Context) error {
	changed, err := a.Settings.OpenDocuments(ctx, tables.New(a.DB), a.sharedDatabase, a.warnOfDocuments)
	if err := a.notCompared(err); err != nil {
		return err
	}
	if changed {
		return a.readConfig()
	}
	return nil
}

// openMoreDocuments does so for rules, agents and the like, which need more of the program to be judged.
func (a *App) openMoreDocuments(ctx context.Context) error {
	err := a.notCompared(a.Settings.OpenMoreDocuments(ctx, a.sharedDatabase, gate.AllowedDocument()))
	a.Settings.Documents.Notify = func() { a.Peers().Notify(changedDocuments) }
	return err
}

// notCompared weighs why a home could not be compared with the database: one that has been equal before can go on with what it
// has, one that joins must not work by no rules at all.
func (a *App) notCompared(err error) error {
	if err == nil {
		return nil
	}
	if _, missing := os.Stat(a.Home.DocumentNotes()); missing != nil {
		return fmt.Errorf("compare %s with the database: %w", a.Home.Dir(), err)
	}
	a.warnOfDocuments("this home could not be compared with the database, so it goes on with the files that it has: " + err.Error())
	return nil
}

// warnOfDocuments says something to whoever is there, and writes it down.
func (a *App) warnOfDocuments(text string) {
	a.Log.Warn(text, "component", "documents")
	if !a.Notices.Post(notice.Notice{Text: text, Bad: true}) {
		a.Warn(text)
	}
}

// followDocuments keeps files and database equal until ctx ends.
func (a *App) followDocuments(ctx context.Context) {
	if err := a.Settings.TakeOverContexts(ctx); err != nil && ctx.Err() == nil {
		a.Log.Warn("saved contexts were not taken over: "+err.Error(), "component", "documents")
	}
	changes := a.Bus.SubscribeTopic(changedDocuments)
	defer changes.Close()
	notified := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-changes.Wake():
				changes.Take() // which ones does not matter
			}
			select {
			case notified <- struct{}{}:
			default:
			}
		}
	}()
	a.Settings.Documents.Watch(ctx, notified)
	<-done
}
