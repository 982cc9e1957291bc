package app

import (
	"context"
	"fmt"
	"os"

	"chorus/internal/await"
	"chorus/internal/gate"
	"chorus/internal/notice"
	tables "chorus/internal/store/documents"
)

// changedDocuments is the topic by which machines tell each other
// that settings, rules or agents have changed.
const changedDocuments = "documents"

// openDocuments updates the configuration of this home to the one of all
// machines on the database, before anything uses it.
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

// openMoreDocuments does the same for rules, agents and the like, whose checks need more of the program.
func (a *App) openMoreDocuments(ctx context.Context) error {
	err := a.notCompared(a.Settings.OpenMoreDocuments(ctx, a.sharedDatabase, gate.AllowedDocument()))
	a.Settings.Documents.Notify = func() { a.Peers().Notify(changedDocuments) }
	return err
}

// notCompared decides whether to go on if a home could not be compared with the database. A home that was
// equal before can continue with what it has; one that joins must not work without any rules.
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

// warnOfDocuments shows a warning to whoever is there and logs it.
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
			await.Notify(notified)
		}
	}()
	a.Settings.Documents.Watch(ctx, notified)
	<-done
}
