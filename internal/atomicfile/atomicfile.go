// Package atomicfile replaces a file in one step, so that readers see the old or the new content and never a part, even after a crash.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Write writes a temporary file beside the named one, syncs it to disk and renames it. Until then only its owner can read it.
func Write(path string, data []byte, perm fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), unfinished(path)+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Remove removes a file and what killed calls of Write left beside it. It is no error if there is nothing. Nobody may be
// writing the file.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	beside, missing := os.ReadDir(filepath.Dir(path))
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, missing)
	}
	for _, e := range beside {
		if strings.HasPrefix(e.Name(), unfinished(path)) && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), e.Name())))
		}
	}
	return err
}

// unfinished is how the names of files begin from which this one is made.
func unfinished(path string) string { return "." + filepath.Base(path) + ".tmp-" }
