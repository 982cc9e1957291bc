// Package process runs one child process to its end. Every command ends: on timeout,
// abort or its own end its whole process tree is gone, what it printed until then is
// kept and cleaned, and a child that keeps a pipe open cannot block the call. Executors
// share it and differ only in what they start.
package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"chorus/internal/sandbox"
)

// drain is how long a pipe is read on after the command itself has ended: enough
// for what is already written, not for a server left in the background.
const drain = 250 * time.Millisecond

// Child is what is started for a command.
type Child struct {
	Argv []string
	Dir  string
	Env  []string // all of it; Mark's variable must be in it
	Mark string   // a variable that only this tree has, from Mark
	// Files are given to the child from descriptor 3 on. They stay the caller's.
	Files []*os.File
	// Started is called once the child runs, before anything waits for it (may be
	// nil). When it fails the child is killed and Start fails.
	Started func(pid int) error
}

// Mark is a new variable that identifies one process tree. A call's id may come from a
// model and need not be unique.
func Mark() string { return "CHORUS_EXEC=" + rand.Text() }

// CallVariable is what every child of the call has in its environment.
func CallVariable(call string) string { return "CHORUS_CALL=" + call }

// Marks are the variables that every child of the command must have.
func Marks(command sandbox.Command, mark string) []string {
	if command.Call == "" {
		return []string{mark}
	}
	return []string{mark, CallVariable(command.Call)}
}

// Reap kills whatever runs of the call and says how many processes that were.
func Reap(ctx context.Context, call string) (int, error) {
	if call == "" {
		return 0, nil
	}
	return killTree(ctx, 0, CallVariable(call))
}

// Shell finds the shell of this machine: bash where there is one.
func Shell() string {
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return "/bin/sh"
}

// Argv is the argument vector of the command: its own, or the shell with its text. The
// shell is asked for only when it is needed.
func Argv(command sandbox.Command, shell func() string) []string {
	if len(command.Argv) > 0 {
		return command.Argv
	}
	return []string{shell(), "-c", command.Shell}
}

// Running is one started command. Wait must be called once.
type Running struct {
	cmd     *exec.Cmd
	began   time.Time
	timeout time.Duration
	mark    string
	out     output
	pipes   []*os.File // our ends of stdout and stderr
	stdin   *os.File
	readers sync.WaitGroup

	mu                sync.Mutex // guards what follows, and is held while killing
	ended             bool
	timedOut, aborted bool
}

// Start starts the child for the command: its own group, pipes, no terminal.
func Start(command sandbox.Command, child Child) (*Running, error) {
	cmd := exec.Command(child.Argv[0], child.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = child.Dir, child.Env, child.Files
	cmd.SysProcAttr = attributes()
	timeout := command.Timeout
	if timeout <= 0 {
		timeout = sandbox.DefaultTimeout
	}
	r := &Running{
		cmd: cmd, began: time.Now(), timeout: min(timeout, sandbox.MaxTimeout), mark: child.Mark, out: output{on: command.OnOutput},
	}
	if err := r.start(command); err != nil {
		return nil, err
	}
	if child.Started == nil {
		return r, nil
	}
	if err := child.Started(cmd.Process.Pid); err != nil {
		r.killTree()
		_, _ = cmd.Process.Wait()
		r.finish()
		return nil, err
	}
	return r, nil
}

// Wait waits until the command ends, its timeout passes or ctx is cancelled.
func (r *Running) Wait(ctx context.Context) (sandbox.Result, error) {
	timer := time.AfterFunc(r.timeout, func() { r.kill(&r.timedOut) })
	stop := context.AfterFunc(ctx, func() { r.kill(&r.aborted) })
	state, err := r.cmd.Process.Wait()
	timer.Stop()
	stop()
	left := r.finish()
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("wait for the command: %w", err)
	}
	res := sandbox.Result{
		ExitCode: exitCode(state), TimedOut: r.timedOut, Aborted: r.aborted, Left: left, Took: time.Since(r.began),
	}
	if r.timedOut || r.aborted {
		res.ExitCode, res.Left = -1, 0
	}
	r.out.fill(&res)
	return res, nil
}

// start starts the child and the readers of its pipes.
func (r *Running) start(command sandbox.Command) (err error) {
	cmd := r.cmd
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
	cmd.Stdout, cmd.Stderr = theirs[0], theirs[streams-1]
	if len(command.Stdin) > 0 {
		child, ours, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("make a pipe for the command: %w", err)
		}
		r.stdin = ours
		theirs = append(theirs, child)
		cmd.Stdin = child
	} else if nothing, err := devNull(); err == nil {
		cmd.Stdin = nothing // os/exec would open it each time
	}
	if err := cmd.Start(); err != nil {
		return startError(cmd, err)
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

// devNull is the standard input of commands that get none. It has no state, so all of
// them share it.
var devNull = sync.OnceValues(func() (*os.File, error) { return os.Open(os.DevNull) })

// startError names the directory if that is what is wrong: the system's error names the
// program.
func startError(cmd *exec.Cmd, err error) error {
	if cmd.Dir != "" {
		info, statErr := os.Stat(cmd.Dir)
		if statErr != nil {
			return fmt.Errorf("start the command in %s: %w", cmd.Dir, errors.Unwrap(statErr))
		}
		if !info.IsDir() {
			return fmt.Errorf("start the command in %s: not a directory", cmd.Dir)
		}
	}
	return fmt.Errorf("start the command: %w", err)
}

// kill ends the whole tree because of why, unless the command ended first.
func (r *Running) kill(why *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.timedOut || r.aborted {
		return
	}
	*why = true
	r.killTree()
}

func (r *Running) killTree() int {
	// Not the command's context, which may have been cancelled.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n, _ := killTree(ctx, r.cmd.Process.Pid, r.mark)
	return n
}

// finish waits for the rest of the output, ends what outlived the command and
// says how many processes that were.
func (r *Running) finish() (left int) {
	r.mu.Lock() // waits for a kill under way
	r.ended = true
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
	if r.out.held || groupAlive(r.cmd.Process.Pid) {
		left = r.killTree()
	}
	return left
}

func (r *Running) close() {
	for _, pipe := range r.pipes {
		_ = pipe.Close()
	}
	if r.stdin != nil {
		_ = r.stdin.Close()
	}
}
