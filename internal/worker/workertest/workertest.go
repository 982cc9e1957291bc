// Package workertest is the test suite for all workers. It uses stand-in
// programs: shell scripts that print what the real ones print.
package workertest

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
	"chorus/internal/sandbox"
	"chorus/internal/work"
	"chorus/internal/worker"
)

// Protocol is the shell code with which a worker's stand-ins print their output, after Greeting.
type Protocol struct {
	// New returns the worker for a stand-in.
	New func(program worker.Program, command string) worker.Worker
	// Greeting reads the first input and prints the beginning; the session is s-1.
	Greeting string
	// Said prints that it says "hello", Result that it is done, Failed that it failed,
	// Limited that a limit ends at 4102444800 or at an unknown time.
	Said, Result, Failed, Limited string
	// Reset says that Limited reports the end of the limit.
	Reset bool
}

// Host records what a worker reports.
type Host struct {
	Sessions []string
	Text     strings.Builder
	Calls    []worker.Call
	Results  []worker.Result
	Usage    chat.Usage
	Lines    int
	Decide   func(worker.Call) (worker.Decision, error)
}

func (h *Host) Session(id string) error     { h.Sessions = append(h.Sessions, id); return nil }
func (h *Host) Said(text string) error      { h.Text.WriteString(text); return nil }
func (h *Host) Thought(string) error        { return nil }
func (h *Host) Began(c worker.Call) error   { h.Calls = append(h.Calls, c); return nil }
func (h *Host) Ended(r worker.Result) error { h.Results = append(h.Results, r); return nil }
func (h *Host) Used(u chat.Usage) error     { h.Usage = h.Usage.Plus(u); return nil }
func (h *Host) Alive()                      { h.Lines++ }

// Permit calls Decide if it is set, and otherwise allows the call.
func (h *Host) Permit(c worker.Call) (worker.Decision, error) {
	if h.Decide == nil {
		return worker.Decision{Allow: true}, nil
	}
	return h.Decide(c)
}

// Keeper starts programs without a sandbox.
type Keeper interface {
	Keep(sandbox.Command) (*sandbox.Prepared, error)
}

// Run runs the suite.
func Run(t *testing.T, p Protocol, host Keeper) {
	work1 := func(t *testing.T, ctx context.Context, quiet time.Duration, script string) (*Host, string, error) {
		t.Helper()
		dir := t.TempDir()
		path := filepath.Join(dir, "program")
		syscall.ForkLock.RLock() // otherwise a program that another test starts meanwhile could inherit the open file, which then could not be run
		err := os.WriteFile(path, []byte("#!/bin/sh\n"+p.Greeting+"\n"+script+"\n"), 0o700)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		h := &Host{}
		w := p.New(worker.Program{Quiet: quiet, Prepare: func(_ context.Context, argv []string, key string) (*sandbox.Prepared, error) {
			return host.Keep(sandbox.Command{Argv: argv, Dir: dir, Call: key})
		}}, path)
		_, err = w.Work(ctx, worker.Job{Prompt: "do it", Dir: dir, Key: "run/worker"}, h)
		return h, dir, err
	}
	kind := func(t *testing.T, err error, want work.ErrorKind) *worker.Error {
		t.Helper()
		var e *worker.Error
		if !errors.As(err, &e) || e.Kind != want {
			t.Fatalf("%v is not of kind %s", err, want)
		}
		return e
	}
	t.Run("done, with files changed", func(t *testing.T) {
		t.Parallel()
		h, dir, err := work1(t, t.Context(), 0, p.Said+"\necho x >made.txt\n"+p.Result)
		if err != nil || !strings.Contains(h.Text.String(), "hello") || len(h.Sessions) != 1 || h.Sessions[0] != "s-1" {
			t.Errorf("%v %q %v", err, h.Text.String(), h.Sessions)
		}
		if _, err := os.Stat(filepath.Join(dir, "made.txt")); err != nil {
			t.Error(err)
		}
	})
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		_, _, err := work1(t, t.Context(), 0, p.Failed)
		kind(t, err, work.ErrorWorker)
	})
	t.Run("limited", func(t *testing.T) {
		t.Parallel()
		_, _, err := work1(t, t.Context(), 0, p.Limited)
		if e := kind(t, err, work.ErrorRateLimit); p.Reset && e.Reset.Unix() != 4102444800 {
			t.Errorf("the limit ends at %s", e.Reset)
		}
	})
	t.Run("hangs", func(t *testing.T) {
		t.Parallel()
		_, _, err := work1(t, t.Context(), 300*time.Millisecond, "sleep 1000")
		kind(t, err, work.ErrorTimeout)
	})
	t.Run("killed in the middle", func(t *testing.T) {
		t.Parallel()
		_, _, err := work1(t, t.Context(), 0, p.Said+"\nkill -9 $$")
		kind(t, err, work.ErrorWorker)
	})
	t.Run("output cut in half", func(t *testing.T) {
		t.Parallel()
		_, _, err := work1(t, t.Context(), 0, p.Said+`; printf '{"type":"resu'`)
		kind(t, err, work.ErrorWorker)
	})
	t.Run("garbage and huge lines", func(t *testing.T) {
		t.Parallel()
		h, _, err := work1(t, t.Context(), 0, `echo garbage; echo; echo null; echo '[1]'; printf '\000\377\n'; head -c 17000000 /dev/zero | tr '\0' x; echo; `+p.Said+"\n"+p.Result)
		if err != nil || !strings.Contains(h.Text.String(), "hello") {
			t.Errorf("%v %q", err, h.Text.String())
		}
	})
	t.Run("a tree that ignores being told to end", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		pids := filepath.Join(t.TempDir(), "pids")
		stopped := errors.New("stopped by somebody")
		go func() {
			for {
				if data, _ := os.ReadFile(pids); strings.Count(string(data), "\n") == 3 || ctx.Err() != nil {
					cancel(stopped)
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		_, _, err := work1(t, ctx, 0, `trap '' TERM INT HUP; echo $$ >>`+pids+`
setsid sh -c 'trap "" TERM; echo $$ >>`+pids+`; setsid sh -c "trap \"\" TERM; echo \$\$ >>`+pids+`; while :; do sleep 1; done" & while :; do sleep 1; done' &
while :; do sleep 1; done`)
		if !errors.Is(err, stopped) {
			t.Errorf("%v", err)
		}
		data, _ := os.ReadFile(pids)
		for line := range strings.FieldsSeq(string(data)) {
			if pid, _ := strconv.Atoi(line); pid > 0 && alive(pid) {
				t.Errorf("process %d of the tree is alive", pid)
			}
		}
	})
}

// alive reports whether a process is running. Zombies are not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}
