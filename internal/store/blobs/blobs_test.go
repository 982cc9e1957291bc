package blobs_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/store"
	"chorus/internal/store/blobs"
	"chorus/internal/store/storetest"
)

// A file that was cut or is gone was reported as a damaged database, and putting the same
// bytes again did not bring it back.
func TestALostBlobIsSaidAndMended(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: filepath.Join(t.TempDir(), "chorus.db")})
	data := bytes.Repeat([]byte("bytes "), blobs.MaxInline)
	hash, err := db.PutBlob(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	path := db.BlobPath(hash)
	for name, harm := range map[string]func() error{
		"cut":   func() error { return os.Truncate(path, 100) },
		"other": func() error { return os.WriteFile(path, bytes.ToUpper(data), 0o600) },
		"gone":  func() error { return os.Remove(path) },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Blob(t.Context(), hash); !errors.Is(err, chat.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := db.PutBlob(t.Context(), data); err != nil {
			t.Fatal(err)
		}
		if got, err := db.Blob(t.Context(), hash); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s, and put again: %d bytes, %v", name, len(got), err)
		}
	}
	if _, err := db.Blob(t.Context(), chat.NewBlob([]byte("never there")).Hash); !errors.Is(err, chat.ErrLost) {
		t.Errorf("never there: %v", err)
	}
}

func TestBlobWithOtherBytes(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: filepath.Join(t.TempDir(), "chorus.db")})
	hash, err := db.PutBlob(t.Context(), make([]byte, blobs.MaxInline+1))
	if err != nil {
		t.Fatal(err)
	}
	path := db.BlobPath(hash)
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
	if _, err := db.PutBlob(t.Context(), make([]byte, blobs.MaxInline+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Blob(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
}

// A sweep between looking for the file and writing the row costs a second try.
func TestBlobSweptMeanwhile(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: filepath.Join(t.TempDir(), "chorus.db")})
	data := make([]byte, blobs.MaxInline+1)
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
		release := storetest.Hold(db)
		done := make(chan error)
		go func() { done <- put() }()
		storetest.AwaitQueued(db, 1)
		if err := os.Remove(db.BlobPath(hash)); err != nil {
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
