// Package host runs commands directly on this machine. It keeps nothing out that
// the user of the server could do; it promises that every command ends: on
// timeout, abort or its own end its whole process tree is gone, what it printed
// until then is kept, and a child that holds on to a pipe cannot hang the call.
// The server's secrets are not in the environment of what it runs.
package host

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

// Executor runs commands as children of this process. Safe for concurrent use.
type Executor struct {
	env   []string
	shell func() string
}

var _ sandbox.Executor = (*Executor)(nil)

// New is an executor whose commands get what is harmless of environ, usually
// os.Environ(). Nothing is looked up before the first command.
func New(environ []string) *Executor {
	return &Executor{
		env: cleanEnv(environ),
		shell: sync.OnceValue(func() string {
			for _, name := range []string{"bash", "sh"} {
				if path, err := exec.LookPath(name); err == nil {
					return path
				}
			}
			return "/bin/sh"
		}),
	}
}

// Name implements sandbox.Executor.
func (e *Executor) Name() string { return "host" }

// Reap implements sandbox.Executor.
func (e *Executor) Reap(ctx context.Context, call string) (int, error) {
	if call == "" {
		return 0, nil
	}
	return killTree(ctx, 0, callVariable(call))
}

func callVariable(call string) string { return "CHORUS_CALL=" + call }

// Run implements sandbox.Executor.
func (e *Executor) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Result{Aborted: true, ExitCode: -1}, nil
	}
	// A call's id may come from a model and may not be the only one of its name, so
	// the tree of this very command carries a mark of its own.
	r := &running{mark: "CHORUS_EXEC=" + rand.Text(), out: output{on: command.OnOutput}}
	started := time.Now()
	if err := e.start(r, command); err != nil {
		return sandbox.Result{}, err
	}
	timeout := command.Timeout
	if timeout <= 0 {
		timeout = sandbox.DefaultTimeout
	}
	timer := time.AfterFunc(min(timeout, sandbox.MaxTimeout), func() { r.kill(&r.timedOut) })
	stop := context.AfterFunc(ctx, func() { r.kill(&r.aborted) })
	state, err := r.cmd.Process.Wait()
	timer.Stop()
	stop()
	left := r.finish()
	if err != nil {
		return sandbox.Result{}, fmt.Errorf("wait for the command: %w", err)
	}
	res := sandbox.Result{
		ExitCode: exitCode(state), TimedOut: r.timedOut, Aborted: r.aborted, Left: left, Took: time.Since(started),
	}
	if r.timedOut || r.aborted {
		res.ExitCode, res.Left = -1, 0
	}
	r.out.fill(&res)
	return res, nil
}

// start starts a command: a program with its arguments as it is, anything else by
// the shell.
func (e *Executor) start(r *running, command sandbox.Command) error {
	argv := command.Argv
	if len(argv) == 0 {
		if argv = direct(command); argv != nil {
			r.cmd = e.prepare(argv, command, r.mark)
			if r.start(command) == nil {
				return nil
			}
			// No program, or a script without a first line: bash knows what to say or do.
		}
		shell := e.shell()
		if portable(command.Shell) {
			shell = "/bin/sh"
		}
		argv = []string{shell, "-c", command.Shell}
	}
	r.cmd = e.prepare(argv, command, r.mark)
	return r.start(command)
}

// prepare makes the child: its own group, the cleaned environment, no terminal.
func (e *Executor) prepare(argv []string, command sandbox.Command, mark string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = command.Dir
	env := make([]string, 0, len(e.env)+len(command.Env)+3)
	env = append(env, e.env...)
	env = append(env, command.Env...)
	env = append(env, mark)
	if command.Call != "" {
		env = append(env, callVariable(command.Call))
	}
	if command.Dir != "" {
		env = append(env, "PWD="+command.Dir)
	}
	cmd.Env = env
	cmd.SysProcAttr = attributes()
	return cmd
}

// running is one started command.
type running struct {
	cmd     *exec.Cmd
	mark    string // a variable that only its tree has
	out     output
	pipes   []*os.File // our ends of stdout and stderr
	stdin   *os.File
	readers sync.WaitGroup

	mu                sync.Mutex // guards what follows, and is held while killing
	ended             bool
	timedOut, aborted bool
}

// start starts the child and the readers of its pipes.
func (r *running) start(command sandbox.Command) (err error) {
	cmd := r.cmd
	r.pipes, r.stdin = nil, nil
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
	}
	if err := cmd.Start(); err != nil {
		return startError(cmd, err)
	}
	for i, pipe := range r.pipes {
		r.readers.Go(func() { r.out.read(pipe, i) })
	}
	if r.stdin != nil {
		r.readers.Go(func() {
			_, _ = r.stdin.Write(command.Stdin) // a child may close it early: its right
			_ = r.stdin.Close()
		})
	}
	return nil
}

// startError says what is wrong with the directory when it is that: the system
// blames the program.
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
func (r *running) kill(why *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.timedOut || r.aborted {
		return
	}
	*why = true
	r.killTree()
}

func (r *running) killTree() int {
	// Not the command's context: that one is over when this is needed most.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n, _ := killTree(ctx, r.cmd.Process.Pid, r.mark)
	return n
}

// finish waits for the rest of the output, ends what outlived the command and
// says how many processes that were.
func (r *running) finish() (left int) {
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

func (r *running) close() {
	for _, pipe := range r.pipes {
		_ = pipe.Close()
	}
	if r.stdin != nil {
		_ = r.stdin.Close()
	}
}
