package search_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/search"
	"chorus/internal/store/storetest"
)

// The index may be lost or damaged at any time: it is filled again.
func TestSearchIndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	path := storetest.Closed(t)
	index := filepath.Join(filepath.Dir(path), "search.db")
	find := func() int {
		t.Helper()
		db, err := store.Open(t.Context(), store.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.IndexNew(t.Context()); err != nil {
			t.Fatal(err)
		}
		hits, err := db.Search(t.Context(), "words", search.Options{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return len(hits)
	}
	if n := find(); n != 50 {
		t.Fatalf("%d hits", n)
	}
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	if n := find(); n != 50 {
		t.Fatalf("%d hits after it was deleted", n)
	}
	if err := os.WriteFile(index, []byte(strings.Repeat("garbage ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := find(); n != 50 {
		t.Fatalf("%d hits after it was damaged", n)
	}
}

// FuzzSearch: whatever somebody types is an answer, never a syntax error.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"word", `"`, `a"b"c`, "NEAR(a b, 3)", "text:x", "-a +b", "^x*", "\x00", "ä🙂", "(((", "a AND NOT", "{a b}:c", "½ ²"} {
		f.Add(seed)
	}
	db, err := store.Open(f.Context(), store.Options{Path: filepath.Join(f.TempDir(), "chorus.db")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := db.Close(); err != nil {
			f.Error(err)
		}
	})
	_, err = db.Commit(f.Context(), journal.Commit{Thread: "cli:home:one@main", Create: &journal.Thread{},
		Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("a word and another word")}}}})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := db.IndexNew(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if _, err := db.Search(t.Context(), query, search.Options{}); err != nil {
			t.Errorf("search %q: %v", query, err)
		}
	})
}
