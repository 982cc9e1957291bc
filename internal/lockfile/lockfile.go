// Package lockfile holds the locks that keep processes apart: one file each, whoever has it locked has the lock.
//
// It promises that a lock ends with its process, however that ends; that at most one holds it although the file is removed
// when it is let go of, which keeps folders small; and that it is free for others in the moment Release returns. Merely
// closing the file would not do that: a child that was being started just then has a copy of it for a little longer.
package lockfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld: somebody else has the lock.
var ErrHeld = errors.New("held by another process")

// Lock is a lock that is held.
type Lock struct {
	file *os.File
	path string
}

// Try takes the lock or fails at once, with ErrHeld when somebody else has it. words are for whoever finds it held.
func Try(path string, words []byte) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, os.ErrNotExist) {
			if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		l := &Lock{f, path}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, ErrHeld
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// Whoever had it before may have removed the file between our open and our lock; then we hold one that nobody else finds.
		if !l.found() {
			l.letGo()
			continue
		}
		_ = f.Truncate(0)
		_, _ = f.WriteAt(words, 0)
		return l, nil
	}
}

// Words are those of whoever has the lock, as far as they are written.
func Words(path string) []byte {
	words, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return words
}

func (l *Lock) found() bool {
	here, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(l.path)
	return err == nil && os.SameFile(here, there)
}

// Release lets go of the lock. The file is removed while it is still held.
func (l *Lock) Release() {
	_ = os.Remove(l.path)
	l.letGo()
}

func (l *Lock) letGo() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}
