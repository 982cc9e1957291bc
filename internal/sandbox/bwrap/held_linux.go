package bwrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"chorus/internal/gitsettings"
	"chorus/internal/plainfile"
)

// Git outside the sandbox replaces its settings by a new file. The kernel then removes the read-only mount
// of the old file inside the sandbox, and from then on a command could write the new one. Afterwards
// nobody can tell which of the two wrote what. Therefore, if a guarded file is a different file after the
// command, only what was there before and what is harmless stays.

// held is a file or folder that commands cannot change, as it was before the command.
type held struct {
	path string
	id   fileID
	data []byte // contents, for a file
}

// fileID identifies a file even if another file takes its name
// later. The inode number alone is reused at once.
type fileID struct {
	device [2]uint32
	inode  uint64
	born   unix.StatxTimestamp
}

func identify(path string) (id fileID, mode uint16, err error) {
	status, err := statusOf(path)
	if err != nil {
		return fileID{}, 0, err
	}
	return idOf(status), status.Mode, nil
}

func statusOf(path string) (status unix.Statx_t, err error) {
	err = unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &status)
	return status, err
}

func idOf(status unix.Statx_t) fileID {
	return fileID{[2]uint32{status.Dev_major, status.Dev_minor}, status.Ino, status.Btime}
}

// identifyTarget identifies the file that a symlink leads to.
func identifyTarget(path string) (fileID, error) {
	var status unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &status)
	return idOf(status), err
}

// append adds the id to a key. A missing file has none.
func (id fileID) append(key []byte, missing error) []byte {
	key = append(key, ' ')
	if missing != nil {
		return key
	}
	for _, n := range []uint64{uint64(id.device[0]), uint64(id.device[1]), id.inode, uint64(id.born.Sec), uint64(id.born.Nsec)} {
		key = append(strconv.AppendUint(key, n, 16), '.')
	}
	return key
}

// holds reports whether the path has its own mount, or is a symlink that will be restored.
func (v *view) holds(path string) bool {
	return slices.ContainsFunc(v.held, func(h held) bool { return h.path == path }) ||
		slices.ContainsFunc(v.watches, func(w watched) bool { return w.path == path && w.kind == link })
}

func (v *view) hold(path string) {
	if v.holds(path) {
		return
	}
	id, mode, err := identify(path)
	if err != nil {
		return
	}
	h := held{path: path, id: id}
	if mode&unix.S_IFMT == unix.S_IFREG {
		h.data, _ = plainfile.Read(path, gitsettings.MaxSize)
	}
	v.held = append(v.held, h)
}

// settle restores what may have been changed.
func (h held) settle() (note string, err error) {
	id, mode, err := identify(h.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && id == h.id:
		return "", nil
	case err != nil:
		return "", err
	case mode&unix.S_IFMT == unix.S_IFDIR:
		if !hasHooks(h.path) {
			return "", nil
		}
		return h.restore(nil)
	}
	left := h.data
	if name := filepath.Base(h.path); name == "config" || name == "config.worktree" {
		kept, all := harmlessSettings(h.path, h.data)
		if all {
			return "", nil
		}
		left = []byte(kept)
	} else if now, err := plainfile.Read(h.path, gitsettings.MaxSize); err == nil && string(now) == string(h.data) {
		return "", nil
	}
	return h.restore(left)
}

// restore sets aside what is there now and restores the given data.
func (h held) restore(data []byte) (note string, err error) {
	aside, err := setAside(h.path)
	if err != nil {
		return "", err
	}
	if data == nil {
		err = os.Mkdir(h.path, 0o755)
	} else {
		err = os.WriteFile(h.path, data, 0o644)
	}
	return fmt.Sprintf("[sandbox: %s was replaced from outside while the command ran, and git would start what it names; anything new in it that might start a program was moved to %s. "+
		"Whoever owns this Chorus may look at it]", h.path, filepath.Base(aside)), err
}
