package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockFile is the lock of one path against other processes. The kernel lets go of it
// when the process ends.
type lockFile struct {
	file *os.File
	path string
}

// How often a lock of another process is tried: a lock has no bell across processes.
const (
	firstTry = 2 * time.Millisecond
	lastTry  = 100 * time.Millisecond
)

// waitFile takes the lock of a path, waiting until ctx ends.
func waitFile(ctx context.Context, dir, key string, mine holding) (*lockFile, error) {
	sum := sha256.Sum256([]byte(key))
	path := filepath.Join(dir, "file-"+hex.EncodeToString(sum[:16])+".lock")
	for wait := firstTry; ; wait = min(2*wait, lastTry) {
		got, err := takeFile(path, mine)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) {
			return got, err
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, &busyError{key, heldBy(path)}
		}
	}
}

// takeFile takes the lock or fails at once with EWOULDBLOCK.
func takeFile(path string, mine holding) (*lockFile, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("lock a file: %w", err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("lock a file: %w", err)
		}
		// Whoever had it before may have removed the file between our open and our lock.
		if there, err := os.Stat(path); err == nil {
			if here, err := f.Stat(); err == nil && os.SameFile(here, there) {
				mine.Pid = os.Getpid()
				data, _ := json.Marshal(mine) // a string, a number and a time
				_ = f.Truncate(0)
				_, _ = f.WriteAt(data, 0) // only words for whoever waits
				return &lockFile{f, path}, nil
			}
		}
		_ = f.Close()
	}
}

// heldBy is who has a lock, as far as they have said.
func heldBy(path string) holding {
	var h holding
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &h) != nil {
		return holding{}
	}
	return h
}

// release removes the file while it is still held, so that the folder stays small.
func (l *lockFile) release() {
	_ = os.Remove(l.path)
	_ = l.file.Close()
}
