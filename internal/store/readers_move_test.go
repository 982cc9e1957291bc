package store

import (
	"context"
	"path/filepath"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
)

// Homes from when each bot counted for itself how far it had told go on where the furthest stood.
func TestReadersOfBotsBecomeOne(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db := open(t, path)
	thread := chat.ThreadID("discord:1/2:3@helper")
	row := journal.Thread{ID: thread, Agent: "helper", Place: "1/2"}
	for range 3 {
		if _, err := db.Commit(ctx, journal.Commit{Thread: thread, Create: &row, Events: []chat.Event{{Thread: thread, Body: chat.Received{Blocks: chat.TextBlocks("hello")}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.MoveReader(ctx, "discord", thread, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := db.MoveCursor(ctx, journal.Lane{Platform: "discord", Bot: "old", Channel: "2"}, "", "5"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Migrate(ctx, path, database.MigrateOptions{Down: schemaVersion - 10}); err != nil {
		t.Fatal(err)
	}
	script(t, path, `INSERT INTO readers (reader, thread_id, seq) VALUES ('discord/new', 'discord:1/2:3@helper', 1)`)
	db = open(t, path)
	if at, err := db.Reader(ctx, "discord", thread); err != nil || at != 2 {
		t.Errorf("it stands at %d, %v", at, err)
	}
	if at, err := db.Reader(ctx, "discord/old", thread); err != nil || at != 0 {
		t.Errorf("the bot itself stands at %d, %v", at, err)
	}
}
