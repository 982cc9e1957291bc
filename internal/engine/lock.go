package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"chorus/internal/chat"
)

// errHeld: another process runs this thread.
var errHeld = errors.New("held by another process")

// lock is a thread's lock on this machine: whoever has it may take the thread.
// It ends with the process, however that ends.
type lock struct {
	file *os.File
	path string
}

func lockPath(dir string, thread chat.ThreadID) string {
	sum := sha256.Sum256([]byte(thread))
	return filepath.Join(dir, hex.EncodeToString(sum[:16])+".lock")
}

// takeLock takes the lock or fails at once with errHeld.
func takeLock(dir string, thread chat.ThreadID) (*lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lock %s: %w", thread, err)
	}
	path := lockPath(dir, thread)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", thread, err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			holder, _ := os.ReadFile(path)
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, fmt.Errorf("%w (process %s)", errHeld, strings.TrimSpace(string(holder)))
			}
			return nil, fmt.Errorf("lock %s: %w", thread, err)
		}
		// Whoever had it before may have removed the file between our open and our
		// lock; then we hold a file that nobody else will find.
		if same(f, path) {
			_ = f.Truncate(0)
			_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
			return &lock{f, path}, nil
		}
		f.Close()
	}
}

func same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// release removes the file while it is still held, so that the folder stays small.
func (l *lock) release() {
	_ = os.Remove(l.path)
	_ = l.file.Close()
}
