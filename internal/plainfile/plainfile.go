// Package plainfile reads files that somebody else may replace at any moment, as an agent's commands may in a workspace. What is
// looked at is the file that was opened, not the one that had the name a moment ago, so a pipe or a device that took its place is
// refused and never waited for.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotPlain is said of what is no regular file, and of a link where none is followed.
var ErrNotPlain = errors.New("it is no plain file")

// TooLong is the error for a file with more than the bytes that are read.
type TooLong struct{ Most int64 }

func (e TooLong) Error() string { return fmt.Sprintf("it is longer than %d bytes", e.Most) }

// Read reads a file of at most so many bytes, also through links.
func Read(path string, most int64) ([]byte, error) {
	return read(os.OpenFile, path, 0, most)
}

// ReadNoLink reads a file of at most so many bytes whose own name is no link; the folders above it may be.
func ReadNoLink(path string, most int64) ([]byte, error) {
	return read(os.OpenFile, path, syscall.O_NOFOLLOW, most)
}

// ReadIn reads a file of at most so many bytes below a root, and follows no link out of it. The name has slashes.
func ReadIn(root *os.Root, name string, most int64) ([]byte, error) {
	return read(root.OpenFile, filepath.FromSlash(name), 0, most)
}

// Open opens a regular file for reading, also through links, and says what it is.
func Open(path string) (*os.File, fs.FileInfo, error) {
	return open(os.OpenFile, path, 0)
}

// OpenNoLink opens a regular file for reading whose own name is no link, and says what it is.
func OpenNoLink(path string) (*os.File, fs.FileInfo, error) {
	return open(os.OpenFile, path, syscall.O_NOFOLLOW)
}

// OpenIn opens a regular file below a root for reading, and follows no link out of it. The name has slashes.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return open(root.OpenFile, filepath.FromSlash(name), 0)
}

type opener func(name string, flag int, mode fs.FileMode) (*os.File, error)

func open(by opener, path string, flags int) (*os.File, fs.FileInfo, error) {
	file, err := by(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0) // without waiting for whoever would write to a pipe
	switch {
	case errors.Is(err, syscall.ENXIO), flags&syscall.O_NOFOLLOW != 0 && errors.Is(err, syscall.ELOOP): // a socket, a link
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotPlain}
	case err != nil:
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: ErrNotPlain}
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func read(by opener, path string, flags int, most int64) ([]byte, error) {
	file, info, err := open(by, path, flags)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info.Size() > most {
		return nil, &fs.PathError{Op: "read", Path: path, Err: TooLong{most}}
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most { // it grew
		err = &fs.PathError{Op: "read", Path: path, Err: TooLong{most}}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
