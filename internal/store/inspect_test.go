package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// closedStore makes a store with something in it and closes it.
func closedStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.PutBlob(t.Context(), bytes.Repeat([]byte("x"), 40_000)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInspect(t *testing.T) {
	t.Parallel()
	pragma := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := sql.Open(driverName, dsn(path, nil))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(at int64, data []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(data, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		spoil          func(*testing.T, string)
		version        int
		inspect, check error
	}{
		"healthy":       {nil, schemaVersion, nil, nil},
		"older":         {pragma(`PRAGMA user_version = 1`), 1, nil, nil},
		"newer":         {pragma(`PRAGMA user_version = 999`), 999, ErrNewer, nil},
		"somebody's":    {pragma(`PRAGMA application_id = 5`), schemaVersion, ErrForeign, nil},
		"no database":   {write(0, bytes.Repeat([]byte("no"), 200)), 0, ErrForeign, ErrForeign},
		"damaged pages": {write(3*4096, bytes.Repeat([]byte{0xff}, 8*4096)), schemaVersion, nil, ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := closedStore(t)
			if c.spoil != nil {
				c.spoil(t, path)
			}
			i, err := Inspect(t.Context(), path, "")
			if !errors.Is(err, c.inspect) || !i.Exists || i.Version != c.version || i.Known != schemaVersion || i.Size == 0 {
				t.Errorf("Inspect = %+v, %v", i, err)
			}
			if err := CheckFile(t.Context(), path); !errors.Is(err, c.check) {
				t.Errorf("CheckFile = %v, want %v", err, c.check)
			}
		})
	}
}

func TestInspectMakesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	i, err := Inspect(t.Context(), filepath.Join(dir, "chorus.db"), "")
	if err != nil || i.Exists || i.Older() {
		t.Errorf("Inspect = %+v, %v", i, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
}

func TestCheckFileKeepsToItsTime(t *testing.T) {
	t.Parallel()
	path := closedStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := CheckFile(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("CheckFile = %v", err)
	}
}

func TestSweepTakesFilesThatBelongToNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chorus.db")
	db, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	big := bytes.Repeat([]byte("big"), maxInline)
	kept, err := db.PutBlob(t.Context(), big)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(db.blobDir, "ab")
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
	gone := []string{lay(".new-123", old), lay("ab"+strings.Repeat("0", hashLength-2), old)}
	stay := []string{lay("README", old), lay(".new-456", time.Now()), lay("ab"+strings.Repeat("1", hashLength-2), time.Now()), db.blobPath(kept)}
	if err := os.Chtimes(db.blobPath(kept), old, old); err != nil {
		t.Fatal(err)
	}
	if u, err := db.UnusedBlobs(t.Context(), SweepAfter); err != nil || u != (Unused{2, 8}) {
		t.Errorf("UnusedBlobs = %+v, %v", u, err)
	}
	if n, err := db.SweepBlobs(t.Context(), SweepAfter); err != nil || n != 2 {
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
	dbs, closeAll := openTwice(t, path, now)
	defer closeAll()
	for round := range 5 {
		var all sync.WaitGroup
		hashes := make([]string, 20)
		for i := range hashes {
			data := fmt.Appendf(nil, "%d", i)
			if i%2 == 0 {
				data = bytes.Repeat(data, maxInline)
			}
			all.Go(func() {
				var err error
				if hashes[i], err = dbs[0].PutBlob(t.Context(), data); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		all.Go(func() {
			if _, err := dbs[1].SweepBlobs(t.Context(), SweepAfter); err != nil {
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
