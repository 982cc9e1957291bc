package isolate_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/programtest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
)

// earlyStarts counts how often a bubblewrap is started, which it does by a PATH of its own.
type earlyStarts struct {
	t    *testing.T
	app  *app.App
	work string
	note string // a line for each start
}

func newEarlyStarts(t *testing.T) *earlyStarts {
	t.Helper()
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("no bubblewrap")
	}
	bin := t.TempDir()
	programtest.Write(t, filepath.Join(bin, "bwrap"), "#!/bin/sh\ncase $1 in --args) echo >> '"+bin+"/starts';; esac\nexec "+real+" \"$@\"\n")
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	s := &earlyStarts{t: t, note: filepath.Join(bin, "starts")}
	s.app, s.work, _ = newApp(t)
	inSandbox(t, s.app, s.work, isolate.Plan{}) // or there is none here
	toolboxOf(t, s.app, s.work)
	return s
}

// during says how many were started by a run, which has an executor of its own and waits for what it began.
func (s *earlyStarts) during(do func(sandbox.Executor)) int {
	s.t.Helper()
	starts := func() int {
		data, _ := os.ReadFile(s.note)
		return strings.Count(string(data), "\n")
	}
	before := starts()
	thread, err := chat.NewThreadID("cli", settings.Place(s.work), "early", chat.DefaultAgent)
	if err != nil {
		s.t.Fatal(err)
	}
	site := &isolate.Site{Dir: s.work, Agent: chat.DefaultAgent, Proxy: &isolate.EgressProxy{Thread: thread}}
	ex, err := s.app.Isolation.ExecutorFor(site, isolate.Plan{Sandbox: "auto", Need: isolate.Required, Profile: "open"})
	if err != nil {
		s.t.Fatal(err)
	}
	do(ex)
	site.Proxy.AwaitEarly()
	if err := site.Proxy.Close(); err != nil {
		s.t.Fatal(err)
	}
	return starts() - before
}

// early has a sandbox put up, if one is needed.
func (s *earlyStarts) early(ex sandbox.Executor) {
	ex.(sandbox.EarlyStarter).StartEarly(sandbox.Command{Dir: s.work})
}

// TestStartEarly: a sandbox is put up early where the agent has run commands before, and nowhere else.
func TestStartEarly(t *testing.T) {
	s := newEarlyStarts(t)
	work, during, early := s.work, s.during, s.early
	command := func(ex sandbox.Executor) {
		if res, err := ex.Run(t.Context(), sandbox.Command{Shell: "echo works", Dir: work}); err != nil || res.Stdout != "works\n" {
			t.Errorf("%+v %v", res, err)
		}
	}
	if n := during(early); n != 0 {
		t.Errorf("%d sandboxes for somebody who never ran a command", n)
	}
	if n := during(command); n != 1 {
		t.Errorf("%d sandboxes for a command", n)
	}
	if n := during(early); n != 0 {
		t.Errorf("%d sandboxes where one waits", n)
	}
	if err := errors.Join(os.Rename(work, work+"-old"), os.Mkdir(work, 0o755)); err != nil { // the one that waits cannot be used any more
		t.Fatal(err)
	}
	if n := during(func(ex sandbox.Executor) { early(ex); command(ex) }); n != 1 {
		t.Errorf("%d sandboxes, early and for the command", n)
	}
	if n := during(command); n != 0 {
		t.Errorf("%d sandboxes after that", n)
	}
}

// TestNameForCommits: a sandbox serves run after run as long as commits are made in the same name. A sandbox that was put up early
// has the name of the last run, and a command never gets it when there is another one by now.
func TestNameForCommits(t *testing.T) {
	s := newEarlyStarts(t)
	call := func(name string) {
		t.Helper()
		if out, err := exec.Command("git", "-C", s.work, "config", "user.name", name).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := exec.Command("git", "init", "-q", s.work).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	asks := func(ex sandbox.Executor) string {
		res, err := ex.Run(t.Context(), sandbox.Command{Shell: "git config --system user.name", Dir: s.work})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(res.Stdout)
	}
	expect := func(name string, early bool, starts ...int) {
		t.Helper()
		var got string
		n := s.during(func(ex sandbox.Executor) {
			if early {
				s.early(ex)
			}
			got = asks(ex)
		})
		if got != name || !slices.Contains(starts, n) {
			t.Errorf("%q after %d starts, not %q after one of %d", got, n, name, starts)
		}
	}
	call("One")
	expect("One", false, 1)
	expect("One", false, 0)
	expect("One", true, 0)
	call("Two")
	expect("Two", true, 1, 2) // the early one has the old name, unless git was faster
	expect("Two", true, 0)
}
