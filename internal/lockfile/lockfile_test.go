package lockfile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestOneHasIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks", "a.lock")
	l, err := Try(path, []byte("me"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path, []byte("you")); !errors.Is(err, ErrHeld) || string(Words(path)) != "me" {
		t.Errorf("%v; %q", err, Words(path))
	}
	l.Release()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) || Words(path) != nil {
		t.Errorf("the file is left: %v", err)
	}
	if l, err = Try(path, []byte("x")); err != nil || string(Words(path)) != "x" {
		t.Fatal(err, Words(path))
	}
	l.Release()
}

// TestFilesThatCannotBeLocked: a reason, and never a lock that holds nothing.
func TestFilesThatCannotBeLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "file", "a.lock")} {
		if _, err := Try(path, nil); err == nil || errors.Is(err, ErrHeld) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestNeverTwo: many take and release it all the time; two never have it at once.
func TestNeverTwo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.lock")
	var have, got atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				l, err := Try(path, nil)
				if errors.Is(err, ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if have.Add(1) != 1 {
					t.Error("two have it")
				}
				got.Add(1)
				have.Add(-1)
				l.Release()
			}
		})
	}
	all.Wait()
	if got.Load() == 0 {
		t.Error("nobody ever had it")
	}
}

// TestFreeAtOnce: also while children are started, which have copies of the file for a moment.
func TestFreeAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.lock")
	var starting sync.WaitGroup
	for range 4 {
		starting.Go(func() {
			for range 60 {
				if err := exec.Command("true").Run(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { starting.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return
		default:
		}
		l, err := Try(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		l.unlock() // without removing it, so that the next one finds the same file
	}
}
