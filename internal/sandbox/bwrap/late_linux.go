package bwrap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/gitsettings"
	"chorus/internal/plainfile"
)

// Somebody outside may add a worktree or a submodule to a repository while a command runs. Git keeps its
// files in the repository's own folder, which the command can write and where no mount covers them yet.
// Therefore they are checked when the command has ended: a worktree must lead to its own repository and
// nowhere else, and of new settings and hooks only those stay that start nothing. The same goes for
// worktrees that commands made themselves, which have no mounts either.

// settleLate fixes what the repositories contain now but had no mount while the command ran.
func (v *view) settleLate() (notes []string, err error) {
	for _, gitDir := range v.guarded {
		if !slices.ContainsFunc(v.places(gitDir), v.writableAt) {
			continue
		}
		found, failed := v.lateIn(gitDir)
		if notes = append(notes, found...); failed != nil {
			return notes, fmt.Errorf("look at what the command left in %s: %w", gitDir, failed)
		}
	}
	return notes, nil
}

func (v *view) lateIn(gitDir string) (notes []string, err error) {
	say := func(note string, failed error) {
		if note != "" {
			notes = append(notes, note)
		}
		err = errors.Join(err, failed)
	}
	say(v.lateSettings(gitDir, gitDir))
	for _, dir := range v.lateFolders(filepath.Join(gitDir, "worktrees"), say) {
		say(v.lateCommondir(dir, gitDir))
		say(v.lateSettings(dir, gitDir))
		v.lateModules(filepath.Join(dir, "modules"), 0, say)
	}
	v.lateModules(filepath.Join(gitDir, "modules"), 0, say)
	return notes, err
}

// lateFolders returns the folders in dir. A link among them, or in place of
// dir, is set aside because it leads git elsewhere.
func (v *view) lateFolders(dir string, say func(string, error)) (folders []string) {
	isLink := func(path string, mode fs.FileMode) bool {
		if mode&fs.ModeSymlink == 0 {
			return false
		}
		if !v.holds(path) {
			say(setAsideAll(filepath.Dir(path), []string{path}, nil))
		}
		return true
	}
	info, err := os.Lstat(dir)
	if err != nil || isLink(dir, info.Mode()) {
		return nil
	}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if path := filepath.Join(dir, entry.Name()); !isLink(path, entry.Type()) && entry.IsDir() {
			folders = append(folders, path)
		}
	}
	return folders
}

// lateCommondir makes a worktree's folder lead to its own repository again.
func (v *view) lateCommondir(dir, gitDir string) (note string, err error) {
	file := filepath.Join(dir, "commondir")
	write := func() error { return os.WriteFile(file, []byte("../..\n"), 0o644) }
	info, err := os.Lstat(file)
	switch {
	case v.holds(file):
		return "", nil
	case errors.Is(err, fs.ErrNotExist) && !exists(filepath.Join(dir, "HEAD")):
		return "", nil // git does not see a worktree here
	case errors.Is(err, fs.ErrNotExist): // it would be a separate repository with its own settings and hooks
		return fmt.Sprintf("[sandbox: %s was restored: without it git outside the sandbox would have started what the folder names]", file), write()
	case err != nil:
		return "", err
	case info.Mode().IsRegular():
		to := strings.TrimRight(line(file), "\r\n")
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		if real, err := withoutLinks(to); err == nil && real == gitDir {
			return "", nil
		}
	}
	return setAsideAll(gitDir, []string{file}, write)
}

// lateSettings checks the settings of one worktree, or the repository's own, if there was nothing to
// mount. Git reads them as soon as the repository's settings say so, which `git sparse-checkout`
// arranges by itself. A new worktree has a copy of the repository's settings.
func (v *view) lateSettings(dir, gitDir string) (note string, err error) {
	file := filepath.Join(dir, "config.worktree")
	status, err := statusOf(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) || v.holds(file):
		return "", nil
	case err != nil:
		return "", err
	case v.before[dir].files[0] == fileTime{idOf(status), status.Ctime}:
		return "", nil // written by a person
	}
	var before []byte
	if dir != gitDir {
		before, _ = plainfile.Read(filepath.Join(gitDir, "config.worktree"), gitsettings.MaxSize)
	}
	kept, all := harmlessSettings(file, before)
	if all {
		return "", nil
	}
	return setAsideAll(gitDir, []string{file}, func() error {
		if kept == "" {
			return nil
		}
		return os.WriteFile(file, []byte(kept), 0o644)
	})
}

// lateModules checks the folders of submodules that appeared while the command ran.
func (v *view) lateModules(dir string, depth int, say func(string, error)) {
	for _, path := range v.lateFolders(dir, say) {
		switch {
		case slices.Contains(v.guarded, path): // checked separately
		case isGitDir(path):
			if before, ok := v.before[path]; !ok || !stateOf(path).same(before) {
				say(clearGitDir(path, filepath.Dir(path)))
			}
			v.lateModules(filepath.Join(path, "modules"), depth, say)
		case depth < deepest:
			v.lateModules(path, depth+1, say)
		}
	}
}

// noteWorktree remembers the unmounted files that git reads in a worktree's folder, to
// tell what was there before the command from what came while it ran.
func (v *view) noteWorktree(dir string) {
	v.note(dir)
	v.noteModules(filepath.Join(dir, "modules"), 0)
}

func (v *view) noteModules(dir string, depth int) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case !entry.IsDir():
			v.watchLink(path)
		case isGitDir(path):
			v.note(path)
			v.noteModules(filepath.Join(path, "modules"), depth)
		case depth < deepest:
			v.noteModules(path, depth+1)
		}
	}
}

func (v *view) note(dir string) {
	if v.before == nil {
		v.before = map[string]gitState{}
	}
	v.before[dir] = stateOf(dir)
}
