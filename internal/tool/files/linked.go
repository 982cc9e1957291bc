package files

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"chorus/internal/tool"
)

// A hard link is the same file under another name, and nothing leads from one name to the other.
// Therefore the other names of a file that has several, which is rare, are searched for among the
// files of its root: a rule about any of these names applies to the file.

// maxLooked is how many files and folders are searched for that, those nearest to the top first.
const maxLooked = 20_000

// fileID identifies a file, whatever its name.
type fileID struct{ device, inode uint64 }

// identify returns the identity of a file and whether it has more than one name.
func identify(info fs.FileInfo) (id fileID, several bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return fileID{}, false
	}
	return fileID{uint64(stat.Dev), stat.Ino}, stat.Nlink > 1
}

// several identifies a file that has more than one name; ok is false for all others.
func (r *Roots) several(real Place) (id fileID, ok bool) {
	info, err := os.Lstat(filepath.Join(r.roots[real.Root].trueDir(), filepath.FromSlash(real.Path)))
	if err != nil {
		return fileID{}, false
	}
	return identify(info)
}

// linked returns the names of all files in a root that have several.
func (r *Roots) linked(root string) map[fileID][]Place {
	top, out, left := r.roots[root].trueDir(), map[fileID][]Place{}, maxLooked
	for folders := []string{"."}; len(folders) > 0 && left > 0; folders = folders[1:] {
		dir, err := os.OpenFile(filepath.Join(top, filepath.FromSlash(folders[0])), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		entries, _ := dir.ReadDir(left)
		_ = dir.Close()
		left -= len(entries)
		for _, e := range entries {
			name := path.Join(folders[0], e.Name())
			if e.IsDir() {
				folders = append(folders, name)
			}
			if !e.Type().IsRegular() {
				continue
			}
			if info, err := e.Info(); err == nil {
				if id, several := identify(info); several {
					out[id] = append(out[id], Place{root, name})
				}
			}
		}
	}
	return out
}

// otherNames returns the file's other names in its root.
func (r *Roots) otherNames(real Place) []Place {
	id, ok := r.several(real)
	if !ok {
		return nil
	}
	var out []Place
	for _, name := range r.linked(real.Root)[id] {
		if name != real {
			out = append(out, name)
		}
	}
	return out
}

// Hider decides which files must not be read according to the rules. It checks a file's
// name, the target of its links, and its other names. It is for one call.
type Hider struct {
	roots  *Roots
	hides  func(path string) bool
	linked map[string]map[fileID][]Place // of the roots in which a file with several names was met
}

// Hider returns what decides which files a call must leave out.
func (r *Roots) Hider(ctx context.Context) *Hider {
	return &Hider{roots: r, hides: tool.CallFrom(ctx).Hides, linked: map[string]map[fileID][]Place{}}
}

// Any reports whether there are such rules at all.
func (h *Hider) Any() bool { return h.hides != nil }

// Hides reports whether a file must be left out.
func (h *Hider) Hides(e Entry) bool {
	if h.hides == nil {
		return false
	}
	if h.hides(e.Place.String()) || e.Real != e.Place && h.hides(e.Real.String()) {
		return true
	}
	id, ok := h.roots.several(e.Real)
	if !ok {
		return false
	}
	if h.linked[e.Real.Root] == nil {
		h.linked[e.Real.Root] = h.roots.linked(e.Real.Root)
	}
	return slices.ContainsFunc(h.linked[e.Real.Root][id], func(name Place) bool { return h.hides(name.String()) })
}
