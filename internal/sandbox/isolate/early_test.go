package isolate_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/programtest"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
)

// TestStartEarly: a sandbox is put up early where the agent has run commands before, and nowhere else. It has a PATH of its own, with
// a bubblewrap that notes each start.
func TestStartEarly(t *testing.T) {
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("no bubblewrap")
	}
	bin := t.TempDir()
	programtest.Write(t, filepath.Join(bin, "bwrap"), "#!/bin/sh\ncase $1 in --args) echo >> '"+bin+"/starts';; esac\nexec "+real+" \"$@\"\n")
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	starts := func() int {
		data, _ := os.ReadFile(filepath.Join(bin, "starts"))
		return strings.Count(string(data), "\n")
	}
	a, work, _ := newApp(t)
	inSandbox(t, a, work, isolate.Plan{}) // or there is none here
	thread, err := chat.NewThreadID("cli", settings.Place(work), "early", chat.DefaultAgent)
	if err != nil {
		t.Fatal(err)
	}
	toolboxOf(t, a, work)
	// Each run of the thread has an executor of its own, and waits for what it began.
	during := func(do func(sandbox.Executor)) (started int) {
		t.Helper()
		before := starts()
		site := &isolate.Site{Dir: work, Agent: chat.DefaultAgent, Proxy: &isolate.EgressProxy{Thread: thread}}
		ex, err := a.Isolation.ExecutorFor(site, isolate.Plan{Sandbox: "auto", Need: isolate.Required, Profile: "open"})
		if err != nil {
			t.Fatal(err)
		}
		do(ex)
		site.Proxy.AwaitEarly()
		if err := site.Proxy.Close(); err != nil {
			t.Fatal(err)
		}
		return starts() - before
	}
	early := func(ex sandbox.Executor) { ex.(sandbox.EarlyStarter).StartEarly(sandbox.Command{Dir: work}) }
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
