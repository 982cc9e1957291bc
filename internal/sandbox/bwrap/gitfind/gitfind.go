//go:build linux

// Package gitfind finds the repositories below a folder, repeatedly. It does not reread a folder that has
// not changed since the last search, so a search costs one stat for each folder.
package gitfind

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Place is where git would find a repository: a .git of any kind, or a
// folder whose contents make it a git directory.
type Place struct {
	Path string
	// Unread means that a folder above could not be read the last
	// time, so the place may have existed for long.
	Unread bool
}

// Tree is a folder with what is known about it. It is not safe for concurrent use.
type Tree struct {
	root *folder
	path string
	max  int
	left int // what remains of max in the current search
	now  time.Time
}

// New returns a tree of which at most max folders are searched, those near the root first.
func New(path string, max int) *Tree {
	return &Tree{root: &folder{}, path: path, max: max}
}

type folder struct {
	name    string
	inode   uint64
	changed unix.Timespec // its ctime when it was read, which nobody can set
	read    bool          // its contents are known and had not changed for a while before
	failed  bool          // it could not be read
	dotGit  bool          // it contains a .git
	bare    bool          // it looks like a git directory
	folders []*folder
}

// tick is more than the clock resolution of any file system here. A folder that was changed
// less than that before it was read may change again without a new time.
const tick = 50 * time.Millisecond

// Look returns the places below the root, excluding the root itself, and whether all folders were searched.
func (t *Tree) Look() (places []Place, complete bool) {
	type entry struct {
		folder *folder
		path   string
		unread bool
	}
	t.left, t.now = t.max, time.Now()
	level := []entry{{t.root, t.path, false}}
	for len(level) > 0 {
		var next []entry
		for _, e := range level {
			if t.left == 0 {
				return places, false
			}
			t.left--
			before := e.folder.failed
			if !t.look(e.folder, e.path) {
				continue
			}
			unread := e.unread || before
			if e.folder != t.root {
				if e.folder.dotGit {
					places = append(places, Place{filepath.Join(e.path, ".git"), unread})
				}
				if e.folder.bare {
					places = append(places, Place{e.path, unread})
				}
			}
			for _, f := range e.folder.folders {
				next = append(next, entry{f, e.path + "/" + f.name, unread})
			}
		}
		level = next
	}
	return places, true
}

// look brings a folder up to date and reports whether it can be read.
func (t *Tree) look(f *folder, path string) bool {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	if f.read && f.changed == stat.Ctim && f.inode == stat.Ino {
		return true
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		*f = folder{name: f.name, failed: true}
		return false
	}
	if f.inode != stat.Ino {
		f.folders = nil
	}
	t.fill(f, entries)
	f.inode, f.changed, f.failed = stat.Ino, stat.Ctim, false
	f.read = t.now.Sub(time.Unix(stat.Ctim.Unix())) > tick
	return true
}

// fill records the entries of a folder and keeps what is known about its subfolders.
func (t *Tree) fill(f *folder, entries []fs.DirEntry) {
	old := make(map[string]*folder, len(f.folders))
	for _, known := range f.folders {
		old[known.name] = known
	}
	var has names
	folders := make([]*folder, 0, len(f.folders))
	for _, entry := range entries {
		name := entry.Name()
		has.see(name)
		if !entry.IsDir() || name == ".git" {
			continue
		}
		known := old[name]
		if known == nil {
			known = &folder{name: name}
		}
		folders = append(folders, known)
	}
	f.folders, f.dotGit, f.bare = slices.Clip(folders), has.dotGit, has.bare()
}

// names records which of git's own names a folder contains.
type names struct{ dotGit, head, objects, refs, common bool }

func (n *names) see(name string) {
	switch name {
	case ".git":
		n.dotGit = true
	case "HEAD":
		n.head = true
	case "objects":
		n.objects = true
	case "refs":
		n.refs = true
	case "commondir":
		n.common = true
	}
}

// bare reports whether git would take a folder with these names for a git directory.
func (n *names) bare() bool { return n.head && (n.objects && n.refs || n.common) }
