package bwrap

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// watched is a path on which nothing can be mounted, because it is a symlink or does not
// exist. What a command did to it is undone when the command has ended.
type watched struct {
	path   string
	kind   kind
	target string // of a link
	below  string // for paths that settings name: the folder that existed
}

type kind uint8

const (
	unexpected    kind = iota // nothing was there, and git itself never creates it
	link                      // it was a symlink
	newRepository             // there was no repository, but there may be one now
	newHooks                  // a hooks folder that settings name
	newSettings               // a settings file that settings name
	newGit                    // a folder that was not a git directory: git falls back on it if it finds no usable .git
)

func (v *view) watch(path string, kind kind) {
	w := watched{path: path, kind: kind}
	if kind == link {
		w.target, _ = os.Readlink(path)
	}
	v.addWatch(w)
}

// watchBelow is watch for what settings name.
func (v *view) watchBelow(below, path string, kind kind) {
	v.addWatch(watched{path: path, kind: kind, below: below})
}

func (v *view) addWatch(w watched) {
	if !slices.Contains(v.watches, w) && slices.ContainsFunc(v.places(w.path), v.writableAt) {
		v.watches = append(v.watches, w)
	}
}

// watchLink watches the path if it is a symlink.
func (v *view) watchLink(path string) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		v.watch(path, link)
	}
}

// writableAt reports whether the command can change what it sees at the path.
func (v *view) writableAt(path string) bool {
	top, ok := v.top(path)
	return ok && top.writable && top.cover == noCover
}

// settle checks what was watched and returns what had to be undone.
func (v *view) settle() (notes []string, err error) {
	if notes, err = v.settleNested(); err != nil {
		return notes, err
	}
	for _, w := range v.watches {
		note, failed := w.settle()
		if failed != nil {
			return notes, fmt.Errorf("look at what the command left in %s: %w", w.path, failed)
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	for _, h := range v.held {
		note, failed := h.settle()
		if failed != nil {
			return notes, fmt.Errorf("look at what became of %s: %w", h.path, failed)
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	late, err := v.settleLate()
	return append(notes, late...), err
}

func (w watched) settle() (note string, err error) {
	info, err := os.Lstat(w.path)
	there := err == nil
	switch {
	case w.kind == newHooks || w.kind == newSettings:
		return w.settleNamed()
	case w.kind == newRepository:
		return clearNewRepository(w.path)
	case w.kind == newGit && isGitDir(w.path):
		return clearGitDir(w.path, filepath.Dir(w.path))
	case w.kind == unexpected && there:
		if _, err := setAside(w.path); err != nil {
			return "", err
		}
		return fmt.Sprintf("[sandbox: %s was moved away: git outside the sandbox would have started what it leads to]", w.path), nil
	case w.kind == link && there && info.Mode()&os.ModeSymlink != 0:
		if target, err := os.Readlink(w.path); err == nil && target == w.target {
			return "", nil
		}
		fallthrough
	case w.kind == link:
		if there {
			if _, err := setAside(w.path); err != nil {
				return "", err
			}
		}
		if err := os.Symlink(w.target, w.path); err != nil {
			return "", err
		}
		return fmt.Sprintf("[sandbox: %s points to %s again: git outside the sandbox starts what it finds there]", w.path, w.target), nil
	}
	return "", nil
}

// setAside renames what is at the path to a name under which git does not look for it.
func setAside(path string) (string, error) {
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.from-sandbox-%d", filepath.Clean(path), n)
		if _, err := os.Lstat(aside); err == nil {
			continue
		}
		return aside, os.Rename(path, aside)
	}
}
