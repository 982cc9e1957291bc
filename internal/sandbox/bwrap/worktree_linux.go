package bwrap

import (
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/plainfile"
)

// mainRepository returns the .git directory of a git worktree's main repository, or "" if dir is no worktree.
// A command can write the worktree's .git file, so that file alone is not trusted: the main repository must
// name this worktree too, and anybody who could write there has access already.
func mainRepository(dir string) string {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Lstat(dotGit)
	if err != nil || !info.Mode().IsRegular() || info.Size() > smallFile {
		return ""
	}
	gitDir := gitFile(dotGit)
	if gitDir == "" {
		return ""
	}
	// <main>/.git/worktrees/<name>, or the same in a bare repository
	common := filepath.Dir(filepath.Dir(gitDir))
	if filepath.Base(filepath.Dir(gitDir)) != "worktrees" {
		return ""
	}
	back := line(filepath.Join(gitDir, "gitdir"))
	if !filepath.IsAbs(back) {
		back = filepath.Join(gitDir, back)
	}
	if real, err := filepath.EvalSymlinks(back); err != nil || real != dotGit {
		return ""
	}
	if !isGitDir(common) {
		return ""
	}
	return common
}

// gitFile returns the directory that a .git file names, or "".
func gitFile(dotGit string) string {
	dir, ok := strings.CutPrefix(line(dotGit), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(dotGit), dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	return real
}

// isGitDir reports whether git would take the directory for a git directory.
func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// smallFile is far larger than the files by which git leads from one folder to another.
const smallFile = 4096

// line returns a small file's text without the trailing newline.
func line(path string) string {
	data, err := plainfile.Read(path, smallFile)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}
