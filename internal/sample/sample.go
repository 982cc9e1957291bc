// Package sample is a small project for trying Chorus: a shell script with a bug, and tests that find it. It only needs a
// shell, and the offline model can fix it, so a newcomer sees an agent at work without any key.
package sample

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed project
var files embed.FS

// gitTime is more than git needs for three files.
const gitTime = 10 * time.Second

// Write creates the project in dir, which must exist. It leaves an existing file alone and returns an error that names it.
// If git is installed the project becomes a repository with one commit, so that changes are visible; everything else works without git.
func Write(ctx context.Context, dir string) error {
	project, err := fs.Sub(files, "project")
	if err != nil {
		return err
	}
	err = fs.WalkDir(project, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(project, name)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		if _, err := f.Write(data); err != nil {
			f.Close()
			return err
		}
		return f.Close()
	})
	if err != nil {
		return fmt.Errorf("lay out the sample project: %w", err)
	}
	commit(ctx, dir)
	return nil
}

// commit makes the folder a repository, if possible.
func commit(ctx context.Context, dir string) {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	for _, args := range [][]string{
		{"init", "-q", "--template=", "--initial-branch=main"},
		{"add", "-A"},
		{"-c", "user.name=Chorus", "-c", "user.email=chorus@localhost", "-c", "commit.gpgSign=false", "commit", "-q", "-m", "A bill splitter with a bug"},
	} {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=/dev/null"}, args...)...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0"}
		if cmd.Run() != nil {
			return
		}
	}
}
