package bwrap

import (
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/gitsettings"
)

// A repository's settings may name a folder of hooks and files of more settings elsewhere, often among the files that people
// work on. Those are kept as the repository's own are. What is not there has no place for a mount and is not made, since
// people would see it: it is looked for when the command has ended.

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
	// What is there of the way to it is not the command's.
	base := path
	for !exists(base) {
		base = filepath.Dir(base)
	}
	real, err := withoutLinks(base)
	if err != nil {
		return // a link that leads nowhere
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
	// A link on the way leads to files that are perhaps not the command's.
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
