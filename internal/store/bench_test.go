package store

import (
	"path/filepath"
	"sync/atomic"
	"testing"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/journal"
)

func benchDB(b *testing.B) *DB {
	b.Helper()
	db, err := Open(b.Context(), Options{Path: filepath.Join(b.TempDir(), "chorus.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

func benchThread(b *testing.B, db *DB, id chat.ThreadID) journal.Thread {
	b.Helper()
	_, err := db.Commit(b.Context(), journal.Commit{Thread: id, Create: &journal.Thread{}, Events: []chat.Event{
		{Body: chat.Received{Blocks: chat.TextBlocks("hello"), Prompt: true}}}})
	if err != nil {
		b.Fatal(err)
	}
	t, err := db.Take(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// BenchmarkAppend is what one owner's commit of one event costs.
func BenchmarkAppend(b *testing.B) {
	db := benchDB(b)
	t := benchThread(b, db, "cli:home:bench@main")
	body := chat.ToolRan{Call: "call_1", Name: "read", Blocks: chat.TextBlocks("a line of a result\n"), Outcome: chat.Ran}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := db.Commit(b.Context(), journal.Commit{Thread: t.ID, Epoch: t.Epoch, Events: []chat.Event{{Body: body}}}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendCrowd is the same from many threads at once: they share commits.
func BenchmarkAppendCrowd(b *testing.B) {
	db := benchDB(b)
	const crowd = 100
	var threads [crowd]journal.Thread
	for i := range threads {
		threads[i] = benchThread(b, db, chat.ThreadID("cli:home:bench"+string(rune('a'+i%26))+string(rune('a'+i/26))+"@main"))
	}
	body := chat.ToolRan{Call: "call_1", Name: "read", Blocks: chat.TextBlocks("a line of a result\n"), Outcome: chat.Ran}
	var next atomic.Int64
	b.SetParallelism(crowd / 2)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		t := threads[next.Add(1)%crowd]
		for pb.Next() {
			if _, err := db.Commit(b.Context(), journal.Commit{Thread: t.ID, Epoch: t.Epoch, Events: []chat.Event{{Body: body}}}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkOpen is what a start on a warm home costs.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "chorus.db")
	keep, err := Open(b.Context(), Options{Path: path})
	if err != nil {
		b.Fatal(err)
	}
	defer keep.Close()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		db, err := Open(b.Context(), Options{Path: path})
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendAudited is a commit of one event with one line for the audit log.
func BenchmarkAppendAudited(b *testing.B) {
	db := benchDB(b)
	t := benchThread(b, db, "cli:home:bench@main")
	body := chat.ToolRan{Call: "call_1", Name: "read", Blocks: chat.TextBlocks("a line of a result\n"), Outcome: chat.Ran}
	line := approval.Audit{Agent: "main", Run: "r", Call: "call_1", Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada", Name: "Ada"},
		Action: "read notes.txt", Decision: "allow", Rule: "allow read"}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		c := journal.Commit{Thread: t.ID, Epoch: t.Epoch, Events: []chat.Event{{Body: body}}, Audit: []approval.Audit{line}}
		if _, err := db.Commit(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
