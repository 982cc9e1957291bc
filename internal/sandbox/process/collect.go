package process

import (
	"os/exec"
	"sync"
	"syscall"

	"chorus/internal/sandbox"
)

// Collector cleans and keeps what a command printed, for executors whose command is not
// a child of ours, so that another program passes its streams on. Each stream is written
// by one goroutine; both may be written at once.
type Collector struct {
	out     output
	streams [2]struct {
		mu    sync.Mutex
		clean cleaner
		kept  int
	}
}

// NewCollector is an empty one; on gets cleaned text as it comes (may be nil).
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

// Close says that a stream has ended.
func (c *Collector) Close(stream int) {
	s := &c.streams[stream]
	s.mu.Lock()
	defer s.mu.Unlock()
	c.out.add(s.clean.flush(nil), stream, 0)
}

// Fill puts everything into the result.
func (c *Collector) Fill(res *sandbox.Result) { c.out.fill(res) }

// Lead puts what cmd will start into a group of its own that dies with us.
func Lead(cmd *exec.Cmd) { cmd.SysProcAttr = attributes(syscall.SIGKILL) }

// LeadTidy is Lead for a program that tidies up when it is asked to end, as git does with its lock files: it is asked when we die, and by
// TerminateGroup.
func LeadTidy(cmd *exec.Cmd) { cmd.SysProcAttr = attributes(syscall.SIGTERM) }

// TerminateGroup asks the group that cmd, started after LeadTidy, is the leader of to end.
func TerminateGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
}

// KillGroup kills the group that cmd, started after Lead, is the leader of.
func KillGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

// ExitCode is how cmd, which was waited for, ended, in the shell's convention.
func ExitCode(cmd *exec.Cmd) int { return exitCode(cmd.ProcessState) }
