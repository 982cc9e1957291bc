package database_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/polltest"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
)

// killedStore is a home as a killed process leaves it: everything that was said stands in the
// write-ahead log, and the guard knows of it.
func killedStore(t *testing.T) string {
	t.Helper()
	db := storetest.Open(t, store.Options{Path: storetest.Closed(t)})
	for range 50 {
		storetest.Say(t, db, strings.Repeat("words ", 100))
	}
	storetest.Audits(t, db, 3)
	storetest.Say(t, db, "the last word")
	now, _, err := database.MarkOf(t.Context(), db.DB)
	if err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the guard knows of it", func() bool {
		g, err := database.ReadGuard(db.Path())
		return err == nil && g != nil && !database.Before(g.Written, now)
	})
	dir := t.TempDir()
	for _, name := range []string{"chorus.db", "chorus.db-wal", "guard-chorus.db"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(db.Path()), name))
		if err != nil {
			t.Fatal(err)
		}
		storetest.Put(t, filepath.Join(dir, name), data)
	}
	return filepath.Join(dir, "chorus.db")
}

// Four bytes that were flipped in the middle of the log made SQLite drop everything behind them
// without a word: finished sessions went back to running and did their steps again.
func TestRewoundDatabaseIsNotOpened(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, path string){
		"flipped log": func(t *testing.T, path string) {
			info, err := os.Stat(path + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			storetest.Flip(t, path+"-wal", info.Size()/2)
		},
		"cut log": func(t *testing.T, path string) {
			if err := os.Truncate(path+"-wal", 40_000); err != nil {
				t.Fatal(err)
			}
		},
		"lost log": func(t *testing.T, path string) {
			if err := os.Remove(path + "-wal"); err != nil {
				t.Fatal(err)
			}
		},
		"another database": func(t *testing.T, path string) {
			data, err := os.ReadFile(storetest.Closed(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path + "-wal"); err != nil {
				t.Fatal(err)
			}
			storetest.Put(t, path, data)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := killedStore(t)
			harm(t, path)
			db, err := store.Open(t.Context(), store.Options{Path: path})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it opened"), db.Close()))
			}
			if !errors.Is(err, database.ErrRewound) || !strings.Contains(err.Error(), "chorus doctor --fix") {
				t.Fatal(err)
			}
			db, err = store.Open(t.Context(), store.Options{Path: path, AcceptRewound: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			storetest.Say(t, storetest.Open(t, store.Options{Path: path}), "accepted once, it is the one that counts")
		})
	}
}

// After a loss of power only what was known to be on the disk counts.
func TestGuardOfAnotherStartOfTheMachine(t *testing.T) {
	t.Parallel()
	path := killedStore(t)
	g, err := database.ReadGuard(path)
	if err != nil || g == nil {
		t.Fatal(g, err)
	}
	if g.Written.Events < 51 || g.Written.Audit != 3 {
		t.Fatalf("%+v", g)
	}
	g.Boot, g.OnDisk = "another", database.Mark{}
	if err := errors.Join(database.WriteGuard(path, g), os.Remove(path+"-wal")); err != nil {
		t.Fatal(err)
	}
	storetest.Say(t, storetest.Open(t, store.Options{Path: path}), "it may be behind what was written and not yet on the disk")
}

// The guard is at most as far as the database: a kill between a commit and the guard is no harm.
func TestGuardIsNeverAhead(t *testing.T) {
	t.Parallel()
	path := storetest.Closed(t)
	stores := []*store.DB{storetest.Open(t, store.Options{Path: path}), storetest.Open(t, store.Options{Path: path})}
	var writers sync.WaitGroup
	for i, db := range stores {
		writers.Go(func() {
			for range 150 {
				_, err := db.Commit(t.Context(), journal.Commit{Thread: chat.ThreadID([]string{"cli:home:one@main", "cli:home:two@main"}[i]), Create: &journal.Thread{},
					Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("hi")}}}})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	looks := 0
	for going := true; going; {
		select {
		case <-done:
			going = false
		case <-time.After(5 * time.Millisecond):
		}
		g, err := database.ReadGuard(path)
		if err != nil {
			t.Fatal(err)
		}
		if g == nil {
			continue
		}
		looks++
		now, _, err := database.MarkOf(t.Context(), stores[0].DB)
		if err != nil {
			t.Fatal(err)
		}
		if database.Before(now, g.Written) || database.Before(now, g.OnDisk) {
			t.Fatalf("the guard says %+v, the database %+v", g, now)
		}
	}
	if looks < 5 {
		t.Fatalf("the guard was seen %d times", looks)
	}
}

// A database that was lost was made anew, empty, by whichever command came next, and what was
// left of it was thrown away.
func TestMissingDatabaseIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"all but the log": func(path string) error { return errors.Join(os.Remove(path), os.Remove(database.GuardPath(path))) },
		"all but the guard": func(path string) error {
			return errors.Join(os.Remove(path), os.Remove(path+"-wal"))
		},
		"all but the bytes": func(path string) error {
			blob := filepath.Join(filepath.Dir(path), "blobs", "ab", "ab"+strings.Repeat("0", 64-2))
			return errors.Join(os.MkdirAll(filepath.Dir(blob), 0o700), os.WriteFile(blob, nil, 0o600), os.Remove(path), os.Remove(path+"-wal"), os.Remove(database.GuardPath(path)))
		},
		"cut off to nothing": func(path string) error { return errors.Join(os.Truncate(path, 0), os.Remove(path+"-wal")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := killedStore(t)
			if err := lose(path); err != nil {
				t.Fatal(err)
			}
			before := store.Leftovers(path, filepath.Join(filepath.Dir(path), "blobs"))
			db, err := store.Open(t.Context(), store.Options{Path: path})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it opened"), db.Close()))
			}
			if !errors.Is(err, database.ErrMissing) || len(before) == 0 || !strings.Contains(err.Error(), before[0]) {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err == nil && info.Size() > 0 {
				t.Error("a database was made")
			}
		})
	}
}

// A database that was deleted under a running program took everything that was said after that,
// and nobody was told.
func TestFilesThatAreTakenAwayAreNoticed(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(path string) error{
		"removed": func(path string) error { return os.Remove(path) },
		"all removed": func(path string) error {
			return errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm"))
		},
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
		"log cut off": func(path string) error { return os.Truncate(path+"-wal", 0) },
		"log cut":     func(path string) error { return os.Truncate(path+"-wal", 20_000) },
		"log removed": func(path string) error { return os.Remove(path + "-wal") },
		"log replaced": func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.WriteFile(path+"-wal", make([]byte, 1<<20), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []error
			path := storetest.Closed(t)
			db, err := store.Open(t.Context(), store.Options{Path: path, Notify: func(err error) { told = append(told, err) }})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for range 5 {
				storetest.Say(t, db, strings.Repeat("words ", 1000))
			}
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			_, err = db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{{Body: chat.Received{}}}})
			if !errors.Is(err, database.ErrReplaced) {
				t.Fatalf("a commit: %v", err)
			}
			if err := db.Ready(t.Context()); !errors.Is(err, database.ErrReplaced) {
				t.Errorf("ready: %v", err)
			}
			if len(told) != 1 || !errors.Is(told[0], database.ErrReplaced) {
				t.Errorf("told: %v", told)
			}
		})
	}
}

// Others may empty the log by a checkpoint; that is no loss.
func TestCheckpointOfOthersIsNoLoss(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: storetest.Closed(t)})
	storetest.Say(t, db, "one")
	polltest.Until(t, "the log is empty", func() bool { // a reader of the store that is still being opened may keep it for a moment
		storetest.Script(t, db.Path(), `PRAGMA wal_checkpoint(TRUNCATE)`)
		info, err := os.Stat(db.Path() + "-wal")
		return err == nil && info.Size() == 0
	})
	storetest.Say(t, db, "two")
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A full disk is told, by whoever asks, until a write goes well again.
func TestHealthIsThatOfTheLastWrite(t *testing.T) {
	t.Parallel()
	var told []error
	db, err := store.Open(t.Context(), store.Options{Path: storetest.Closed(t), Notify: func(err error) { told = append(told, err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	storetest.Say(t, db, "one")
	db.BreakCommits(func(bool) error { return syscall.ENOSPC })
	for range 2 {
		if _, err := db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{{Body: chat.Received{}}}}); !errors.Is(err, database.ErrFull) {
			t.Fatal(err)
		}
	}
	if err := db.Ready(t.Context()); !errors.Is(err, database.ErrFull) {
		t.Fatal(err)
	}
	db.BreakCommits(nil)
	database.ForgetProbe(db.DB)
	if err := db.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || !errors.Is(told[0], database.ErrFull) || told[1] != nil {
		t.Errorf("told: %v", told)
	}
}

// On pages that are known to be damaged nothing more is written.
func TestDamageStopsWriting(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Options{Path: storetest.Closed(t)})
	storetest.Say(t, db, "one")
	database.Saw(db.DB, &database.Problem{What: database.ErrDamaged, Path: db.Path()})
	_, err := db.Commit(t.Context(), journal.Commit{Thread: "cli:home:one@main", Events: []chat.Event{{Body: chat.Received{}}}})
	if !errors.Is(err, database.ErrDamaged) || !errors.Is(db.Ready(t.Context()), database.ErrDamaged) {
		t.Fatal(err)
	}
}
