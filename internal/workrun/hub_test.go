package workrun_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/gitrepo"
	"chorus/internal/work"
)

// hubbed gives the project a clone of a repository that is at GitHub as far as git's settings tell, and a gh that does what the script says.
func (h *home) hubbed(gh string, network time.Duration) {
	h.t.Helper()
	dir := h.t.TempDir()
	remote, settings, program := filepath.Join(dir, "remote.git"), filepath.Join(dir, "gitconfig"), filepath.Join(dir, "gh")
	h.git("clone", "-q", "--bare", h.repo, remote)
	h.write(settings, "[url \"file://"+remote+"\"]\n\tinsteadOf = https://github.com/ada/site.git\n")
	syscall.ForkLock.RLock() // a program that another test starts meanwhile would hold the file open, and it could not be run
	err := os.WriteFile(program, []byte("#!/bin/sh\n"+gh+"\n"), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		h.t.Fatal(err)
	}
	h.Git = gitrepo.Options{LocalURLs: true, Hub: program, Network: network, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=" + settings}}
	known := work.Repo{ID: "hub", Project: "site", Kind: work.Clone, URL: "https://github.com/ada/site.git", Path: filepath.Join(dir, "clone.git")}
	if _, err := h.queue.AddRepo(h.t.Context(), known, "local:ada"); err != nil {
		h.t.Fatal(err)
	}
}

// A gh that hangs is ended at its deadline, with all that it started: the task waits for a yes without a pull request, and says why.
// When Chorus stops meanwhile, it is ended at once, and the task stays as it was for the next process.
func TestAHubThatHangs(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	pids := filepath.Join(t.TempDir(), "pids")
	h.hubbed("echo $$ >>"+pids+"; sleep 1000 & echo $! >>"+pids+"; wait", 20*time.Second)
	h.worker = func(_ work.Task, dir string) chat.RunEnded {
		h.write(filepath.Join(dir, "new.txt"), "new\n")
		return done()
	}
	task := h.task("new", func(n *work.NewTask) { n.Repo, n.Approval = "hub", true })
	stopping := errors.New("chorus is stopping")
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		for t.Context().Err() == nil {
			if data, _ := os.ReadFile(pids); strings.Count(string(data), "\n") == 2 { // it hangs
				stop(stopping)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	for range 10 {
		if _, err := h.Round(ctx); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		h.Wait()
		if ctx.Err() != nil {
			break
		}
	}
	if now := h.state(task.ID); ctx.Err() == nil || now.State != work.Verifying || now.PR != "" {
		t.Fatalf("%v: %s (%s)", ctx.Err(), now.State, now.Why)
	}
	ended(t, pids)

	// The next process asks it again, and comes to its deadline.
	options := h.Git
	options.Network = 3 * time.Second
	h.restart(h.Home)
	h.Git = options
	now := h.settle(task.ID, work.AwaitingApproval)
	if now.PR != "" || !strings.Contains(now.Why, "no pull request") || !strings.Contains(now.Why, "3s") {
		t.Errorf("%q, %s", now.PR, now.Why)
	}
	ended(t, pids)

	// A yes merges without one.
	h.step(task.ID, work.Approved)
	h.settle(task.ID, work.Completed)
}

// ended says which of the processes that wrote down their numbers are alive.
func ended(t *testing.T, pids string) {
	t.Helper()
	data, err := os.ReadFile(pids)
	if err != nil || len(data) == 0 {
		t.Fatal("nothing was started", err)
	}
	for _, line := range strings.Fields(string(data)) {
		pid, _ := strconv.Atoi(line)
		stat, _ := os.ReadFile("/proc/" + line + "/stat")
		_, state, _ := strings.Cut(string(stat), ") ")
		if pid > 0 && syscall.Kill(pid, 0) == nil && !strings.HasPrefix(state, "Z") {
			t.Errorf("process %d is alive", pid)
		}
	}
}
