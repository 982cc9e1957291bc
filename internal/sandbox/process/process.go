// Package process runs one child process to its end. Every command ends: after a timeout, an abort or its own
// end, its whole process tree is gone, its output so far is kept and cleaned, and a child that keeps a pipe
// open cannot block the call. Executors share this package and differ only in what they start.
package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"chorus/internal/sandbox"
)

// drain is how long a pipe is read after the command itself has ended: long enough for what
// is already written, but not for a server left in the background.
const drain = 250 * time.Millisecond

// Mark returns a new variable that identifies one process tree. The id of a
// call may come from a model and need not be unique.
func Mark() string { return "CHORUS_EXEC=" + rand.Text() }

// CallVariable returns the variable that every child of the call has in its environment.
func CallVariable(call string) string { return "CHORUS_CALL=" + call }

// Marks returns the variables that every child of the command must have.
func Marks(command sandbox.Command, mark string) []string {
	if command.Call == "" {
		return []string{mark}
	}
	return []string{mark, CallVariable(command.Call)}
}

// Reap kills what still runs of the call and returns how many processes that were.
func Reap(ctx context.Context, call string) (int, error) {
	if call == "" {
		return 0, nil
	}
	return killTree(ctx, 0, CallVariable(call))
}

// Shell returns this machine's shell: bash if there is one.
func Shell() string {
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return "/bin/sh"
}

// Argv returns the argument vector of the command: its own, or the shell
// with its text. It calls shell only if needed.
func Argv(command sandbox.Command, shell func() string) []string {
	if len(command.Argv) > 0 {
		return command.Argv
	}
	return []string{shell(), "-c", command.Shell}
}

// Process is what Start began for a command: a child of ours, or a process that somebody else started for us.
type Process interface {
	// Wait waits for the command itself. The code is in the shell's convention.
	Wait() (code int, err error)
	// Kill ends the command with everything it started. It may be called during Wait.
	Kill()
	// Sweep ends what outlived the command and returns how many processes that
	// were. held means that something keeps a stream open.
	Sweep(held bool) (left int)
}

// Streams are what a command reads and writes. The caller keeps them.
type Streams struct{ In, Out, Err *os.File }

// Running is one started command. Wait must be called once.
type Running struct {
	process Process
	began   time.Time
	out     output
	pipes   []*os.File // our ends of stdout and stderr
	stdin   *os.File
	readers sync.WaitGroup

	mu                sync.Mutex // guards the fields below, and is held while killing
	timer             *time.Timer
	left              time.Duration // of its time, while paused
	since             time.Time     // when its time last started to run
	pauses            int
	ended             bool
	timedOut, aborted bool
}

// Start starts a command by calling begin with its streams. The command's time runs from then on.
func Start(command sandbox.Command, begin func(*Running, Streams) (Process, error)) (*Running, error) {
	timeout := command.Timeout
	if timeout <= 0 {
		timeout = sandbox.DefaultTimeout
	}
	now := time.Now()
	r := &Running{began: now, since: now, left: min(timeout, sandbox.MaxTimeout), out: output{on: command.OnOutput}}
	if err := r.start(command, begin); err != nil {
		return nil, err
	}
	return r, nil
}

// Pause stops the command's time while it waits for a person. resume continues it.
func (r *Running) Pause() (resume func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pauses++; r.pauses == 1 {
		r.left -= time.Since(r.since)
		if r.timer != nil {
			r.timer.Stop()
		}
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.pauses--; r.pauses == 0 {
			r.since = time.Now()
			r.run()
		}
	}
}

// run starts the timer with the time that is left. The caller holds the lock.
func (r *Running) run() {
	switch {
	case r.ended || r.pauses > 0:
	case r.timer == nil:
		r.timer = time.AfterFunc(max(r.left, 0), func() { r.kill(&r.timedOut) })
	default:
		r.timer.Reset(max(r.left, 0))
	}
}

// Wait waits until the command ends, its timeout passes or ctx is cancelled.
func (r *Running) Wait(ctx context.Context) (sandbox.Result, error) {
	r.mu.Lock()
	r.run()
	r.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { r.kill(&r.aborted) })
	code, err := r.process.Wait()
	stop()
	left := r.finish()
	if err != nil {
		return sandbox.Result{}, err
	}
	res := sandbox.Result{ExitCode: code, TimedOut: r.timedOut, Aborted: r.aborted, Left: left, Took: time.Since(r.began)}
	if r.timedOut || r.aborted {
		res.ExitCode, res.Left = -1, 0
	}
	r.out.fill(&res)
	return res, nil
}

// start creates the streams, calls begin and starts the readers.
func (r *Running) start(command sandbox.Command, begin func(*Running, Streams) (Process, error)) (err error) {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			r.close()
		}
	}()
	streams := 2
	if command.Merge {
		streams = 1
	}
	for range streams {
		ours, child, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("make a pipe for the command: %w", err)
		}
		r.pipes = append(r.pipes, ours)
		theirs = append(theirs, child)
	}
	child := Streams{Out: theirs[0], Err: theirs[streams-1]}
	if len(command.Stdin) > 0 {
		in, ours, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("make a pipe for the command: %w", err)
		}
		r.stdin = ours
		theirs = append(theirs, in)
		child.In = in
	} else if child.In, err = devNull(); err != nil {
		return err
	}
	if r.process, err = begin(r, child); err != nil {
		return err
	}
	for i, pipe := range r.pipes {
		r.readers.Go(func() { r.out.read(pipe, i) })
	}
	if r.stdin != nil {
		r.readers.Go(func() {
			_, _ = r.stdin.Write(command.Stdin) // a child may close it early
			_ = r.stdin.Close()
		})
	}
	return nil
}

// devNull is the standard input of commands without input. It has no state, so all commands share it.
var devNull = sync.OnceValues(func() (*os.File, error) { return os.Open(os.DevNull) })

// kill ends the whole tree and sets why, unless the command ended first.
func (r *Running) kill(why *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.timedOut || r.aborted {
		return
	}
	*why = true
	r.process.Kill()
}

// finish waits for the rest of the output, ends what outlived the
// command, and returns how many processes that were.
func (r *Running) finish() (left int) {
	r.mu.Lock() // waits for a kill in progress
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	defer r.close()
	deadline := time.Now().Add(drain)
	for _, pipe := range r.pipes {
		_ = pipe.SetReadDeadline(deadline)
	}
	if r.stdin != nil {
		_ = r.stdin.SetWriteDeadline(deadline)
	}
	r.readers.Wait()
	return r.process.Sweep(r.out.held)
}

func (r *Running) close() {
	for _, pipe := range r.pipes {
		_ = pipe.Close()
	}
	if r.stdin != nil {
		_ = r.stdin.Close()
	}
}
