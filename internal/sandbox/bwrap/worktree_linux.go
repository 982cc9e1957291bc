package bwrap

import (
	"os"
	"path/filepath"
	"strings"
)

// mainRepository is the .git directory that a git worktree lives from; empty when
// dir is none. A command can write the worktree's .git file, so it is not believed:
// the main repository must name this very worktree too, and whoever could write
// there needed no lie.
func mainRepository(dir string) string {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Lstat(dotGit)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
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

// gitFile is where a .git that is a file leads to; empty when it leads nowhere.
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

// isGitDir says whether git would take the directory for its own.
func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// line is a small file's text without the newline at its end.
func line(path string) string {
	data, err := os.ReadFile(path)
	if err != nil || len(data) > 4096 {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}
