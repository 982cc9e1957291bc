package owner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"chorus/internal/digest"
	"chorus/internal/lockfile"
)

// Files gives things to one process of a home, using a lock file each. A thing
// is never lost, because a lock ends with its process.
type Files struct{ Dir string }

// Take takes the file's lock.
func (f Files) Take(_ context.Context, name Name) (Held, error) {
	path := f.path(name)
	l, err := lockfile.Try(path, []byte(strconv.Itoa(os.Getpid())))
	switch {
	case errors.Is(err, lockfile.ErrHeld):
		held := &HeldError{Name: name}
		if pid := strings.TrimSpace(string(lockfile.Words(path))); pid != "" {
			held.By = "process " + pid
		}
		return nil, held
	case err != nil:
		return nil, fmt.Errorf("take %s: %w", name, err)
	}
	return &fileHeld{lock: l}, nil
}

// path returns the name's file. Processes of older versions know the files by these names.
func (f Files) path(name Name) string {
	file := string(name)
	if thread, ok := strings.CutPrefix(file, threadPrefix); ok {
		file = digest.Of(thread)[:32] + ".lock"
	} else if bot, ok := strings.CutPrefix(file, botPrefix); ok {
		file = bot + ".lock"
	}
	return filepath.Join(f.Dir, file)
}

// Held reports whether some process has a thing. It changes nothing.
func (f Files) Held(name Name) bool { return lockfile.Held(f.path(name)) }

type fileHeld struct {
	lock *lockfile.Lock
	once sync.Once
}

func (h *fileHeld) Context() context.Context { return context.Background() }

func (h *fileHeld) Release() { h.once.Do(h.lock.Release) }
