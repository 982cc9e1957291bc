//go:build unix

package effects

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// restore makes a folder equal to another and changes only what differs: unchanged files stay
// the same files, so a sandbox around the folder need not be rebuilt.
func restore(to, from string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		want, err := entry.Info()
		if err != nil {
			return err
		}
		return restoreOne(filepath.Join(to, rel), path, want)
	})
	if err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(to, path)
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(filepath.Join(from, rel)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.RemoveAll(path); err != nil || !info.IsDir() {
			return err
		}
		return fs.SkipDir
	})
}

func restoreOne(to, from string, want fs.FileInfo) error {
	now, err := os.Lstat(to)
	there := err == nil && now.Mode().Type() == want.Mode().Type()
	switch {
	case want.IsDir() && there:
		if now.Mode() == want.Mode() {
			return nil
		}
		return os.Chmod(to, want.Mode().Perm())
	case want.IsDir():
		return errors.Join(os.RemoveAll(to), os.Mkdir(to, want.Mode().Perm()), os.Chmod(to, want.Mode().Perm()))
	case want.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if is, err := os.Readlink(to); err == nil && is == target {
			return nil
		}
		return errors.Join(os.RemoveAll(to), os.Symlink(target, to))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if there && now.Mode() == want.Mode() && now.Size() == want.Size() && now.Sys().(*syscall.Stat_t).Nlink == 1 {
		if is, err := os.ReadFile(to); err == nil && bytes.Equal(is, data) {
			return nil
		}
	}
	return errors.Join(os.RemoveAll(to), os.WriteFile(to, data, want.Mode().Perm()), os.Chmod(to, want.Mode().Perm()))
}
