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

// reserved are names that "@name/…" always refers to as roots, even if there is no such
// root: the path is then refused instead of ending up in the workspace.
var reserved = []string{Workspace, "outputs", "docs", "memory", "skills", "events", "attachments"}

// Root is a directory that file tools can reach as @Name/path.
type Root struct {
	Name     string // lower case letters; "memory/channel" is a part of @memory
	Dir      string // absolute; created by the first write if Writable
	Writable bool
	// Only names the reachable files of a directory that also contains others; nil: all files. Such a
	// root is not listed, no link in it is followed, and commands do not see it.
	Only []string
}

// Roots is where file tools may go: the workspace and the named roots, and nowhere else, whatever links and
// names say. Directories are opened when first needed. It is safe for concurrent use.
type Roots struct {
	Fit Fit // nil: pictures are shown unchanged
	// BeforeSave receives a text before it is written to a file, and "" before a file is removed. An
	// error prevents the write. It may be nil, and must be set before the first use.
	BeforeSave func(ctx context.Context, toolName string, place Place, content string) error

	roots map[string]*openRoot
	names []string // sorted
	work  []string // spellings of the workspace's own path
	locks *Locks
	who   string // on whose behalf files are written

	lineHashes atomic.Bool
}

// ShowLineHashes sets whether read shows each line with its hash, for
// hashline_edit. It may be called at any time.
func (r *Roots) ShowLineHashes(on bool) { r.lineHashes.Store(on) }

// Hold makes the workspace refuse to be opened as a folder that check rejects; nil
// accepts any folder. It closes a workspace that is open and rejected.
func (r *Roots) Hold(check func(fs.FileInfo) error) {
	o := r.roots[Workspace]
	o.mu.Lock()
	defer o.mu.Unlock()
	o.check = check
	if o.root == nil || check == nil {
		return
	}
	if info, err := o.root.Stat("."); err != nil || check(info) != nil {
		_ = o.root.Close() // nothing was written through it
		o.root = nil
	}
}

type openRoot struct {
	Root
	mu   sync.Mutex
	root *os.Root
	real string // its path without links, once known

	check func(fs.FileInfo) error // set by Hold
}

// NewRoots returns the roots of one agent. It opens nothing. workspace must be an absolute path.
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

// validName reports whether a root may have this name.
func validName(name string) bool {
	group, part, two := strings.Cut(name, "/")
	letters := func(s string) bool { return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == "" }
	return letters(group) && (!two || letters(part))
}

// WithLocks makes writers share locks with the other roots that have them; two threads in one workspace
// need that. who is shown to others who wait. It must be called before the first use.
func (r *Roots) WithLocks(locks *Locks, who string) *Roots {
	r.locks, r.who = locks, who
	return r
}

// Dir returns the directory of a root, or "" if there is no such root.
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

// trueDir returns the root's link-free directory, so that two roots that
// reach it by different names lock the same files.
func (o *openRoot) trueDir() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.real == "" {
		real, err := filepath.EvalSymlinks(o.Dir)
		if err != nil {
			return o.Dir // not created yet
		}
		o.real = real
	}
	return o.real
}

// handle opens the root's directory, once. It creates the directory only for a write.
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

// Place is a parsed path: a root and a clean path with forward slashes below it, or "." for the root itself.
type Place struct{ Root, Path string }

// String returns the canonical form of the place, for answers and action strings. "./"
// distinguishes a workspace file whose name begins with @ from a root.
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

// join returns a path below the place.
func (p Place) join(rel string) Place { return Place{p.Root, path.Join(p.Path, rel)} }

// Find parses a path as models write it, without touching the disk. The error is an answer for the model.
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
		for _, root := range r.names { // commands print, and skills mention, paths below CHORUS_ROOT_…
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

// grouped returns the files of the roots in a group.
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

// isDriveOrShare reports whether a name is a drive or a network share, which is
// never allowed here, even where the system would allow it.
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

// Access returns what the gate must judge when a call touches the path: its place, where its links lead if
// that is elsewhere, and the file's other names. For a path outside the roots, which is refused when the
// call runs, it returns the absolute path. For an empty path it returns nil.
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

// WriteAccess is Access for a call that changes the file together with others.
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

// resolvedAll returns where paths really lead, without those that lead nowhere.
func (r *Roots) resolvedAll(names []string) []Place {
	var out []Place
	for _, name := range names {
		if place, err := r.Find(name); err == nil {
			out = append(out, r.resolved(place))
		}
	}
	return out
}

// resolved returns where a place really is, with its links followed. What
// cannot be followed is refused when it is opened.
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

// Open opens a file or directory for reading. A pipe or device is refused before it can block.
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

// explain turns a file system error into an answer without host paths.
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
		return tool.Mistake(name + " is refused: a link in the path leads outside of the workspace.")
	case errors.Is(err, syscall.ENOTDIR):
		return tool.Mistake(name + ": a part of the path is not a directory.")
	case errors.Is(err, syscall.ELOOP):
		return tool.Mistake(name + ": too many links in the path.")
	}
	return tool.Mistake(name + ": " + inner.Error() + ".")
}
