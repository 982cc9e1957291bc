package storetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"chorus/internal/store"
)

// Empty is the file of an empty store, made once by running every migration. Running
// them again for each test's home would take longer than most tests.
var Empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "chorus-empty")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "chorus.db")
	db, err := store.Open(context.Background(), store.Options{Path: path})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Fresh creates an empty store where there is none, and its folder.
func Fresh(t testing.TB, path string) {
	t.Helper()
	data, err := Empty()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// FreshHome returns a new folder with an empty store in it, to be opened as a home.
func FreshHome(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	Fresh(t, filepath.Join(dir, "chorus.db"))
	return dir
}
