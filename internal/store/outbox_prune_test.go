package store

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// Only what is final, settled, old and told is forgotten.
func TestPruneOutbox(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := Open(ctx, Options{Path: filepath.Join(t.TempDir(), "prune.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const thread = chat.ThreadID("discord:1/2:3@helper")
	by := chat.Principal{Kind: "discord", ID: "7"}
	row := journal.Thread{ID: thread, Agent: "helper", Place: "1/2", Owner: by}
	heard := chat.Event{Thread: thread, Body: chat.Received{Principal: by, Blocks: chat.TextBlocks("hello")}, Platform: "discord", PlatformID: "3"}
	if _, err := db.Arrive(ctx, journal.Arrival{Platform: "discord", Bot: "b", What: "message", PlatformID: "3", Commits: []journal.Commit{{Thread: thread, Create: &row, Events: []chat.Event{heard}}}}); err != nil {
		t.Fatal(err)
	}
	lane := journal.Lane{Platform: "discord", Bot: "b", Channel: "2"}
	wish := func(key string, seq int64, final bool) journal.Desired {
		return journal.Desired{Lane: lane, Key: key, Thread: thread, Seq: seq, Body: json.RawMessage(`{}`), Final: final}
	}
	if err := db.Plan(ctx, journal.Plan{Reader: "discord/b", Thread: thread, UpTo: 1, Desired: []journal.Desired{wish("told", 1, true), wish("open", 1, true), wish("preview", 1, false)}}); err != nil {
		t.Fatal(err)
	}
	if err := db.SetDesired(ctx, wish("ahead", 9, true)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"told", "preview", "ahead"} {
		o, err := db.Outgoing(ctx, lane, key)
		if err == nil {
			o, err = db.BeginSend(ctx, o)
		}
		if err == nil {
			err = db.EndSend(ctx, journal.Outcome{Lane: lane, Key: key, Attempt: o.Attempts, Rev: o.Tried, ID: "9" + key, State: journal.Sent})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		before time.Time
		want   int64
	}{{time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 1}, {time.Now().Add(time.Hour), 0}} {
		if n, err := db.PruneOutbox(ctx, "discord", "b", "discord/b", c.before); err != nil || n != c.want {
			t.Fatalf("%d rows went, not %d: %v", n, c.want, err)
		}
	}
	if _, err := db.Outgoing(ctx, lane, "told"); err == nil {
		t.Error("what was told is still there")
	}
	if places, err := db.Places(ctx, "discord", "9told"); err != nil || len(places) != 1 || places[0].Thread != thread {
		t.Errorf("whoever replies to it must find its thread: %v, %v", places, err)
	}
}
