// Package host runs commands directly on this machine. Commands can do everything that the server's
// user can do. The package promises that every command ends with its whole process tree, and that
// the server's secrets are not in the environment of what it runs.
package host

import (
	"context"
	"os"
	"sync"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/process"
)

// Executor runs commands as children of this process. It is safe for concurrent use.
type Executor struct {
	env   []string
	shell func() string
}

var (
	_ sandbox.Executor     = (*Executor)(nil)
	_ sandbox.Backgrounder = (*Executor)(nil)
)

// New returns an executor whose commands get the harmless part of environ, usually
// os.Environ(). It looks nothing up before the first command.
func New(environ []string) *Executor {
	return &Executor{env: process.Environ(environ), shell: sync.OnceValue(process.Shell)}
}

// Name implements sandbox.Executor.
func (e *Executor) Name() string { return "host" }

// Reap implements sandbox.Executor.
func (e *Executor) Reap(ctx context.Context, call string) (int, error) {
	return process.Reap(ctx, call)
}

// Run implements sandbox.Executor.
func (e *Executor) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Result{Aborted: true, ExitCode: -1}, nil
	}
	r, err := e.start(command)
	if err != nil {
		return sandbox.Result{}, err
	}
	return r.Wait(ctx)
}

// Background implements sandbox.Backgrounder.
func (e *Executor) Background(_ context.Context, command sandbox.Command) (sandbox.Background, error) {
	return sandbox.Background{Shell: command.Shell, Dir: command.Dir, Env: command.Env, Call: command.Call, Timeout: command.Timeout}, nil
}

// Keep prepares a command that will be left running.
func (e *Executor) Keep(command sandbox.Command) (*sandbox.Prepared, error) {
	return &sandbox.Prepared{
		Start: func(in, out, errs *os.File) (sandbox.Program, error) {
			return process.StartProgram(e.child(command), process.Streams{In: in, Out: out, Err: errs})
		},
		Release: func() {},
	}, nil
}

func (e *Executor) start(command sandbox.Command) (*process.Running, error) {
	return process.StartChild(command, e.child(command))
}

func (e *Executor) child(command sandbox.Command) process.Child {
	child := process.Child{Dir: command.Dir, Mark: process.Mark(), Argv: process.Argv(command, e.shell)}
	child.Env = make([]string, 0, len(e.env)+len(command.Env)+3)
	child.Env = append(child.Env, e.env...)
	child.Env = append(child.Env, command.Env...)
	child.Env = append(child.Env, process.Marks(command, child.Mark)...)
	if command.Dir != "" {
		child.Env = append(child.Env, "PWD="+command.Dir)
	}
	return child
}
