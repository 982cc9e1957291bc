package runsetup

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/store"
)

// A run finds the files that were attached on another machine; on one machine alone what was removed stays removed.
func TestAttachmentsOfAnotherMachine(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	home, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(ctx, store.Options{Path: home.DB(), BlobDir: home.Blobs()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const thread = chat.ThreadID("web:main:one@helper")
	hash, err := db.PutBlob(ctx, []byte("the report"))
	if err != nil {
		t.Fatal(err)
	}
	file := func(path string) chat.File {
		return chat.File{Name: "report.txt", Path: path, Size: 10, Blob: hash}
	}
	blocks := chat.Blocks{chat.Text{Text: "look"}, file("@attachments/7-report.txt"), file("@attachments/../../escaped"), file("elsewhere/report.txt")}
	_, err = db.Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{}, Events: []chat.Event{{Body: chat.Received{Blocks: blocks}}}})
	if err != nil {
		t.Fatal(err)
	}
	s := &Setup{DB: db, Home: home, Log: slog.New(slog.DiscardHandler)}
	fetch := func() {
		t.Helper()
		log, err := engine.Load(ctx, db, thread)
		if err != nil {
			t.Fatal(err)
		}
		for ev, err := range db.AllEvents(ctx, thread, log.Seq()) {
			if err == nil {
				err = log.Apply(ev)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s.fetchAttachments(ctx, thread, log)
	}
	at := filepath.Join(s.Attachments(thread), "7-report.txt")
	fetch()
	if _, err := os.Stat(at); err == nil {
		t.Error("fetched on the only machine")
	}
	s.SharedStore = true
	fetch()
	if data, err := os.ReadFile(at); err != nil || string(data) != "the report" {
		t.Errorf("%q (%v)", data, err)
	}
	if found, _ := filepath.Glob(filepath.Join(s.Attachments(thread), "*")); len(found) != 1 {
		t.Errorf("laid down: %v", found)
	}
	if err := os.WriteFile(at, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	fetch()
	if data, err := os.ReadFile(at); err != nil || string(data) != "mine" {
		t.Errorf("what is there was written over: %q (%v)", data, err)
	}
}
