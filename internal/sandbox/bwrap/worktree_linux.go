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
	gitDir, ok := strings.CutPrefix(line(dotGit), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(gitDir) {
		gitDir = filepath.Join(dir, gitDir)
	}
	gitDir, err = filepath.EvalSymlinks(gitDir)
	if err != nil {
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
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(common, name)); err != nil {
			return ""
		}
	}
	return common
}

// line is a small file's text without the newline at its end.
func line(path string) string {
	data, err := os.ReadFile(path)
	if err != nil || len(data) > 4096 {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}
