package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/database"
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
			db, err := database.OpenFile(path, nil)
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
		"newer":         {pragma(`PRAGMA user_version = 999`), 999, database.ErrNewer, nil},
		"somebody's":    {pragma(`PRAGMA application_id = 5`), schemaVersion, database.ErrForeign, nil},
		"no database":   {write(0, bytes.Repeat([]byte("no"), 200)), 0, database.ErrForeign, database.ErrForeign},
		"damaged pages": {write(3*4096, bytes.Repeat([]byte{0xff}, 8*4096)), schemaVersion, nil, database.ErrDamaged},
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
			if err := database.CheckFile(t.Context(), path); !errors.Is(err, c.check) {
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
	if err := database.CheckFile(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("CheckFile = %v", err)
	}
}
