// Package jsonl is shared by the files that mirror a thread: lines of JSON that are appended,
// replaced as a whole and read back after a crash, and a position in the journal up to which they
// are complete. A write that failed half-way is noticed before the next one.
package jsonl

import (
	"errors"
	"io/fs"
	"os"
)

// Append appends to a file, creating it if there is something to append, and returns its size afterwards.
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

// Replace replaces a file through a temporary one with a fixed name, so that
// the remains of a crash are overwritten the next time.
func Replace(path string, data []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return os.Rename(tmp, path)
}

// Size returns the size of a file, 0 if it does not exist.
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
