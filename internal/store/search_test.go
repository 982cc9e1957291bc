package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// The index may be lost or damaged at any time: it is filled again.
func TestSearchIndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	path := closed(t)
	index := filepath.Join(filepath.Dir(path), "search.db")
	find := func() int {
		t.Helper()
		db, err := Open(t.Context(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.IndexNew(t.Context()); err != nil {
			t.Fatal(err)
		}
		hits, err := db.Search(t.Context(), "words", SearchOptions{Limit: 1000})
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

func TestMatchFor(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                    "",
		" - * ":               "",
		"word":                `"word"*`,
		"two words":           `"two" "words"*`,
		`say "two words" now`: `"say" "two words" "now"*`,
		`"two words"`:         `"two words"`,
		`open "quote`:         `"open" "quote"*`,
		"a:b OR c*":           `"a:b" "OR" "c*"*`,
		"nul\x00byte":         `"nul byte"*`,
	} {
		if got := matchFor(searchTerms(query)); got != want {
			t.Errorf("%q: got %s, want %s", query, got, want)
		}
	}
}

// FuzzSearch: whatever somebody types is an answer, never a syntax error.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"word", `"`, `a"b"c`, "NEAR(a b, 3)", "text:x", "-a +b", "^x*", "\x00", "ä🙂", "(((", "a AND NOT", "{a b}:c", "½ ²"} {
		f.Add(seed)
	}
	db, err := Open(f.Context(), Options{Path: filepath.Join(f.TempDir(), "chorus.db")})
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
		if _, err := db.Search(t.Context(), query, SearchOptions{}); err != nil {
			t.Errorf("search %q: %v", query, err)
		}
	})
}

func TestBlobWithOtherBytes(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "chorus.db"))
	hash, err := db.PutBlob(t.Context(), make([]byte, maxInline+1))
	if err != nil {
		t.Fatal(err)
	}
	path := db.blobPath(hash)
	if err := os.WriteFile(path, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Blob(t.Context(), hash); err == nil || !strings.Contains(err.Error(), "other bytes") {
		t.Fatalf("got %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Blob(t.Context(), hash); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Fatalf("got %v", err)
	}
	// Put again, the file is there again.
	if _, err := db.PutBlob(t.Context(), make([]byte, maxInline+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Blob(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
}

// A sweep between looking for the file and writing the row costs a second try.
func TestBlobSweptMeanwhile(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "chorus.db"))
	data := make([]byte, maxInline+1)
	hash, err := db.PutBlob(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func() error{
		"put": func() error { _, err := db.PutBlob(t.Context(), data); return err },
		"commit": func() error {
			_, err := db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Create: &journal.Thread{}, Blobs: []chat.Blob{{Data: data}}})
			return err
		},
	} {
		release := hold(db)
		done := make(chan error)
		go func() { done <- put() }()
		await(func() bool { return len(db.w.queue) == 1 })
		if err := os.Remove(db.blobPath(hash)); err != nil {
			t.Fatal(err)
		}
		release()
		if err := <-done; err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := db.Blob(t.Context(), hash); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
