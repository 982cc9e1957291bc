package blobs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/store"
	"chorus/internal/store/blobs"
	"chorus/internal/store/storetest"
)

func TestSweepTakesFilesThatBelongToNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	big := bytes.Repeat([]byte("big"), blobs.MaxInline)
	kept, err := db.PutBlob(t.Context(), big)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(filepath.Join(filepath.Dir(path), "blobs"), "ab")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-48 * time.Hour)
	lay := func(name string, at time.Time) string {
		file := filepath.Join(folder, name)
		if err := errors.Join(os.WriteFile(file, []byte("left"), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	gone := []string{lay(".new-123", old), lay("ab"+strings.Repeat("0", blobs.HashLength-2), old)}
	stay := []string{lay("README", old), lay(".new-456", time.Now()), lay("ab"+strings.Repeat("1", blobs.HashLength-2), time.Now()), db.BlobPath(kept)}
	if err := os.Chtimes(db.BlobPath(kept), old, old); err != nil {
		t.Fatal(err)
	}
	if u, err := db.UnusedBlobs(t.Context(), blobs.SweepAfter); err != nil || u != (blobs.Unused{Count: 2, Bytes: 8}) {
		t.Errorf("UnusedBlobs = %+v, %v", u, err)
	}
	if n, err := db.SweepBlobs(t.Context(), blobs.SweepAfter); err != nil || n != 2 {
		t.Errorf("SweepBlobs = %d, %v", n, err)
	}
	for _, file := range gone {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
	for _, file := range stay {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}

// Whoever puts bytes while they are swept away finds them afterwards, young again.
func TestSweepBesideWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	var mu sync.Mutex
	clock := time.Now()
	now := func() time.Time { mu.Lock(); defer mu.Unlock(); return clock }
	o := store.Options{Path: path, Now: now}
	dbs := []*store.DB{storetest.Open(t, o), storetest.Open(t, o)}
	for round := range 5 {
		var all sync.WaitGroup
		hashes := make([]string, 20)
		for i := range hashes {
			data := fmt.Appendf(nil, "%d", i)
			if i%2 == 0 {
				data = bytes.Repeat(data, blobs.MaxInline)
			}
			all.Go(func() {
				var err error
				if hashes[i], err = dbs[0].PutBlob(t.Context(), data); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		all.Go(func() {
			if _, err := dbs[1].SweepBlobs(t.Context(), blobs.SweepAfter); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		})
		all.Wait()
		for _, hash := range hashes {
			if _, err := dbs[1].Blob(t.Context(), hash); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		}
		mu.Lock()
		clock = clock.Add(48 * time.Hour)
		mu.Unlock()
	}
}
