package files

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/gitsettings"
	"chorus/internal/plainfile"
)

// gitAsks reports whether git considers a link-free path when it decides what to start: the path lies in a
// git directory, or would once the other paths are written, or a repository's settings name it.
func (r *Roots) gitAsks(real Place, others ...Place) bool {
	return r.inGitDir(real, others...) || r.namedByGit(real)
}

// namedByGit reports whether a path is a hook or settings file outside .git that the
// settings of an enclosing repository name (core.hooksPath, include.path).
func (r *Roots) namedByGit(real Place) bool {
	file := filepath.Join(r.roots[real.Root].trueDir(), filepath.FromSlash(real.Path))
	for tree := filepath.Dir(file); ; tree = filepath.Dir(tree) {
		if config := gitConfig(tree); config != "" {
			hooks, files := gitsettings.Read(config).Named(tree)
			isHook := slices.ContainsFunc(hooks, func(dir string) bool { return below(file, dir) || below(file, withoutLinks(dir)) })
			if isHook || slices.ContainsFunc(files, func(name string) bool { return name == file || withoutLinks(name) == file }) {
				return true
			}
		}
		if tree == filepath.Dir(tree) {
			return false
		}
	}
}

// gitConfig returns the settings file of the repository whose working tree is tree, or "".
func gitConfig(tree string) string {
	dotGit := filepath.Join(tree, ".git")
	info, err := os.Stat(dotGit)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return filepath.Join(dotGit, "config")
	}
	dir, ok := strings.CutPrefix(smallText(dotGit), "gitdir: ")
	if !ok {
		return ""
	}
	if dir = filepath.FromSlash(dir); !filepath.IsAbs(dir) {
		dir = filepath.Join(tree, dir)
	}
	if common := smallText(filepath.Join(dir, "commondir")); common != "" {
		if dir = filepath.Join(dir, common); filepath.IsAbs(common) {
			dir = common
		}
	}
	return filepath.Join(dir, "config")
}

// smallText returns the single line in one of git's small files, or "" if there is more.
func smallText(name string) string {
	data, err := plainfile.Read(name, 4096)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(data), "\r\n")
}

func withoutLinks(name string) string {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return name
	}
	return real
}

func below(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel) && path.Clean(filepath.ToSlash(rel)) != "."
}
