//go:build linux

package bwrap_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"chorus/internal/polltest"
	"chorus/internal/sandbox"
)

// TestOwnRepositoriesBelow: what a command clones into its workspace, a later one can use, change as far
// as that is harmless, and delete.
func TestOwnRepositoriesBelow(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base, _ := attack{}.prepare(t)
	for _, step := range []string{
		"git clone -q . copy", "cd copy && git config user.name own && git config user.email own@example.com && git commit -q --allow-empty -m x && git remote add up /nowhere",
		"git -C copy worktree add -q ../tree && git -C tree commit -q --allow-empty -m y", "mv copy moved && mv moved copy", "rm -rf copy tree",
	} {
		if res := run(t, ex, sandbox.Command{Shell: step, Dir: filepath.Join(base, "ws")}); res.ExitCode != 0 || len(res.Notes) != 0 {
			t.Errorf("%s: %+v", step, res)
		}
	}
}

// TestPeoplesRepositoriesBelow: what somebody sets up outside stays, also between two commands, and can be
// changed from then on only outside.
func TestPeoplesRepositoriesBelow(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base, _ := attack{setup: "git init -q first; git -C first config alias.x '!true'; git init -q second"}.prepare(t)
	ws := filepath.Join(base, "ws")
	run(t, ex, sandbox.Command{Shell: "true", Dir: ws})
	outsideGit(t, ws, "git -C second config alias.x '!true'; git init -q third; git -C third config alias.x '!true'")
	settled(t, filepath.Join(ws, "third/.git/config"))
	for _, dir := range []string{"first", "second", "third"} {
		res := run(t, ex, sandbox.Command{Shell: "git -C " + dir + " -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x", Dir: ws})
		if res.ExitCode != 0 || len(res.Notes) != 0 || outsideGit(t, ws, "git -C "+dir+" config alias.x") != "!true\n" {
			t.Errorf("%s: %+v", dir, res)
		}
		res = run(t, ex, sandbox.Command{Shell: "git -C " + dir + " config alias.x '!false'", Dir: ws})
		if res.ExitCode == 0 || !strings.Contains(strings.Join(res.Notes, ""), "sandboxGit: open") {
			t.Errorf("%s: %+v", dir, res)
		}
	}
}

// settled waits until a file is older than what a command that starts now could have written.
func settled(t *testing.T, path string) {
	t.Helper()
	var stat syscall.Stat_t
	if err := syscall.Lstat(path, &stat); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "time passes", func() bool { return time.Since(time.Unix(stat.Ctim.Unix())) > 50*time.Millisecond })
}

// TestTwoCommandsBelow: what one command leaves is found although another one, that began later, ended before it.
func TestTwoCommandsBelow(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	base, fill := attack{}.prepare(t)
	ws := filepath.Join(base, "ws")
	end, started, done := filepath.Join(ws, "end"), make(chan struct{}), make(chan sandbox.Result, 1)
	if err := syscall.Mkfifo(end, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		up := sync.OnceFunc(func() { close(started) })
		res, _ := ex.Run(t.Context(), sandbox.Command{Dir: ws, Shell: fill("git init -q sub; EVIL >> sub/.git/config; echo up; read nothing < end"), OnOutput: func(string) { up() }})
		done <- res
	}()
	<-started
	settled(t, filepath.Join(ws, "sub/.git/config"))
	first := run(t, ex, sandbox.Command{Shell: "true", Dir: ws})
	if err := os.WriteFile(end, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := <-done
	if notes := strings.Join(append(first.Notes, second.Notes...), ""); !strings.Contains(notes, "sub/.git/config.from-sandbox-1") {
		t.Errorf("not told: %q", notes)
	}
	if (attack{used: "ws/sub"}).use(t, base) {
		t.Error("git outside started it")
	}
}

// TestPipesInPlaceOfGitFiles: what a command leaves where git would have a small file is looked at without waiting for
// somebody who writes to it, after that command and before the next one.
func TestPipesInPlaceOfGitFiles(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]string{
		"a .git":          "mkdir p && mkfifo p/.git",
		"a common folder": "git init -q p && mkfifo p/.git/commondir",
		"a worktree's":    "git init -q p && git -C p -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x && git -C p worktree add -q ../q && rm p/.git/worktrees/q/gitdir && mkfifo p/.git/worktrees/q/gitdir",
		"settings":        "git init -q p && rm p/.git/config && mkfifo p/.git/config",
		"a tree's":        "git init -q p && mkfifo p/.git/config.worktree",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ex := with(t, options(t))
			base, _ := attack{}.prepare(t)
			ws, done := filepath.Join(base, "ws"), make(chan struct{})
			go func() {
				defer close(done)
				for _, step := range []string{leave, "true", "cd p && ls", "rm -rf p q"} {
					if res, err := ex.Run(t.Context(), sandbox.Command{Shell: step, Dir: ws}); err != nil || res.ExitCode != 0 {
						t.Errorf("%s: %+v, %v", step, res, err)
					}
				}
			}()
			select {
			case <-done:
			case <-time.After(2 * time.Minute):
				t.Fatal("the pipe is waited for")
			}
		})
	}
}
