package bwrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// placeholder is an empty file or folder that exists only so that something can be mounted on it. All
// commands that need it share it, including those of other servers: each holds a lock on it, and the
// last one removes it. If a killed server leaves one behind, it is recognised by being empty and
// writable for nobody, and is removed with the next command.
type placeholder struct {
	path string
	file *os.File
}

// makePlaceholder creates path if nothing is there, or joins those who created it. It returns nil if
// something else is there, or if we may not write there: then the command may not either.
func makePlaceholder(path string, directory bool) (*placeholder, error) {
	for range 100 { // whoever removes it finishes at once
		err := place(path, directory)
		switch {
		case errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS):
			return nil, nil
		case err != nil && !errors.Is(err, fs.ErrExist):
			return nil, fmt.Errorf("guard %s: %w", path, err)
		}
		if info, err := os.Lstat(path); err != nil {
			continue
		} else if !ours(info) {
			return nil, nil
		}
		file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil && same(file, path) {
			return &placeholder{path, file}, nil
		}
		_ = file.Close()
	}
	return nil, fmt.Errorf("guard %s: other processes keep creating and removing it", path)
}

func place(path string, directory bool) error {
	if directory {
		return os.Mkdir(path, 0o555)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	return file.Close()
}

// ours reports whether it can be one that we made.
func ours(info fs.FileInfo) bool {
	return info.Mode().Perm()&0o222 == 0 && (info.IsDir() || info.Mode().IsRegular() && info.Size() == 0)
}

// same reports whether the path still is the open file.
func same(file *os.File, path string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(open, now)
}

// release removes it unless somebody else holds it too. A folder that is not empty stays.
func (h *placeholder) release() {
	if unix.Flock(int(h.file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && same(h.file, h.path) {
		if info, err := h.file.Stat(); err == nil && ours(info) {
			_ = os.Remove(h.path)
		}
	}
	// Closing alone would leave the lock to a child that is being
	// started, and the last holder would find it locked.
	_ = unix.Flock(int(h.file.Fd()), unix.LOCK_UN)
	_ = h.file.Close()
}
