// Package plainfile reads files that somebody else may replace at any moment, such as an agent's
// commands in a workspace. It checks the file that was opened and not whichever has the name, so a
// pipe or a device that took its place is refused and never waited for.
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

// ErrNotPlain means that something is not a regular file, or is a link where links are not allowed.
var ErrNotPlain = errors.New("it is not a regular file")

// TooLong is the error for a file larger than the limit.
type TooLong struct{ Most int64 }

func (e TooLong) Error() string { return fmt.Sprintf("it is longer than %d bytes", e.Most) }

// Read reads a file of at most most bytes, following links.
func Read(path string, most int64) ([]byte, error) {
	return read(os.OpenFile, path, 0, most)
}

// ReadNoLink reads a file of at most most bytes that is not itself a link. The folders above it may be links.
func ReadNoLink(path string, most int64) ([]byte, error) {
	return read(os.OpenFile, path, syscall.O_NOFOLLOW, most)
}

// ReadIn reads a file of at most most bytes below a root, and follows no link out of it. The name has slashes.
func ReadIn(root *os.Root, name string, most int64) ([]byte, error) {
	return read(root.OpenFile, filepath.FromSlash(name), 0, most)
}

// Open opens a regular file for reading, following links, and returns its FileInfo.
func Open(path string) (*os.File, fs.FileInfo, error) {
	return open(os.OpenFile, path, 0)
}

// OpenNoLink opens a regular file for reading that is not itself a link, and returns its FileInfo.
func OpenNoLink(path string) (*os.File, fs.FileInfo, error) {
	return open(os.OpenFile, path, syscall.O_NOFOLLOW)
}

// OpenIn opens a regular file below a root for reading, and follows no link out of it. The name has slashes.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return open(root.OpenFile, filepath.FromSlash(name), 0)
}

type opener func(name string, flag int, mode fs.FileMode) (*os.File, error)

func open(by opener, path string, flags int) (*os.File, fs.FileInfo, error) {
	file, err := by(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0) // without waiting for a writer of a pipe
	switch {
	case errors.Is(err, syscall.ENXIO), flags&syscall.O_NOFOLLOW != 0 && errors.Is(err, syscall.ELOOP): // a socket or a link
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
