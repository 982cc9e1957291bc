package process

import (
	"os/exec"
	"sync"
	"syscall"

	"chorus/internal/sandbox"
)

// Collector cleans and keeps a command's output, for executors whose command is not a
// child of ours but whose streams come through another program. Each stream is
// written by one goroutine; both may be written at once.
type Collector struct {
	out     output
	streams [2]struct {
		mu    sync.Mutex
		clean cleaner
		kept  int
	}
}

// NewCollector returns an empty Collector. on receives cleaned text as it comes; it may be nil.
func NewCollector(on func(text string)) *Collector { return &Collector{out: output{on: on}} }

// Write takes the next piece of a stream: 0 is stdout, 1 is stderr.
func (c *Collector) Write(stream int, p []byte) {
	s := &c.streams[stream]
	s.mu.Lock()
	defer s.mu.Unlock()
	take := min(len(p), sandbox.MaxStream-s.kept)
	s.kept += take
	c.out.add(s.clean.clean(nil, p[:take]), stream, int64(len(p)-take))
}

// Close marks the end of a stream.
func (c *Collector) Close(stream int) {
	s := &c.streams[stream]
	s.mu.Lock()
	defer s.mu.Unlock()
	c.out.add(s.clean.flush(nil), stream, 0)
}

// Fill stores the output in the result.
func (c *Collector) Fill(res *sandbox.Result) { c.out.fill(res) }

// Lead makes cmd start in its own process group, which dies with us.
func Lead(cmd *exec.Cmd) { cmd.SysProcAttr = attributes(syscall.SIGKILL) }

// LeadTidy is Lead for a program that cleans up when asked to end, as git does with
// its lock files. It is asked when we die, and by TerminateGroup.
func LeadTidy(cmd *exec.Cmd) { cmd.SysProcAttr = attributes(syscall.SIGTERM) }

// TerminateGroup asks the process group of cmd to end. cmd was started after LeadTidy.
func TerminateGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
}

// KillGroup kills the process group of cmd. cmd was started after Lead.
func KillGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

// ExitCode returns the exit status of cmd, which was waited for, in the shell's convention.
func ExitCode(cmd *exec.Cmd) int { return exitCode(cmd.ProcessState) }
