// Package jsonl is what the files that mirror a thread have in common: lines of JSON that
// are appended, replaced whole and read back after a crash, and a place in the journal up
// to which they are complete. It promises that a write which failed half-way is noticed
// before the next one.
package jsonl

import (
	"errors"
	"io/fs"
	"os"
)

// Append adds to a file, which is made if there is something to add, and gives its size
// afterwards.
func Append(path string, data []byte) (int64, error) {
	if len(data) == 0 {
		return Size(path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = f.Write(data)
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Replace writes a file whole through a temporary one with a fixed name, so that what a
// crash leaves is overwritten the next time.
func Replace(path string, data []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return os.Rename(tmp, path)
}

// Size is the size of a file, 0 if it does not exist.
func Size(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
