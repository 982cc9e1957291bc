package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"chorus/internal/plainfile"
	"chorus/internal/symlink"
	"chorus/internal/text"
)

// The largest skill. Published skills have some dozens of files and, with fonts, a few megabytes.
const (
	MaxBytes = 32 << 20
	MaxFiles = 2000
	maxDepth = 16
)

// Entry is a file or a link of a skill.
type Entry struct {
	Path string // relative to the skill's folder, with forward slashes
	Exec bool
	Link string // the target, for a link
	Size int64
	Sum  string // SHA-256 of a file
}

// Tree is a skill's folder: the names, the executable bits and the bytes of everything in
// it. Other mode bits are not kept by repositories and are ignored.
type Tree struct {
	Digest  string
	Entries []Entry // sorted by path
	Bytes   int64
}

// leftOut reports whether programs create a file or folder of this name next to a
// skill. Such files are neither part of the digest nor copied.
func leftOut(name string) bool {
	switch name {
	case ".git", ".hg", ".svn", "__pycache__", ".DS_Store":
		return true
	}
	return false
}

// stamped is the state of something when it was read.
type stamped struct {
	path string
	stamp
}

// reading is a folder that is being read.
type reading struct {
	root   *os.Root
	dir    string // its path without links
	tree   Tree
	main   []byte // the SKILL.md
	stamps []stamped
}

// ReadTree reads a skill's folder. The error says what is wrong with it.
func ReadTree(dir string) (Tree, error) {
	r := &reading{dir: dir}
	err := r.read()
	return r.tree, err
}

func (r *reading) read() error {
	var err error
	if r.root, err = os.OpenRoot(r.dir); err != nil {
		return fmt.Errorf("it cannot be read: %w", text.Cause(err))
	}
	defer func() { _ = r.root.Close() }()
	if err := r.folder(".", 0); err != nil {
		return err
	}
	slices.SortFunc(r.tree.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	for i := range r.tree.Entries {
		if e := &r.tree.Entries[i]; e.Link == "" {
			if e.Sum, err = r.sum(e); err != nil {
				return fmt.Errorf("%s cannot be read: %w", e.Path, text.Cause(err))
			}
		}
	}
	r.tree.Digest = digest(r.tree.Entries)
	return nil
}

func digest(entries []Entry) string {
	sum := sha256.New()
	for _, e := range entries {
		fmt.Fprintf(sum, "%q %t %q %s\n", e.Path, e.Exec, e.Link, e.Sum)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// folder examines one folder and everything below it. It opens nothing but folders.
func (r *reading) folder(rel string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it has folders more than %d deep", maxDepth)
	}
	if err := r.note(rel); err != nil {
		return err
	}
	file, err := r.root.OpenFile(filepath.FromSlash(rel), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", rel, text.Cause(err))
	}
	defer func() { _ = file.Close() }()
	entries, err := file.ReadDir(MaxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s cannot be read: %w", rel, text.Cause(err))
	}
	for _, e := range entries {
		if leftOut(e.Name()) {
			continue
		}
		if len(r.stamps) > MaxFiles {
			return fmt.Errorf("it has more than %d files", MaxFiles)
		}
		name := path.Join(rel, e.Name())
		switch {
		case e.IsDir():
			err = r.folder(name, depth+1)
		default:
			err = r.entry(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry examines a file or link.
func (r *reading) entry(name string) error {
	if err := r.note(name); err != nil {
		return err
	}
	info, err := r.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", name, text.Cause(err))
	}
	e := Entry{Path: name, Exec: info.Mode()&0o111 != 0, Size: info.Size()}
	switch {
	case info.Mode().IsRegular():
		if r.tree.Bytes += info.Size(); r.tree.Bytes > MaxBytes {
			return fmt.Errorf("it has more than %d MB", MaxBytes>>20)
		}
	case info.Mode()&fs.ModeSymlink != 0:
		e.Exec, e.Size = false, 0
		if e.Link, err = r.root.Readlink(filepath.FromSlash(name)); err != nil {
			return fmt.Errorf("%s cannot be read: %w", name, text.Cause(err))
		}
		if !symlink.StaysInside(name, e.Link) {
			return fmt.Errorf("%s is a link that leads out of its folder", name)
		}
	default:
		return fmt.Errorf("%s is neither a file nor a folder", name)
	}
	r.tree.Entries = append(r.tree.Entries, e)
	return nil
}

func (r *reading) note(rel string) error {
	at := filepath.Join(r.dir, filepath.FromSlash(rel))
	s, err := stampOf(at)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", rel, text.Cause(err))
	}
	r.stamps = append(r.stamps, stamped{at, s})
	return nil
}

func (r *reading) sum(e *Entry) (string, error) {
	file, _, err := plainfile.OpenIn(r.root, e.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	var from io.Reader = io.LimitReader(file, e.Size+1)
	if e.Path == File {
		if r.main, err = io.ReadAll(io.LimitReader(file, MaxFile+1)); err != nil {
			return "", err
		}
		if len(r.main) > MaxFile { // Parse reports it
			return "", nil
		}
		_, _ = sum.Write(r.main)
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
	n, err := io.Copy(sum, from)
	if err == nil && n != e.Size {
		err = errors.New("it changed while it was read")
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// settled is how long after a change a file's times are certain to show it.
const settled = 50 * time.Millisecond

// unchanged reports whether everything is still in the same state. A file that was written just
// before it was read does not count: a second write may have the same times.
func unchanged(stamps []stamped, read time.Time) bool {
	edge := read.Add(-settled).UnixNano()
	for i := range stamps {
		now, err := stampOf(stamps[i].path)
		if err != nil || now != stamps[i].stamp || now.changed > edge {
			return false
		}
	}
	return true
}
