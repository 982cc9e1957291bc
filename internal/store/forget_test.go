package store

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// A message that came with a channel's history is forgotten in all of its versions, and only that one.
func TestForgetEditsOfImportedMessages(t *testing.T) {
	t.Parallel()
	both(t, testForgetEditsOfImportedMessages)
}

func testForgetEditsOfImportedMessages(t *testing.T, open func(Options) *DB) {
	db := open(Options{})
	const thread = chat.ThreadID("discord:g/1:a@main")
	lines := []chat.Line{{Role: "user", ID: "m1", From: chat.Participant{ID: "42", Name: "ada"}, Blocks: chat.TextBlocks("heliotrope one")},
		{Role: "user", ID: "m2", From: chat.Participant{ID: "43", Name: "bob"}, Blocks: chat.TextBlocks("marigold one")}}
	data, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	blob := chat.NewBlob(data)
	_, err = db.Commit(t.Context(), journal.Commit{Thread: thread, Create: &journal.Thread{}, Blobs: []chat.Blob{blob}, Events: []chat.Event{
		{Body: chat.Imported{Source: "#general", Blob: blob.Hash, Count: 2}},
		{Body: chat.Received{Blocks: chat.TextBlocks("violet one")}, Who: "discord:42"},
		{Body: chat.Edited{Message: "m1", Blocks: chat.TextBlocks("heliotrope two")}, Who: "42"},
		{Body: chat.Edited{Message: "m2", Blocks: chat.TextBlocks("marigold two")}, Who: "43"},
		{Body: chat.Edited{Seq: 2, Blocks: chat.TextBlocks("violet two")}, Who: "42"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := db.ReadOf(t.Context(), "42")
	if err != nil || len(read[thread]) != 1 || read[thread][0].ID != "m1" {
		t.Fatalf("%+v, %v", read, err)
	}
	places, err := db.SaidBy(t.Context(), "discord:42")
	if err != nil {
		t.Fatal(err)
	}
	edits, err := db.EditsOf(t.Context(), places, []string{"m1"})
	if err != nil || len(edits) != 2 || edits[0].Seq != 3 || edits[1].Seq != 5 || edits[0].Thread != thread {
		t.Errorf("their edits: %+v, %v", edits, err)
	}
	if _, err := db.Commit(t.Context(), journal.Commit{Thread: thread, Events: []chat.Event{{Body: chat.Deleted{Message: "m1", Forget: true}}}}); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for ev, err := range db.AllEvents(t.Context(), thread, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(chat.Imported); ok {
			data, err := db.Blob(t.Context(), b.Blob)
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, string(data))
		}
		body, err := chat.EncodeBody(ev.Body)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(body))
	}
	for _, words := range []string{"marigold one", "marigold two", "violet one", "violet two"} {
		if !slices.ContainsFunc(bodies, func(body string) bool { return strings.Contains(body, words) }) {
			t.Errorf("%q is gone", words)
		}
	}
	for _, body := range bodies {
		if strings.Contains(body, "heliotrope") {
			t.Errorf("not forgotten: %s", body)
		}
	}
}
