package blobstorage_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"chorus/internal/blobstorage"
	"chorus/internal/chat"
)

// A folder keeps, mends, lists and removes, and names an owner.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	f := blobstorage.NewFolder(dir, func() time.Time { return now })
	b := chat.NewBlob([]byte("bytes"))
	if _, err := f.Get(t.Context(), b.Hash); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	path := filepath.Join(dir, b.Hash[:2], b.Hash)
	for _, harm := range []func() error{func() error { return nil }, func() error { return os.Truncate(path, 1) }, func() error { return os.Remove(path) }} {
		if err := f.Put(t.Context(), b.Hash, b.Data); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Get(t.Context(), b.Hash); err != nil || !bytes.Equal(got, b.Data) {
			t.Errorf("%q, %v", got, err)
		}
		if err := harm(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Put(t.Context(), b.Hash, b.Data); err != nil {
		t.Fatal(err)
	}
	if size, err := f.Size(t.Context(), b.Hash); size != 5 || err != nil {
		t.Error(size, err)
	}
	if err := f.SetOwner(t.Context(), "me"); err != nil {
		t.Fatal(err)
	}
	if owner, err := f.Owner(t.Context()); owner != "me" || err != nil {
		t.Error(owner, err)
	}
	if err := f.Check(t.Context()); err != nil {
		t.Error(err)
	}
	half := filepath.Join(dir, b.Hash[:2], ".new-half")
	if err := os.WriteFile(half, []byte("by"), 0o600); err != nil {
		t.Fatal(err)
	}
	list := func(before time.Time) (n int) {
		if err := f.List(t.Context(), before, func(hash string, size int64) error {
			if n++; hash != b.Hash || size != 5 {
				t.Errorf("%s with %d", hash, size)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := list(now.Add(-time.Hour)); n != 0 {
		t.Errorf("%d young ones", n)
	}
	if n := list(now.Add(time.Hour)); n != 1 {
		t.Errorf("%d", n)
	}
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half of one is still there: %v", err)
	}
	for range 2 {
		if err := f.Remove(t.Context(), b.Hash); err != nil {
			t.Error(err)
		}
	}
}

// A disk that is not mounted is away: nothing is taken for lost, and nothing is written to the disk below it.
func TestFolderThatIsNotMounted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mount")
	f := blobstorage.NewFolder(dir, nil)
	b := chat.NewBlob([]byte("bytes"))
	_, reading := f.Get(t.Context(), b.Hash)
	_, measuring := f.Size(t.Context(), b.Hash)
	_, owner := f.Owner(t.Context())
	for _, err := range []error{reading, measuring, owner, f.Put(t.Context(), b.Hash, b.Data), f.Remove(t.Context(), b.Hash), f.Check(t.Context()), f.SetOwner(t.Context(), "me"),
		f.List(t.Context(), time.Now(), func(string, int64) error { return nil })} {
		if !errors.Is(err, blobstorage.ErrAway) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := f.Put(ended, b.Hash, b.Data); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
