// Package bwrap runs commands isolated by the kernel, using bubblewrap. A command sees its workspace, the
// roots it was given, the system's programs read-only, and its own /tmp. It sees nothing else of this
// machine: no home, no database, no other workspace, no other process, and no network unless allowed. It
// never has more rights than the server, and none of its capabilities. Commands end as package host
// promises. Facts reports any isolation or limit that is not available. Probe reports whether bubblewrap
// works here at all, and if not, what to do.
package bwrap

import (
	"context"
	"sync"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap/inside"
	"chorus/internal/sandbox/process"
)

// Options are what all commands of an executor have in common.
type Options struct {
	Environ []string // the server's, usually os.Environ(); harmless values that point to visible paths are passed on
	Env     []string // added unchanged, NAME=value
	// Roots are visible to every command, in addition to its own. A root inside a
	// writable root must not be reached through a symlink.
	Roots []sandbox.Root
	// Hide are paths that stay hidden even inside a root: the server's home and
	// database, in case somebody works in the directory above.
	Hide []string
	// Home is a directory for caches and settings that is kept between commands, for commands that do not
	// name their own. If empty, every command gets a new one in memory. Either is visible as /home/chorus.
	Home    string
	Network sandbox.Network // for commands that name none
	Limits  Limits
	// Init is a program that calls Init when its first argument is InitArg. It must be statically
	// linked or find its libraries in /usr. If empty, the embedded init program is used; if there is
	// none, our own program, which must then meet the same condition.
	Init    string
	Program string // path of bwrap; empty: found in PATH
	// Known is what Learned returned for the same program in another process. If
	// empty, bubblewrap is asked, which means starting it twice.
	Known string
}

// Limits apply to one command with all its processes. Zero means the default.
type Limits struct {
	FileSize  int64 // of one file; always enforced
	Tmp       int64 // of /tmp, /dev/shm and a home in memory, each; needs bubblewrap 0.7 or later
	Memory    int64 // needs a cgroup
	Processes int64 // with a cgroup; without one, for every user but root
}

// The default limits: enough to build large programs, too little to take the machine down.
const (
	DefaultFileSize  = 4 << 30
	DefaultTmp       = 1 << 30
	DefaultMemory    = 4 << 30
	DefaultProcesses = 1024
)

func (l Limits) orDefault() Limits {
	for _, f := range []struct {
		value *int64
		def   int64
	}{{&l.FileSize, DefaultFileSize}, {&l.Tmp, DefaultTmp}, {&l.Memory, DefaultMemory}, {&l.Processes, DefaultProcesses}} {
		if *f.value <= 0 {
			*f.value = f.def
		}
	}
	return l
}

// Fact describes one kind of isolation or one limit, for people.
type Fact struct {
	Name  string // "namespaces", "landlock", "memory", …
	Holds bool
	Words string // how it works here, or why not and what to do
}

// InitArg as the first argument tells our own program that it was
// started as process 1 of a sandbox and must call Init.
const InitArg = "sandbox-init"

// Init runs commands inside a sandbox until the sandbox is taken down. It does not return.
func Init() { inside.Main() }

// Proxy is the address at which a command finds the proxy of its Network, in
// its own network namespace, where nobody else can be.
const Proxy = "127.0.0.1:3128"

// Executor runs commands in the sandbox. It is safe for concurrent use.
type Executor struct {
	opts    Options
	env     []string
	machine func() machine // computed once, by the first command
	pool    pool
	trees   trees
	gating
}

var _ sandbox.Executor = (*Executor)(nil)

// New returns an executor with these options. It looks nothing up before the first command, Probe or Facts.
func New(opts Options) *Executor {
	opts.Limits = opts.Limits.orDefault()
	e := &Executor{opts: opts, env: process.Environ(opts.Environ)}
	e.programs = newPrograms(e.env)
	e.machine = sync.OnceValue(func() machine { return look(opts) })
	return e
}

// Name implements sandbox.Executor.
func (e *Executor) Name() string { return "bwrap" }

// Learned returns what was found out about bubblewrap, for Options.Known of another process.
func (e *Executor) Learned() string { return e.machine().learned() }

// Prime starts finding out in the background what the first command needs to know about this machine.
func (e *Executor) Prime() { go e.machine() }

// Close takes down the sandboxes that are waiting for a command. A sandbox with
// a running command is taken down when the command ends.
func (e *Executor) Close() { e.pool.close() }

// Reap implements sandbox.Executor. It finds the children from outside, by their environment.
func (e *Executor) Reap(ctx context.Context, call string) (int, error) {
	return process.Reap(ctx, call)
}

// Run implements sandbox.Executor.
func (e *Executor) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Result{Aborted: true, ExitCode: -1}, nil
	}
	return e.run(ctx, command)
}
