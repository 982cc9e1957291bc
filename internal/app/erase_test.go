package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/store"
	"chorus/internal/store/audit"
)

// converse makes a conversation with a file that was attached and one in the folder that it works in.
func converse(t *testing.T, a *App, thread chat.ThreadID) {
	t.Helper()
	scratch, err := a.Home.Ensure(a.Home.Scratch(thread))
	if err != nil {
		t.Fatal(err)
	}
	said := chat.Event{Thread: thread, Who: "local:ada", Platform: "local", PlatformID: thread.Thread(), Body: chat.Received{Blocks: chat.TextBlocks("my heliotrope words"), Principal: admin(a).Principal}}
	if _, err := a.DB.Commit(t.Context(), journal.Commit{Thread: thread, Create: &journal.Thread{Dir: scratch, Owner: admin(a).Principal}, Events: []chat.Event{said}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Service.StoreAttachment(t.Context(), thread, "notes.txt", strings.NewReader("heliotrope notes")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(scratch, "made.txt"), "heliotrope file")
}

// A deleted conversation can be brought back for 30 days. Then everything of it is gone, on all machines.
func TestDeletedConversationsAreErased(t *testing.T) { onBoth(t, deletedConversationsAreErased) }

func deletedConversationsAreErased(t *testing.T, database string) {
	a, b := openNodes(t, database)
	ctx, ops := t.Context(), a.Service.Operations()
	const thread, fork = chat.ThreadID("web:main:one@chorus"), chat.ThreadID("web:main:two@chorus")
	converse(t, b, thread)
	if _, err := operations.SaveContext.Call(ctx, b.Service.Operations(), admin(b), operations.NewContext{ID: string(thread)}); err != nil {
		t.Fatal(err)
	}
	const beside = chat.ThreadID("web:main:beside@chorus")
	said := chat.Event{Thread: beside, Who: "local:ada", Platform: "local", PlatformID: "beside", Body: chat.Received{Blocks: chat.TextBlocks("other words"), Principal: admin(a).Principal}}
	if _, err := a.DB.Commit(ctx, journal.Commit{Thread: beside, Create: &journal.Thread{Dir: a.Home.Scratch(beside), Owner: admin(a).Principal}, Events: []chat.Event{said}}); err != nil {
		t.Fatal(err)
	}
	kept, err := operations.SaveContext.Call(ctx, ops, admin(a), operations.NewContext{ID: string(beside)})
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := operations.DeleteSession.Call(ctx, ops, admin(a), operations.SessionDeletion{ID: string(thread)})
	if err != nil || deleted.Until.Sub(deleted.At) < 29*24*time.Hour {
		t.Fatalf("%+v, %v", deleted, err)
	}
	list, err := operations.ListSessions.Call(ctx, ops, admin(a), operations.SessionQuery{Listing: "deleted"})
	if err != nil || len(list.Items) != 1 || !list.Items[0].Until.Equal(deleted.Until) {
		t.Fatalf("%+v, %v", list.Items, err)
	}
	sweep := func(at time.Time, want int) {
		t.Helper()
		if n, err := a.Service.EraseDeleted(ctx, at); n != want || err != nil {
			t.Errorf("%d were erased, %v; want %d", n, err, want)
		}
	}
	sweep(deleted.Until.Add(-time.Second), 0)
	if _, err := operations.RestoreSession.Call(ctx, ops, admin(a), operations.DeletedSessionRef{ID: string(thread)}); err != nil {
		t.Fatal(err)
	}
	sweep(deleted.Until.AddDate(1, 0, 0), 0) // it is back
	if deleted, err = operations.DeleteSession.Call(ctx, ops, admin(a), operations.SessionDeletion{ID: string(thread)}); err != nil {
		t.Fatal(err)
	}

	// Whoever began is killed: nobody can bring it back, and the next one finishes.
	if all, err := a.DB.BeginErasing(ctx, thread); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if _, err := operations.RestoreSession.Call(ctx, ops, admin(a), operations.DeletedSessionRef{ID: string(thread)}); operation.KindOf(err) != operation.NotFound {
		t.Errorf("half of it came back: %v", err)
	}
	sweep(deleted.Until, 1)
	sweep(deleted.Until.AddDate(1, 0, 0), 0) // and nothing is left to be done

	if n, err := a.DB.Count(ctx, `SELECT count(*) FROM events WHERE body LIKE '%heliotrope%'`); n != 0 || err != nil {
		t.Errorf("%d events have the words, %v", n, err)
	}
	if n, err := a.DB.Count(ctx, `SELECT count(*) FROM memos WHERE key LIKE ? OR value LIKE ?`, string(thread)+"%", "%"+string(thread)+"%"); n != 0 || err != nil {
		t.Errorf("%d memos are about it, %v", n, err)
	}
	if n, err := a.DB.Count(ctx, `SELECT count(*) FROM blobs`); n != 0 || err != nil {
		t.Errorf("%d files are kept, %v", n, err)
	}
	contexts, err := a.DB.SavedContexts(ctx, store.ContextFilter{})
	if err != nil || len(contexts) != 1 || contexts[0].ID != kept.ID {
		t.Errorf("contexts are left: %+v, %v", contexts, err)
	}
	b.StartBackground()
	polltest.Until(t, "the machine that had its files has them no more", func() bool {
		_, err := os.Stat(b.Home.ThreadDir(thread))
		return errors.Is(err, fs.ErrNotExist) && !tells(t, b.Home.Dir(), "heliotrope words")
	})

	// At once, for those who want that; a fork that works in its folder keeps that.
	const now = chat.ThreadID("web:main:three@chorus")
	converse(t, a, now)
	made := journal.Thread{Dir: a.Home.Scratch(now), Owner: admin(a).Principal}
	if _, err := a.DB.Commit(ctx, journal.Commit{Thread: fork, Create: &made, Events: []chat.Event{{Body: chat.Forked{From: now, AtSeq: 1}}}}); err != nil {
		t.Fatal(err)
	}
	if got, err := operations.DeleteSession.Call(ctx, ops, admin(a), operations.SessionDeletion{ID: string(now), Now: true}); err != nil || !got.Until.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	if n, err := a.DB.Count(ctx, `SELECT count(*) FROM events WHERE body LIKE '%heliotrope%'`); n != 0 || err != nil {
		t.Errorf("%d events have the words, %v", n, err)
	}
	lines, err := a.DB.AuditLog(ctx, audit.Filter{})
	if err != nil || !strings.HasPrefix(lines[0].Action, "session erase") {
		t.Errorf("%+v, %v", lines, err)
	}
	if _, err := os.Stat(a.Setup.Attachments(now)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its attachments: %v", err)
	}
	if _, err := os.Stat(filepath.Join(a.Home.Scratch(now), "made.txt")); err != nil {
		t.Errorf("what the fork works with is gone: %v", err)
	}
	if _, err := operations.GetSession.Call(context.WithoutCancel(ctx), ops, admin(a), operations.SessionRef{ID: string(fork)}); err != nil {
		t.Errorf("the fork is gone: %v", err)
	}
}
