package bwrap

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/gitsettings"
	"chorus/internal/sandbox"
)

// Git starts programs that a repository's own files name: hooks, and settings such as fsmonitor, sshCommand,
// aliases and filters. Anybody who uses git outside the sandbox would start whatever a command left there.
// Therefore commands can read these files but not change them; they can change everything else in a
// repository.
//
// Each of these files is a separate mount that cannot be written, renamed or removed. The folders above are
// mounts too, because otherwise they could be replaced. A file that does not exist cannot be mounted: it is
// created for the duration of the command (placeholder) or checked afterwards (watch).

// guard protects the repositories of the writable roots and those in folders below.
func (v *view) guard(trees *trees) error {
	var roots []string
	for _, m := range slices.Clone(v.mounts) {
		if m.cover != noCover || !m.writable || m.dest == homePath {
			continue
		}
		if info, err := os.Stat(m.source); err != nil || !info.IsDir() {
			continue
		}
		var err error
		if isGitDir(m.source) {
			err = v.guardGit(m.source)
		} else {
			err = v.guardTree(m.source)
		}
		if err != nil {
			return err
		}
		if !slices.Contains(roots, m.source) {
			roots = append(roots, m.source)
		}
	}
	for _, root := range roots {
		if slices.ContainsFunc(roots, func(other string) bool { return other != root && sandbox.Within(root, other) }) {
			continue // its repositories are found with those of the outer root
		}
		if err := v.guardNested(trees.of(root)); err != nil {
			return err
		}
	}
	return nil
}

// guardTree protects the repository whose files are in dir.
func (v *view) guardTree(dir string) error {
	v.watch(dir, newGit)
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Lstat(dotGit)
	switch {
	case err != nil:
		v.watch(dotGit, newRepository)
		return nil
	case info.Mode().IsRegular():
		v.keep(dotGit)
		gitDir := gitFile(dotGit)
		if common := mainRepository(dir); common != "" {
			gitDir = common
		}
		if gitDir == "" || !isGitDir(gitDir) {
			return nil
		}
		if err := v.guardGit(gitDir); err != nil {
			return err
		}
		v.guardNamed(gitsettings.Read(filepath.Join(gitDir, "config")), dir)
		return nil
	case info.Mode()&os.ModeSymlink != 0:
		v.watch(dotGit, link)
	}
	real, err := withoutLinks(dotGit)
	switch {
	case err != nil: // a dangling link
		return nil
	case !isGitDir(real):
		v.watch(real, newRepository)
		return nil
	}
	return v.guardGit(real)
}

// guardGit protects what git reads in its own folder, and the folders of submodules and worktrees there.
func (v *view) guardGit(gitDir string) error {
	if slices.Contains(v.guarded, gitDir) {
		return nil
	}
	v.guarded = append(v.guarded, gitDir)
	config := filepath.Join(gitDir, "config")
	says := gitsettings.Read(config)
	if err := v.keepOrCreate(config, false); err != nil {
		return err
	}
	if err := v.keepOrCreate(filepath.Join(gitDir, "hooks"), true); err != nil {
		return err
	}
	// Git takes its settings and hooks from where this file points.
	v.keepOrWatch(filepath.Join(gitDir, "commondir"))
	if err := v.guardWorktree(gitDir, says); err != nil {
		return err
	}
	v.guardNamed(says, gitsettings.Tree(gitDir))
	if err := v.guardWorktrees(gitDir, says); err != nil {
		return err
	}
	return v.guardModules(filepath.Join(gitDir, "modules"), 0)
}

// guardWorktree protects the settings of one worktree, which git reads only if the repository says so.
// If it does not, missing settings are looked for when the command has ended.
func (v *view) guardWorktree(gitDir string, says gitsettings.Settings) error {
	file := filepath.Join(gitDir, "config.worktree")
	if says.PerWorktree {
		return v.keepOrCreate(file, false)
	}
	v.keep(file)
	return nil
}

// guardWorktrees protects the links between the repository and its worktrees. A worktree
// that a command made below its workspace belongs to the command.
func (v *view) guardWorktrees(gitDir string, says gitsettings.Settings) error {
	all := filepath.Join(gitDir, "worktrees")
	v.watchLink(all)
	entries, _ := os.ReadDir(all)
	for _, entry := range entries {
		dir := filepath.Join(all, entry.Name())
		tree := filepath.Dir(line(filepath.Join(dir, "gitdir")))
		if !entry.IsDir() {
			v.watchLink(dir)
			continue
		}
		if v.writable(tree) && !v.has(tree) {
			v.noteWorktree(dir)
			continue
		}
		v.show(filepath.Join(tree, ".git"))
		v.keep(filepath.Join(dir, "commondir"))
		v.keep(filepath.Join(dir, "gitdir"))
		if err := v.guardWorktree(dir, says); err != nil {
			return err
		}
		if err := v.guardModules(filepath.Join(dir, "modules"), 0); err != nil {
			return err
		}
	}
	return nil
}

// show puts an empty file where the command would see nothing of a worktree. Git considers a worktree
// it cannot see as removed, and forgets it with everything that was staged there.
func (v *view) show(dotGit string) {
	if _, err := os.Lstat(dotGit); err != nil || !filepath.IsAbs(dotGit) {
		return // the worktree is gone
	}
	if top, ok := v.top(dotGit); ok && top.cover != coverDirectory {
		return
	}
	if slices.ContainsFunc(slices.Concat(system, never, []string{"/etc"}), func(dir string) bool { return sandbox.Within(dotGit, dir) }) {
		return
	}
	v.mounts = append(v.mounts, mount{dest: dotGit, cover: coverFile})
}

// deepest is how many slashes a submodule's name may have to be found.
const deepest = 4

func (v *view) guardModules(dir string, depth int) error {
	v.watchLink(dir)
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		var err error
		switch {
		case !entry.IsDir():
			v.watchLink(path)
		case isGitDir(path):
			err = v.guardGit(path)
		case depth < deepest: // part of a name
			err = v.guardModules(path, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep makes the path read-only wherever the command would find it writable, and pins the
// folders above it, up to the root that shows it. A path that does not exist needs nothing,
// and a root that somebody named stays as they named it.
func (v *view) keep(path string) {
	if info, err := os.Lstat(path); err != nil {
		return
	} else if info.Mode()&os.ModeSymlink != 0 {
		// Nothing can be mounted on a symlink, so its target is kept.
		v.watch(path, link)
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return
		}
	}
	for _, at := range v.places(path) {
		top, ok := v.top(at)
		if !ok || top.cover != noCover || !top.writable || top.dest == at || top.source+strings.TrimPrefix(at, top.dest) != path {
			continue
		}
		for dir, source := filepath.Dir(at), filepath.Dir(path); dir != top.dest; dir, source = filepath.Dir(dir), filepath.Dir(source) {
			v.mounts = append(v.mounts, mount{source: source, dest: dir, writable: true, guard: true})
		}
		v.mounts = append(v.mounts, mount{source: path, dest: at, guard: true})
		v.hold(path)
	}
}

// top returns the mount that determines a path in the view.
func (v *view) top(path string) (top mount, ok bool) {
	for _, m := range v.mounts {
		if sandbox.Within(path, m.dest) && (!ok || len(m.dest) >= len(top.dest)) {
			top, ok = m, true
		}
	}
	return top, ok
}

// keepOrCreate keeps the path, and creates it for the duration of the command if it does not exist.
func (v *view) keepOrCreate(path string, directory bool) error {
	if !slices.ContainsFunc(v.places(path), v.writableAt) {
		return nil
	}
	made, err := makePlaceholder(path, directory)
	if err != nil {
		return err
	}
	if made != nil {
		v.placeholders = append(v.placeholders, made)
	}
	v.keep(path)
	return nil
}

func (v *view) keepOrWatch(path string) {
	if _, err := os.Lstat(path); err != nil {
		v.watch(path, unexpected)
		return
	}
	v.keep(path)
}

// explains adds why a command could not change a guarded file: git itself only says that it is busy.
func (v *view) explains(res sandbox.Result) []string {
	met := strings.Contains(res.Output, "could not write config file") || strings.Contains(res.Output, "could not lock config file") ||
		strings.Contains(res.Output, "hooks") && strings.Contains(res.Output, "Read-only file system")
	if len(v.guarded) == 0 || !met {
		return nil
	}
	return []string{"[sandbox: a repository's .git/config and hooks can be read but not changed here, because git starts what they name. " +
		"Use `git -c name=value` for one command, or `git config --global` for all in this sandbox; branches and commits are not affected. " +
		"Whoever owns this Chorus may open them with sandboxGit: open]"}
}
