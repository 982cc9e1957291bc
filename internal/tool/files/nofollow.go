package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"chorus/internal/tool"
)

// Between the moment a call is judged and the moment it runs, another program may replace a folder by a link.
// Therefore a call checks again where its path leads, compares that with what was judged, and then opens the
// path name by name, each time from the open folder: no link that appears later can lead it elsewhere.

// errChanged means that the path to a file is not the one that was checked.
var errChanged = errors.New("a link or folder in the path has just been changed; nothing was done, try again")

// judged refuses a path that leads elsewhere than when the call was
// judged, or to a file that has gained other names since.
func judged(ctx context.Context, toolName string, place, real Place, git bool, names ...Place) error {
	touches := tool.CallFrom(ctx).Touches
	if touches == nil {
		return nil
	}
	for _, p := range append([]Place{place, real}, names...) {
		if !slices.Contains(touches, tool.Access{Tool: toolName, Detail: p.String(), Git: git}) {
			return tool.Mistake(place.String() + ": " + errChanged.Error() + ".")
		}
	}
	return nil
}

// enter opens a directory inside another one by a name that must not be a link.
// With create it makes the directory if it is missing.
func enter(at *os.Root, name string, create bool) (*os.Root, error) {
	info, err := at.Lstat(name)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = at.Mkdir(name, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
			info, err = at.Lstat(name)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errChanged
	case !info.IsDir():
		return nil, syscall.ENOTDIR
	}
	dir, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := dir.Stat("."); err != nil || !os.SameFile(info, now) {
		_ = dir.Close()
		return nil, errors.Join(errChanged, err)
	}
	return dir, nil
}

// parent opens the directory of a draft's file without following links,
// and reports whether it lies in a git directory.
func (r *Roots) parent(d draft, create bool) (dir *os.Root, git bool, err error) {
	root, err := r.roots[d.place.Root].handle(create)
	if err != nil {
		return nil, false, err
	}
	dir, err = root.OpenRoot(".")
	names := strings.Split(d.real, "/")
	for i, name := range names {
		if err != nil {
			return nil, false, err
		}
		git = git || isGitDir(func(part string) bool {
			_, err := dir.Lstat(part)
			return err == nil || strings.EqualFold(part, name)
		})
		if i == len(names)-1 {
			break
		}
		up := dir
		dir, err = enter(up, name, create)
		_ = up.Close()
	}
	return dir, git, err
}

// openParent is parent for a change: a directory that was no git
// directory when the call was judged must not be one now.
func (r *Roots) openParent(d draft, create bool) (dir *os.Root, name string, err error) {
	dir, git, err := r.parent(d, create)
	if err == nil && git && !d.git {
		_ = dir.Close()
		err = errChanged
	}
	if err != nil {
		return nil, "", r.explain(d.place, err)
	}
	return dir, path.Base(d.real), nil
}

// openReal opens a file or directory whose path has no links, for reading.
func (r *Roots) openReal(d draft) (*os.File, fs.FileInfo, error) {
	dir, _, err := r.parent(d, false)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	name := path.Base(d.real)
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		return nil, nil, errChanged
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errChanged
	}
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = tool.Mistake(d.place.String() + " is neither a file nor a directory.")
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// OpenJudged opens a file or directory for reading for a call that was judged,
// provided that its path still leads where it led then.
func (r *Roots) OpenJudged(ctx context.Context, toolName string, place Place) (*os.File, fs.FileInfo, error) {
	root, err := r.roots[place.Root].handle(false)
	if err != nil {
		return nil, nil, r.explain(place, err)
	}
	real, err := r.roots[place.Root].realPath(root, place.Path)
	if err != nil {
		return nil, nil, r.explain(place, err)
	}
	if err := judged(ctx, toolName, place, Place{place.Root, real}, false, r.otherNames(Place{place.Root, real})...); err != nil {
		return nil, nil, err
	}
	if r.Hider(ctx).Hides(Entry{Place: place, Real: Place{place.Root, real}}) {
		return nil, nil, tool.Mistake(place.String() + " is refused: a rule keeps it from being read.")
	}
	file, info, err := r.openReal(draft{place: place, real: real})
	if err != nil {
		return nil, nil, r.explain(place, err)
	}
	return file, info, nil
}

// OpenEntry opens a file that a walk has met, if it still exists and no link has replaced it.
func (r *Roots) OpenEntry(e Entry) (*os.File, fs.FileInfo, error) {
	file, info, err := r.openReal(draft{place: e.Place, real: e.Real.Path})
	if err != nil {
		return nil, nil, r.explain(e.Place, err)
	}
	return file, info, nil
}

// isGitDir reports whether git takes a folder for a repository's own: one like .git, a bare repository, or
// the folder of a worktree or submodule. Its settings and hooks name programs that git starts.
func isGitDir(has func(name string) bool) bool {
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// inGitDir reports whether a link-free path lies in a git directory,
// or would once the other paths are written.
func (r *Roots) inGitDir(real Place, others ...Place) bool {
	root, err := r.roots[real.Root].handle(false)
	if err != nil {
		return false
	}
	for at := path.Dir(real.Path); ; at = path.Dir(at) {
		if isGitDir(func(name string) bool {
			if _, err := root.Lstat(filepath.FromSlash(path.Join(at, name))); err == nil {
				return true
			}
			return slices.ContainsFunc(append(others, real), func(p Place) bool {
				rest, below := strings.CutPrefix(p.Path, at+"/")
				if at == "." {
					rest, below = p.Path, true
				}
				first, _, _ := strings.Cut(rest, "/")
				return p.Root == real.Root && below && strings.EqualFold(first, name)
			})
		}) {
			return true
		}
		if at == "." {
			return false
		}
	}
}
