package app

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/store"
)

// A file that was handed to one machine goes with a message to another.
func TestAttachmentsOfTwoMachines(t *testing.T) { onBoth(t, attachmentsOfTwoMachines) }

func attachmentsOfTwoMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
	const thread = chat.ThreadID("web:main:one@helper")
	sizes := []int{10}
	if database.IsPostgres(at) {
		sizes = append(sizes, 300<<10) // larger than what a file of SQLite has in itself
	}
	for _, size := range sizes {
		content := bytes.Repeat([]byte{0, 1, 2, 3, 4}, size/5)
		stored, err := a.Service.StoreAttachment(t.Context(), thread, "data.bin", bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := b.Service.Attached(t.Context(), thread, stored.ID, b.Shared)
		if err != nil || len(blocks) != 1 {
			t.Fatalf("on the other machine: %v (%v)", blocks, err)
		}
		file, ok := blocks[0].(chat.File)
		if !ok || file.Name != "data.bin" || file.Size != int64(len(content)) {
			t.Errorf("%+v", blocks[0])
		}
		data, err := os.ReadFile(filepath.Join(b.Setup.Attachments(thread), stored.ID+"-data.bin"))
		if err != nil || !bytes.Equal(data, content) {
			t.Errorf("%d bytes (%v)", len(data), err)
		}
		if _, err := b.Service.Attached(t.Context(), "web:main:another@helper", stored.ID, b.Shared); err == nil {
			t.Error("another session got the file")
		}
	}
}

// A context that was saved on one machine is restored on another, also one of before documents, and is forgotten on both.
func TestContextsOfTwoMachines(t *testing.T) { onBoth(t, contextsOfTwoMachines) }

func contextsOfTwoMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
	ctx := t.Context()
	saved := store.SavedContext{ID: "one", Agent: "helper", Transport: "discord", Place: "1/2", File: filepath.Join(a.Home.Dir(), "sessions", "one.json")}
	keepContext(t, a, saved)
	if err := a.Settings.KeepContext(ctx, saved.ID, []byte(`{"session_id": "one"}`)); err != nil {
		t.Fatal(err)
	}
	old := store.SavedContext{ID: "old", Agent: "helper", Transport: "discord", Place: "1/2", File: filepath.Join(a.Home.Dir(), "sessions", "old.json")}
	keepContext(t, a, old)
	write(t, old.File, `{"session_id": "old"}`)
	for range 2 { // the second time nothing is left to do
		if err := a.Settings.TakeOverContexts(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Settings.TakeOverContexts(ctx); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(old.File); err != nil { // as b sees it
		t.Fatal(err)
	}
	for _, c := range []store.SavedContext{saved, old} {
		if text, err := b.Settings.ReadContext(ctx, c); err != nil || string(text) != `{"session_id": "`+c.ID+`"}` {
			t.Errorf("%s on the other machine: %q (%v)", c.ID, text, err)
		}
		if err := b.Settings.ForgetContext(ctx, c.ID); err != nil {
			t.Fatal(err)
		}
		if text, err := a.Settings.ReadContext(ctx, c); err == nil {
			t.Errorf("%s was forgotten, and says %q", c.ID, text)
		}
	}
}
