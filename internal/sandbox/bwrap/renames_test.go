//go:build linux

package bwrap_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"chorus/internal/sandbox"
)

// TestRenamesFromOutside: somebody moves a repository, or what is guarded in it, or adds to it, while a command runs. What that
// command then writes there is still started by nobody.
func TestRenamesFromOutside(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	const person = `git init -q sub; git -C sub config alias.st status`
	const (
		add = `git worktree add -q ../late`
		// A folder that only a worktree can be led to: one with a HEAD is found by itself.
		evil       = `cp -r .git evil; rm -r evil/HEAD evil/worktrees; EVIL >> evil/config; `
		submodules = `git -c protocol.file.allow=always submodule --quiet add "$PWD" sub; git commit -q -m sub; `
		update     = `git -C ../late -c protocol.file.allow=always submodule --quiet update --init`
	)
	for name, c := range map[string]struct{ setup, outside, inside, used string }{
		"a repository below":         {person, `mv sub sub2`, `EVIL >> sub2/.git/config; EVIL >> sub/.git/config`, "ws/sub2"},
		"its .git":                   {person, `mv sub/.git x; mv x sub/.git`, `EVIL >> sub/.git/config`, "ws/sub"},
		"a folder above it":          {`mkdir -p a/b; cd a/b; ` + person, `mv a z`, `EVIL >> z/b/sub/.git/config`, "ws/z/b/sub"},
		"the .git of the workspace":  {``, `mv .git x; mv x .git`, `EVIL >> .git/config; printf '#!/bin/sh\ntouch PROOF\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`, "ws"},
		"the hooks":                  {``, `mv .git/hooks .git/h; mv .git/h .git/hooks`, `printf '#!/bin/sh\ntouch PROOF\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`, "ws"},
		"the settings":               {``, `mv .git/config .git/c; mv .git/c .git/config`, `EVIL >> .git/config`, "ws"},
		"the workspace":              {``, `mv ../ws ../ws2`, `EVIL >> .git/config`, "ws2"},
		"another one into its place": {``, `cp -a ../ws ../ws3; mv ../ws ../old; mv ../ws3 ../ws`, `EVIL >> .git/config`, "old"},
		"a clone that was not there": {``, `git clone -q . late; git -C late config alias.st status`, `EVIL >> late/.git/config`, "ws/late"},
		"a worktree's way back":      {``, add, evil + `echo $PWD/evil > .git/worktrees/late/commondir`, "late"},
		"a worktree's own settings":  {`git config extensions.worktreeConfig true`, add, `EVIL >> .git/worktrees/late/config.worktree`, "late"},
		"a worktree by itself":       {``, add, `cd .git/worktrees/late; rm commondir; cp -r ../../objects ../../refs ../../config .; EVIL >> config`, "late"},
		"a linked worktree":          {``, add, evil + `cp -r .git/worktrees/late w; echo $PWD/evil > w/commondir; rm -r .git/worktrees/late; ln -s $PWD/w .git/worktrees/late`, "late"},
		"linked worktrees":           {``, add, evil + `cp -r .git/worktrees w; echo $PWD/evil > w/late/commondir; rm -r .git/worktrees; ln -s $PWD/w .git/worktrees`, "late"},
		"a worktree's new submodule": {submodules + add, update, `EVIL >> .git/worktrees/late/modules/sub/config`, "late"},
		"a new worktree's submodule": {submodules, add + `; ` + update, `EVIL >> .git/worktrees/late/modules/sub/config`, "late"},
	} {
		base, fill := attack{setup: c.setup}.prepare(t)
		ws := filepath.Join(base, "ws")
		moved := sync.OnceFunc(func() {
			outsideGit(t, ws, c.outside)
			for _, dir := range []string{"ws", "ws2", "old"} { // wherever it is now
				_ = os.WriteFile(filepath.Join(base, dir, "go"), nil, 0o600)
			}
		})
		res := run(t, ex, sandbox.Command{Merge: true, Dir: ws, Shell: fill("echo up; until test -e go; do sleep 0.01; done; " + c.inside + "; echo tried"), OnOutput: func(string) { moved() }})
		if !strings.HasSuffix(res.Output, "tried\n") {
			t.Errorf("%s: the attempt itself is broken: %+v", name, res)
		}
		if (attack{used: c.used}).use(t, base) {
			t.Errorf("%s: git outside started it: %+v", name, res)
		}
	}
}

// TestSettingsBeforeTheyCount: a worktree's settings count only where the repository says so, which git itself does as soon as
// somebody outside wants part of the files. What a command wrote there before that is started by nobody.
func TestSettingsBeforeTheyCount(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	for name, c := range map[string]struct{ setup, inside, used string }{
		"the repository's": {``, `EVIL >> .git/config.worktree`, "ws"},
		"a worktree's":     {`git worktree add -q ../tree`, `EVIL >> .git/worktrees/tree/config.worktree`, "tree"},
	} {
		base, fill := attack{setup: c.setup}.prepare(t)
		ws := filepath.Join(base, "ws")
		res := run(t, ex, sandbox.Command{Merge: true, Dir: ws, Shell: fill(c.inside)})
		outsideGit(t, ws, `git config extensions.worktreeConfig true`)
		if (attack{used: c.used}).use(t, base) || len(res.Notes) != 1 {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

// TestWorktreesFromOutside: a worktree that somebody adds while a command runs, and one that the command makes, stay as they are
// where nobody wrote what starts a program.
func TestWorktreesFromOutside(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base, _ := attack{setup: `git config extensions.worktreeConfig true; git config --worktree alias.st status; git worktree add -q part; git -C part config --worktree alias.x y`}.prepare(t)
	ws := filepath.Join(base, "ws")
	const state = `cd .git; cat worktrees/late/config.worktree worktrees/late/commondir worktrees/part/config.worktree; find . -name '*from-sandbox*'`
	add := sync.OnceFunc(func() { outsideGit(t, ws, `git worktree add -q ../late; touch go`) })
	const shell = "echo up; until test -e go; do sleep 0.01; done; git -C part status --short"
	for range 2 {
		res := run(t, ex, sandbox.Command{Merge: true, Dir: ws, Shell: shell, OnOutput: func(string) { add() }})
		if len(res.Notes) != 0 || res.ExitCode != 0 {
			t.Errorf("%+v", res)
		}
		if got, want := outsideGit(t, ws, state), "[alias]\n\tst = status\n../..\n[alias]\n\tst = status\n\tx = y\n"; got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
}
