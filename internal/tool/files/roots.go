package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"chorus/internal/tool"
)

// Workspace is the root of relative paths.
const Workspace = "workspace"

// reserved are the names of roots that "@name/…" always means, also where there
// is no such root: the path is then refused instead of landing in the workspace.
var reserved = []string{Workspace, "outputs", "docs", "memory", "skills", "events", "attachments"}

// Root is a directory that file tools can reach as @Name/path.
type Root struct {
	Name     string // lower case letters; "memory/channel" is a part of @memory
	Dir      string // absolute; made by the first write when Writable
	Writable bool
	// Only names the files of the directory that can be reached, where others lie beside them; nil: all of it. Such a
	// root is not listed, no link in it is followed, and commands do not see it.
	Only []string
}

// Roots is where file tools may go: the workspace and named roots beside it, and
// nowhere else, whatever links and names say. Directories are opened when first
// needed. Safe for concurrent use.
type Roots struct {
	Fit Fit // nil: pictures are shown as they are
	// BeforeSave hears of a text before it becomes a file's, "" before one is removed; an error keeps it from being
	// written. May be nil. To be set before the first use.
	BeforeSave func(ctx context.Context, toolName string, place Place, content string) error

	roots map[string]*openRoot
	names []string // sorted
	work  []string // spellings of the workspace's own path
	locks *Locks
	who   string // whose writers these are

	lineHashes atomic.Bool
}

// ShowLineHashes says whether read shows each line with its hash, for hashline_edit. It may be
// called at any time.
func (r *Roots) ShowLineHashes(on bool) { r.lineHashes.Store(on) }

// Hold makes the workspace refuse to be opened as another folder than one that check allows; nil: any is. One that is
// open already and is another is closed.
func (r *Roots) Hold(check func(fs.FileInfo) error) {
	o := r.roots[Workspace]
	o.mu.Lock()
	defer o.mu.Unlock()
	o.check = check
	if o.root == nil || check == nil {
		return
	}
	if info, err := o.root.Stat("."); err != nil || check(info) != nil {
		_ = o.root.Close() // nothing was written by it
		o.root = nil
	}
}

type openRoot struct {
	Root
	mu   sync.Mutex
	root *os.Root
	real string // its path without links, once known

	check func(fs.FileInfo) error // as Hold has it
}

// NewRoots makes the roots of one agent. Nothing is opened; workspace must be an
// absolute path.
func NewRoots(workspace string, named ...Root) (*Roots, error) {
	r := &Roots{roots: map[string]*openRoot{}, locks: NewLocks()}
	all := append([]Root{{Name: Workspace, Dir: workspace, Writable: true}}, named...)
	for _, root := range all {
		if !filepath.IsAbs(root.Dir) {
			return nil, fmt.Errorf("root @%s: %q is not an absolute path", root.Name, root.Dir)
		}
		if !validName(root.Name) {
			return nil, fmt.Errorf("root @%s: a name is lower case letters", root.Name)
		}
		if r.roots[root.Name] != nil {
			return nil, fmt.Errorf("two roots are called @%s", root.Name)
		}
		root.Dir = filepath.Clean(root.Dir)
		r.roots[root.Name] = &openRoot{Root: root}
		r.names = append(r.names, root.Name)
	}
	slices.Sort(r.names)
	r.work = []string{r.roots[Workspace].Dir}
	if real, err := filepath.EvalSymlinks(r.work[0]); err == nil && real != r.work[0] {
		r.work = append(r.work, real)
	}
	return r, nil
}

// validName reports whether a root can be called so.
func validName(name string) bool {
	group, part, two := strings.Cut(name, "/")
	letters := func(s string) bool { return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == "" }
	return letters(group) && (!two || letters(part))
}

// WithLocks makes writers share locks with the other roots that have them: two
// threads in one workspace need it. Others who wait are told who. To be called before the first use.
func (r *Roots) WithLocks(locks *Locks, who string) *Roots {
	r.locks, r.who = locks, who
	return r
}

// Dir is the directory of a root, "" when there is none of that name.
func (r *Roots) Dir(name string) string {
	if root := r.roots[name]; root != nil {
		return root.Dir
	}
	return ""
}

// Env tells commands where the named roots are: CHORUS_ROOT_DOCS=/…, sorted.
func (r *Roots) Env() []string {
	var env []string
	for _, name := range r.names {
		if root := r.roots[name]; name != Workspace && root.Only == nil {
			env = append(env, "CHORUS_ROOT_"+strings.ToUpper(strings.ReplaceAll(name, "/", "_"))+"="+root.Dir)
		}
	}
	return env
}

// Close closes what was opened. The roots may be used again afterwards.
func (r *Roots) Close() error {
	var errs []error
	for _, name := range r.names {
		errs = append(errs, r.roots[name].close())
	}
	return errors.Join(errs...)
}

func (o *openRoot) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.root == nil {
		return nil
	}
	err := o.root.Close()
	o.root = nil
	return err
}

// trueDir is the root's directory free of links: two roots that reach it by different names
// lock the same files.
func (o *openRoot) trueDir() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.real == "" {
		real, err := filepath.EvalSymlinks(o.Dir)
		if err != nil {
			return o.Dir // not made yet
		}
		o.real = real
	}
	return o.real
}

// handle opens the root's directory, once. Only who is about to write makes it.
func (o *openRoot) handle(create bool) (*os.Root, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.root != nil {
		return o.root, nil
	}
	root, err := os.OpenRoot(o.Dir)
	if create && errors.Is(err, fs.ErrNotExist) && o.Writable && o.Name != Workspace {
		if err = os.MkdirAll(o.Dir, 0o700); err == nil {
			root, err = os.OpenRoot(o.Dir)
		}
	}
	if err == nil && o.check != nil {
		info, failed := root.Stat(".")
		if failed == nil {
			failed = o.check(info)
		}
		if failed != nil {
			_ = root.Close() // nothing was done with it
			return nil, failed
		}
	}
	o.root = root
	return root, err
}

// Place is a path that was understood: a root and a clean path with forward
// slashes below it, "." for the root itself.
type Place struct{ Root, Path string }

// String is the one way to write the place, in answers and in action strings. A
// file of the workspace whose name begins with @ is told from a root by "./".
func (p Place) String() string {
	switch {
	case p.Root != Workspace && p.Path == ".":
		return "@" + p.Root
	case p.Root != Workspace:
		return "@" + p.Root + "/" + p.Path
	case strings.HasPrefix(p.Path, "@"):
		return "./" + p.Path
	}
	return p.Path
}

// join is a path below the place.
func (p Place) join(rel string) Place { return Place{p.Root, path.Join(p.Path, rel)} }

// Find understands a path as models write it, without looking at the disk. The
// error is an answer for the model.
func (r *Roots) Find(name string) (Place, error) {
	switch {
	case strings.TrimSpace(name) == "":
		return Place{}, tool.Mistake("The path is empty.")
	case strings.ContainsRune(name, 0):
		return Place{}, tool.Mistake("The path contains a NUL byte.")
	case isDriveOrShare(name):
		return Place{}, tool.Mistake(name + " is not a path here: use one relative to the workspace, with forward slashes.")
	case name == "~" || strings.HasPrefix(name, "~/"):
		return Place{}, tool.Mistake(name + " is outside of the workspace. " + r.reach())
	}
	if strings.HasPrefix(name, "@") {
		root, rest, _ := strings.Cut(name[1:], "/")
		if r.roots[root] != nil {
			return r.below(root, rest, name)
		}
		part, below, _ := strings.Cut(rest, "/")
		if r.roots[root+"/"+part] != nil {
			return r.below(root+"/"+part, below, name)
		}
		if files := r.grouped(root); len(files) > 0 {
			return Place{}, tool.Mistake(name + " is no file; there are " + strings.Join(files, ", ") + ".")
		}
		if slices.Contains(reserved, root) {
			return Place{}, tool.Mistake("There is no @" + root + " here. " + r.reach())
		}
	}
	if filepath.IsAbs(name) {
		for _, dir := range r.work {
			if rel, err := filepath.Rel(dir, filepath.Clean(name)); err == nil && filepath.IsLocal(rel) {
				return r.below(Workspace, filepath.ToSlash(rel), name)
			}
		}
		for _, root := range r.names { // what commands print and skills say is below CHORUS_ROOT_…
			if r.roots[root].Only != nil { // commands do not see it
				continue
			}
			if rel, err := filepath.Rel(r.roots[root].Dir, filepath.Clean(name)); err == nil && filepath.IsLocal(rel) {
				return r.below(root, filepath.ToSlash(rel), name)
			}
		}
		return Place{}, tool.Mistake(name + " is outside of the workspace. " + r.reach())
	}
	return r.below(Workspace, name, name)
}

func (r *Roots) below(root, rest, name string) (Place, error) {
	clean := path.Clean("./" + rest)
	if !filepath.IsLocal(filepath.FromSlash(clean)) {
		return Place{}, tool.Mistake(name + " is outside of the workspace. " + r.reach())
	}
	if only := r.roots[root].Only; only != nil && !slices.Contains(only, clean) {
		group, _, _ := strings.Cut(root, "/")
		return Place{}, tool.Mistake(name + " is no file; there are " + strings.Join(r.grouped(group), ", ") + ".")
	}
	return Place{root, clean}, nil
}

// grouped are the files of the roots that are parts of a group.
func (r *Roots) grouped(group string) []string {
	var out []string
	for _, name := range r.names {
		if name == group || strings.HasPrefix(name, group+"/") {
			for _, file := range r.roots[name].Only {
				out = append(out, Place{name, file}.String())
			}
		}
	}
	return out
}

// isDriveOrShare is a drive or a network share: never meant as a name here, even where
// the system would allow it.
func isDriveOrShare(name string) bool {
	if strings.HasPrefix(name, `\\`) || strings.HasPrefix(name, "//") {
		return true
	}
	if len(name) < 3 || name[1] != ':' || name[2] != '\\' && name[2] != '/' {
		return false
	}
	letter := name[0] | 0x20
	return letter >= 'a' && letter <= 'z'
}

func (r *Roots) reach() string {
	var named []string
	for _, name := range r.names {
		if name != Workspace {
			named = append(named, "@"+name)
		}
	}
	if len(named) == 0 {
		return "Only paths in the workspace can be used."
	}
	return "Only paths in the workspace and in " + strings.Join(named, ", ") + " can be used."
}

// Access is what touching the path means to the gate: the place where it is one, and where its links lead if that is
// somewhere else, and what else the file is called; an absolute path for anything outside, which is refused when it runs. A path that says nothing
// gives nil.
func (r *Roots) Access(toolName, name string) []tool.Access {
	if place, err := r.Find(name); err == nil {
		real := r.resolved(place)
		return accesses(toolName, place, real, false, r.otherNames(real)...)
	}
	if strings.TrimSpace(name) == "" || strings.ContainsRune(name, 0) {
		return nil
	}
	if !isDriveOrShare(name) && !strings.HasPrefix(name, "~") && !filepath.IsAbs(name) {
		base, rest := r.roots[Workspace].Dir, name
		if root, below, _ := strings.Cut(strings.TrimPrefix(name, "@"), "/"); strings.HasPrefix(name, "@") && r.roots[root] != nil {
			base, rest = r.roots[root].Dir, below
		}
		name = filepath.Join(base, rest)
	} else if filepath.IsAbs(name) {
		name = filepath.Clean(name)
	}
	return []tool.Access{{Tool: toolName, Detail: name}}
}

// WriteAccess is Access for a call that changes the file, together with others.
func (r *Roots) WriteAccess(toolName, name string, others ...string) []tool.Access {
	place, err := r.Find(name)
	if err != nil {
		return r.Access(toolName, name)
	}
	real := r.resolved(place)
	return accesses(toolName, place, real, r.gitAsks(real, r.resolvedAll(others)...))
}

func accesses(toolName string, place, real Place, git bool, names ...Place) []tool.Access {
	list := []tool.Access{{Tool: toolName, Detail: place.String(), Git: git}}
	if real != place {
		list = append(list, tool.Access{Tool: toolName, Detail: real.String(), Git: git})
	}
	for _, name := range names {
		if a := (tool.Access{Tool: toolName, Detail: name.String(), Git: git}); !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// resolvedAll is where paths really lead, without those that lead nowhere.
func (r *Roots) resolvedAll(names []string) []Place {
	var out []Place
	for _, name := range names {
		if place, err := r.Find(name); err == nil {
			out = append(out, r.resolved(place))
		}
	}
	return out
}

// resolved is where a place really is, with its links followed. What cannot be followed is refused when it is opened.
func (r *Roots) resolved(place Place) Place {
	root, err := r.roots[place.Root].handle(false)
	if err != nil {
		return place
	}
	real, err := r.roots[place.Root].realPath(root, place.Path)
	if err != nil {
		return place
	}
	return Place{place.Root, path.Clean("./" + real)}
}

// Open opens a file or directory for reading, and only those: a pipe or device is
// refused before it can block.
func (r *Roots) Open(place Place) (*os.File, fs.FileInfo, error) {
	root, err := r.roots[place.Root].handle(false)
	if err != nil {
		return nil, nil, r.explain(place, err)
	}
	if r.roots[place.Root].Only != nil {
		if _, err := r.roots[place.Root].realPath(root, place.Path); err != nil {
			return nil, nil, r.explain(place, err)
		}
	}
	file, err := root.OpenFile(filepath.FromSlash(place.Path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, r.explain(place, err)
	}
	info, err := file.Stat()
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = tool.Mistake(place.String() + " is neither a file nor a directory.")
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, r.explain(place, err)
	}
	return file, info, nil
}

// explain turns an error of the file system into an answer without host paths.
func (r *Roots) explain(place Place, err error) error {
	if m := tool.Mistake(""); errors.As(err, &m) {
		return err
	}
	inner := err
	for next := errors.Unwrap(inner); next != nil; next = errors.Unwrap(inner) {
		inner = next
	}
	name := place.String()
	switch {
	case errors.Is(err, errChanged):
		return tool.Mistake(name + ": " + errChanged.Error() + ".")
	case errors.Is(err, fs.ErrNotExist):
		return tool.Mistake(name + " does not exist.")
	case strings.Contains(inner.Error(), "escapes"):
		return tool.Mistake(name + " is refused: a link on the way leads outside of the workspace.")
	case errors.Is(err, syscall.ENOTDIR):
		return tool.Mistake(name + ": a part of the path is not a directory.")
	case errors.Is(err, syscall.ELOOP):
		return tool.Mistake(name + ": too many links on the way.")
	}
	return tool.Mistake(name + ": " + inner.Error() + ".")
}
