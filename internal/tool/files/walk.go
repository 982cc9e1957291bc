package files

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"chorus/internal/tool"
)

// maxIgnoreFile is the largest ignore file that is read.
const maxIgnoreFile = 1 << 20

// Entry is one file that a walk met.
type Entry struct {
	Place Place
	Real  Place  // the same without links on the way
	Rel   string // relative to where the walk began
	Link  bool   // a symbolic link, which is not followed
}

// Walk visits every file below a directory (or only the file given) in byte order of their paths,
// without .git and what the ignore files exclude. It follows no links, and ends early if visit
// returns false. The error is an answer for the model, or the context's.
func (r *Roots) Walk(ctx context.Context, from Place, visit func(Entry) bool) error {
	root, err := r.roots[from.Root].handle(false)
	if err != nil {
		return r.explain(from, err)
	}
	real, err := r.roots[from.Root].realPath(root, from.Path)
	if err != nil {
		return r.explain(from, err)
	}
	if info, err := root.Lstat(filepath.FromSlash(real)); err == nil && info.Mode().IsRegular() {
		visit(Entry{Place: from, Real: Place{from.Root, real}, Rel: path.Base(from.Path)})
		return ctx.Err()
	}
	w := &walk{ctx: ctx, roots: r, root: root, from: from, visit: visit}
	above := w.outer(real)
	err = w.dir(real, "", above)
	if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
		return r.explain(from, err)
	}
	return ctx.Err()
}

var errEnough = errors.New("enough")

type walk struct {
	ctx   context.Context
	roots *Roots
	root  *os.Root
	from  Place
	visit func(Entry) bool
}

// outer collects the rules of the directories above dir.
func (w *walk) outer(dir string) *ignores {
	var rules *ignores
	if dir == "." {
		return nil
	}
	parts := strings.Split(dir, "/")
	for i := range parts {
		above := cmp.Or(path.Join(parts[:i]...), ".")
		if entries, err := w.entries(above); err == nil {
			rules = w.rules(above, entries, rules)
		}
	}
	return rules
}

// dir visits the contents of a directory: name is its path below the
// root, rel its path below the start of the walk.
func (w *walk) dir(name, rel string, above *ignores) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := w.entries(name)
	if err != nil {
		if rel == "" {
			return err
		}
		return nil // gone or not readable, which does not end the walk
	}
	rules := w.rules(name, entries, above)
	for _, e := range entries {
		full, below := path.Join(name, e.Name()), path.Join(rel, e.Name())
		if e.Name() == ".git" || rules.ignored(full, e.IsDir()) {
			continue
		}
		if e.IsDir() {
			if err := w.dir(full, below, rules); err != nil {
				return err
			}
			continue
		}
		link := e.Type()&fs.ModeSymlink != 0
		if !link && !e.Type().IsRegular() {
			continue
		}
		if !w.visit(Entry{Place: w.from.join(below), Real: Place{w.from.Root, full}, Rel: below, Link: link}) {
			return errEnough
		}
	}
	return nil
}

// entries reads a directory, sorted so that a walk returns whole paths in order: "a.b" comes before "a/b".
func (w *walk) entries(name string) ([]fs.DirEntry, error) {
	// Opening a pipe would block, and nobody could end that.
	dir, err := w.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	key := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(key(a), key(b)) })
	return entries, nil
}

// rules adds a directory's own ignore files to those above.
func (w *walk) rules(name string, entries []fs.DirEntry, above *ignores) *ignores {
	own := &ignores{above: above, dir: name}
	for _, file := range ignoreNames {
		for _, e := range entries {
			if e.Name() == file && e.Type().IsRegular() {
				own.rules = append(own.rules, parseIgnore(w.text(path.Join(name, file)))...)
			}
		}
	}
	if len(own.rules) == 0 {
		return above
	}
	return own
}

func (w *walk) text(name string) string {
	file, info, err := w.roots.Open(Place{w.from.Root, name})
	if err != nil {
		return ""
	}
	defer file.Close()
	if info.IsDir() {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(file, maxIgnoreFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// FindDir is Find for the directory a search begins in; "" means the workspace.
func (r *Roots) FindDir(name string) (Place, error) {
	if strings.TrimSpace(name) == "" {
		name = "."
	}
	return r.Find(name)
}

// AccessDir is Access for the directory a search begins in.
func (r *Roots) AccessDir(toolName, name string) []tool.Access {
	if strings.TrimSpace(name) == "" {
		name = "."
	}
	return r.Access(toolName, name)
}
