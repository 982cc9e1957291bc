// Package lockfile provides locks between processes, one file each.
//
// A lock ends with its process, however that ends. At most one process holds it, although the file
// is removed on release, which keeps directories small. Others can take it as soon as Release
// returns. Merely closing the file would not guarantee that: a child process that is being started
// at that moment keeps a copy of its descriptor a little longer.
package lockfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld means that somebody else has the lock.
var ErrHeld = errors.New("held by another process")

// Lock is a held lock.
type Lock struct {
	file *os.File
	path string
}

// Try takes the lock or fails at once, with ErrHeld if somebody else has it. words
// are information for those who find it held; Words reads them.
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
		// The previous holder may have removed the file between our open and our
		// lock. In that case nobody else would find ours.
		if !l.current() {
			l.unlock()
			continue
		}
		_ = f.Truncate(0)
		_, _ = f.WriteAt(words, 0)
		return l, nil
	}
}

// Held reports whether somebody has the lock. It changes nothing.
func Held(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

// Words returns the holder's words, as far as they are written.
func Words(path string) []byte {
	words, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return words
}

func (l *Lock) current() bool {
	here, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(l.path)
	return err == nil && os.SameFile(here, there)
}

// Release frees the lock. It removes the file while still holding the lock.
func (l *Lock) Release() {
	_ = os.Remove(l.path)
	l.unlock()
}

func (l *Lock) unlock() {
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN)
	_ = l.file.Close()
}
