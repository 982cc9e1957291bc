package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"chorus/internal/tool"
)

// commit writes the plan, removals last, so that a crash in the middle loses
// nothing. If a write fails, earlier ones are undone.
func (p *plan) commit() error {
	var undo []func() error
	order := slices.Clone(p.order)
	slices.SortStableFunc(order, func(a, b *file) int {
		switch {
		case a.present == b.present:
			return 0
		case a.present:
			return -1
		}
		return 1
	})
	for _, f := range order {
		if !f.changed() {
			continue
		}
		made, err := p.roots.missing(f.draft)
		if err == nil {
			err = p.write(f)
		}
		if err == nil {
			undo = append(undo, func() error { return p.takeBack(f, made) })
			continue
		}
		p.removeDirs(f, made)
		var failed error
		for _, step := range slices.Backward(undo) {
			failed = errors.Join(failed, step())
		}
		if failed != nil {
			return tool.Mistake(fmt.Sprintf("%s The patch was partly applied and could not be undone completely: %s", err, failed))
		}
		return tool.Mistake(err.Error() + " Nothing was changed.")
	}
	return nil
}

func (p *plan) write(f *file) error {
	if !f.present {
		return p.roots.drop(f.draft)
	}
	d := f.draft
	if d.exists && d.mode&0o200 == 0 {
		return tool.Mistake(d.place.String() + " is write-protected (mode " + d.mode.String() + ").")
	}
	if f.perm != 0 {
		d.mode = f.perm
	}
	d.exists = false // its write protection was already checked
	return p.roots.save(d, f.content)
}

// takeBack restores a file and removes directories that were created.
func (p *plan) takeBack(f *file, made []string) error {
	now, err := p.roots.load(f.draft)
	if err != nil {
		return err
	}
	switch {
	case f.exists && (!now.exists || now.old != f.old || now.mode != f.mode):
		d := f.draft
		d.exists = false
		err = p.roots.save(d, f.old)
	case !f.exists && now.exists:
		err = p.roots.drop(now)
	}
	if err == nil {
		p.removeDirs(f, made)
	}
	return err
}

// removeDirs removes directories that were created for a file, deepest
// first. A directory that is not empty is no longer ours.
func (p *plan) removeDirs(f *file, made []string) {
	for _, dir := range made {
		_ = p.roots.drop(draft{place: f.place, real: dir, git: f.git})
	}
}

// isLink reports whether the last part of the path is a symbolic link.
func (r *Roots) isLink(place Place) bool {
	root, err := r.roots[place.Root].handle(false)
	if err != nil {
		return false
	}
	info, err := root.Lstat(filepath.FromSlash(place.Path))
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// drop removes a file.
func (r *Roots) drop(d draft) error {
	dir, name, err := r.openParent(d, false)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Remove(name); err != nil {
		return r.explain(d.place, err)
	}
	return nil
}

// missing lists the directories that saving would create, deepest first.
func (r *Roots) missing(d draft) ([]string, error) {
	var dirs []string
	root, err := r.roots[d.place.Root].handle(true)
	if err != nil {
		return nil, r.explain(d.place, err)
	}
	for dir := path.Dir(d.real); dir != "."; dir = path.Dir(dir) {
		if _, err := root.Lstat(filepath.FromSlash(dir)); err == nil {
			break
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}
