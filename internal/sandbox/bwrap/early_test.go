//go:build linux

package bwrap_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"chorus/internal/polltest"
	"chorus/internal/programtest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap"
)

// TestStartEarly: a command finds the sandbox that was put up for it, and never one that is not what it should be.
func TestStartEarly(t *testing.T) {
	t.Parallel()
	opts := own(t)
	ex := with(t, opts)
	probed := processes(t, opts, bwrap.InitArg)
	ours := func() []int {
		return slices.DeleteFunc(processes(t, opts, bwrap.InitArg), func(pid int) bool { return slices.Contains(probed, pid) })
	}
	dir := t.TempDir()
	command := sandbox.Command{Shell: "echo works", Dir: dir}
	ex.StartEarly(t.Context(), command)
	early := ours()
	if len(early) != 1 {
		t.Fatalf("%d sandboxes were put up", len(early))
	}
	ex.StartEarly(t.Context(), command) // one waits
	if res := run(t, ex, command); res.Stdout != "works\n" || !slices.Equal(ours(), early) {
		t.Errorf("%+v in %v, and %v was put up", res, ours(), early)
	}
	// Another folder has the name by now.
	if err := errors.Join(os.Rename(dir, dir+"-old"), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	if res := run(t, ex, sandbox.Command{Shell: "touch here", Dir: dir}); res.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
	if _, err := os.Stat(filepath.Join(dir, "here")); err != nil {
		t.Errorf("the command ran in the folder of before: %v", err)
	}
	// Nothing stays that could not be used, or that nobody could use.
	command.Dir = t.TempDir()
	if out, err := exec.Command("sh", "-ec", "cd '"+command.Dir+"'; git init -q .; rm -rf .git/hooks").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	before := ex.Waiting()
	ex.StartEarly(t.Context(), command)
	ex.StartEarly(t.Context(), sandbox.Command{Dir: filepath.Join(dir, "none")})
	if _, err := os.Stat(filepath.Join(command.Dir, ".git", "hooks")); err == nil || ex.Waiting() != before {
		t.Errorf("a folder was left (%v), or %d sandboxes wait and before there were %d", err, ex.Waiting(), before)
	}
	ex.Close()
	ex.StartEarly(t.Context(), sandbox.Command{Dir: dir})
	if left := processes(t, opts, bwrap.InitArg); len(left) > 0 {
		t.Errorf("after its end: %v", left)
	}
}

// TestStartEarlyEnds: one that is given up while it is put up is taken down at once, and the command has its own.
func TestStartEarlyEnds(t *testing.T) {
	t.Parallel()
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("no bubblewrap")
	}
	// A bubblewrap that notes each start, and then waits for as long as it is told to.
	opts, place := options(t), t.TempDir()
	opts.Program = filepath.Join(place, "bwrap")
	programtest.Write(t, opts.Program, "#!/bin/sh\ncase $1 in --args) echo >> '"+place+"/starts'; while [ -e '"+place+"/wait' ]; do sleep 0.01; done;; esac\nexec "+real+" \"$@\"\n")
	ex := with(t, opts)
	starts := func() int {
		data, _ := os.ReadFile(filepath.Join(place, "starts"))
		return strings.Count(string(data), "\n")
	}
	if err := os.WriteFile(filepath.Join(place, "wait"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before, command := starts(), sandbox.Command{Shell: "echo works", Dir: t.TempDir()}
	ctx, end := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { ex.StartEarly(ctx, command) })
	polltest.Until(t, "it is put up", func() bool { return starts() == before+1 })
	end()
	group.Wait()
	if err := os.Remove(filepath.Join(place, "wait")); err != nil {
		t.Fatal(err)
	}
	if res := run(t, ex, command); res.Stdout != "works\n" || starts() != before+2 {
		t.Errorf("%+v, and %d sandboxes were put up", res, starts()-before)
	}
}

// TestStartEarlyLooksAgain: a repository that came after the sandbox was put up, and before its first command, is guarded as one that was there.
func TestStartEarlyLooksAgain(t *testing.T) {
	t.Parallel()
	ex := with(t, options(t))
	dir := t.TempDir()
	command := sandbox.Command{Shell: "echo touch escaped > sub/.git/hooks/pre-commit; echo x > sub/file", Dir: dir}
	ex.StartEarly(t.Context(), command)
	if out, err := exec.Command("sh", "-ec", "cd '"+dir+"'; git init -q sub; echo true > sub/.git/hooks/pre-commit; chmod +x sub/.git/hooks/pre-commit").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	res := run(t, ex, command)
	hook, err := os.ReadFile(filepath.Join(dir, "sub", ".git", "hooks", "pre-commit"))
	if err != nil || string(hook) != "true\n" || !strings.Contains(res.Stderr, "Read-only") {
		t.Errorf("%q %v, and the command said %+v", hook, err, res)
	}
	if _, err := os.Stat(filepath.Join(dir, "sub", "file")); err != nil {
		t.Errorf("the rest can be written: %v", err)
	}
}
