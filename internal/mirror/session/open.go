package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrLink means that there is a link in place of a log or its folder. Nothing was written.
var ErrLink = errors.New("there is a link in its place, which could lead to any file; remove it")

// openLog opens a file for appending. In the folder of a repository it follows no link,
// because whoever made the repository, or a command in it, could redirect the log into
// other files. A path elsewhere was chosen by a person.
func openLog(path string) (*os.File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_APPEND
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if filepath.Base(dir) != Folder {
		return os.OpenFile(path, flags, 0o600)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if now, err := folder.Stat("."); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, ErrLink), err)
	}
	if info, err := folder.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrLink)
	}
	f, err := folder.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil {
		info, err = folder.Lstat(name)
	}
	if err != nil || !os.SameFile(opened, info) {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, ErrLink), err, f.Close())
	}
	return f, nil
}
