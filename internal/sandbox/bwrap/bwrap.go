// Package bwrap runs commands isolated by the kernel, with bubblewrap. A command sees its
// workspace and the roots it was given, the system's programs read-only, a /tmp of its
// own, and nothing else of this machine: no home, no database, no other workspace, no
// other process, and no network unless it is allowed. It never has more rights than the
// server, and none of its capabilities. Commands end as package host promises. Where an
// isolation or a limit is not available, Facts says so; Probe says whether it works here
// at all, and what to do.
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
	Environ []string // the server's, usually os.Environ(); what is harmless and points to something visible is passed on
	Env     []string // added as it is, NAME=value
	// Roots are seen by every command, beside its own. One inside a writable root
	// may not be reached through a symlink.
	Roots []sandbox.Root
	// Hide are paths that stay unseen even inside a root: the server's home and
	// database, in case somebody works in the directory above.
	Hide []string
	// Home is a directory kept between commands, for caches and settings, of
	// commands that do not name their own. Empty: every command gets a new one in memory.
	// Either is seen as /home/chorus.
	Home    string
	Network sandbox.Network // for commands that do not say
	Limits  Limits
	// Init is a program that calls Init when its first argument is InitArg. It must be
	// statically linked or find its libraries in /usr. Empty: the one that was built for
	// it, or where that is not here our own, which then has to do so.
	Init    string
	Program string // bwrap itself; empty: from PATH
	// Known is what Learned said of the same program in another process. Empty: it is asked, which takes two starts of it.
	Known string
}

// Limits apply to one command with all its processes. Zero is the default.
type Limits struct {
	FileSize  int64 // of one file; always holds
	Tmp       int64 // of /tmp, /dev/shm and a home in memory, each; with bubblewrap 0.7 or later
	Memory    int64 // with a cgroup
	Processes int64 // with a cgroup; without one for everybody but root
}

// The default limits: enough to build large programs, too little to take the
// machine down.
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

// Fact is one kind of isolation or one limit, for people.
type Fact struct {
	Name  string // "namespaces", "landlock", "memory", …
	Holds bool
	Words string // how it holds, or why not and what to do
}

// InitArg as first argument tells our own program that it was started inside the sandbox as
// its process 1, and must call Init.
const InitArg = "sandbox-init"

// Init runs commands inside of a sandbox until that is taken down. It does not return.
func Init() { inside.Main() }

// Proxy is where a command finds the proxy of its Network, in its own network, where
// nobody else can be.
const Proxy = "127.0.0.1:3128"

// Executor runs commands in the sandbox. Safe for concurrent use.
type Executor struct {
	opts    Options
	env     []string
	machine func() machine // looked at once, by the first command
	pool    pool
	trees   trees
	gating
}

var _ sandbox.Executor = (*Executor)(nil)

// New is an executor with these options. Nothing is looked up before the first
// command, Probe or Facts.
func New(opts Options) *Executor {
	opts.Limits = opts.Limits.orDefault()
	e := &Executor{opts: opts, env: process.Environ(opts.Environ)}
	e.programs = newPrograms(e.env)
	e.machine = sync.OnceValue(func() machine { return look(opts) })
	return e
}

func (e *Executor) Name() string { return "bwrap" }

// Learned is what was found out about bubblewrap, for Options.Known of another process.
func (e *Executor) Learned() string { return e.machine().learned() }

// Prime begins to find out what the first command needs to know about this machine, beside whatever its caller does meanwhile.
func (e *Executor) Prime() { go e.machine() }

// Close takes down the sandboxes that wait for a command. One that runs a command is taken
// down with its end.
func (e *Executor) Close() { e.pool.close() }

// Reap implements sandbox.Executor. The children are found from outside, by their environment.
func (e *Executor) Reap(ctx context.Context, call string) (int, error) {
	return process.Reap(ctx, call)
}

func (e *Executor) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Result{Aborted: true, ExitCode: -1}, nil
	}
	return e.run(ctx, command)
}
