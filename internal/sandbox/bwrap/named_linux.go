package bwrap

import (
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/gitsettings"
)

// A repository's settings may name a hooks folder and further settings files elsewhere, often among the files
// that people work on. Those are kept like the repository's own. A missing one offers no place for a mount
// and is not created, because people would see it; it is looked for when the command has ended.

// guardNamed protects what the settings name, for the working tree whose top is tree.
func (v *view) guardNamed(says gitsettings.Settings, tree string) {
	hooks, files := says.Named(tree)
	for _, path := range hooks {
		v.keepNamed(path, newHooks)
	}
	for _, path := range files {
		v.keepNamed(path, newSettings)
	}
}

func (v *view) keepNamed(path string, kind kind) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		v.keep(real)
		return
	}
	// The command does not control the part of the path that exists.
	base := path
	for !exists(base) {
		base = filepath.Dir(base)
	}
	real, err := withoutLinks(base)
	if err != nil {
		return // a dangling link
	}
	v.watchBelow(real, real+strings.TrimPrefix(path, base), kind)
}

// settleNamed sets aside hooks and settings that a command made where the repository looks for them.
func (w watched) settleNamed() (note string, err error) {
	if _, err := os.Stat(w.path); err != nil {
		return "", nil
	}
	var kept string
	if w.kind == newHooks && !hasHooks(w.path) {
		return "", nil
	}
	if w.kind == newSettings {
		all := false
		if kept, all = harmlessSettings(w.path, nil); all {
			return "", nil
		}
	}
	// A link on the way leads to files that may not be the command's.
	for at := w.path; at != w.below; at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return setAsideAll(w.below, []string{at}, nil)
		}
	}
	return setAsideAll(w.below, []string{w.path}, func() error {
		if kept == "" {
			return nil
		}
		return os.WriteFile(w.path, []byte(kept), 0o644)
	})
}
