// Package sandbox is the contract of running other programs: one call runs one process
// tree, and it always ends. Executors (host, bwrap, docker) keep all of it; sandboxtest
// checks them.
package sandbox

import (
	"context"
	"strings"
	"time"
)

// Command is one shell command to run.
type Command struct {
	Shell   string        // run by `sh -c` (bash where there is one)
	Argv    []string      // instead of Shell: a program without a shell
	Dir     string        // where it runs; must exist
	Env     []string      // added to the cleaned environment, NAME=value
	Stdin   []byte        // empty: /dev/null
	Timeout time.Duration // 0: DefaultTimeout
	Call    string        // every child carries CHORUS_CALL=<Call>, so that it can be found after a crash
	// Merge gives both streams one pipe: Output is then in the order in which it
	// was written, Stdout equals it and Stderr is empty. Without it two streams are
	// read apart and only their own order is certain.
	Merge bool
	// OnOutput gets cleaned output as it comes (may be nil). It is called from one
	// goroutine at a time and must not block.
	OnOutput func(text string)
	// Roots are the directories (or files) that an isolating executor lets the command
	// see beside the system's; Dir must lie in one. Empty: Dir, writable.
	Roots []Root
	// Folder is the FolderID of Dir when it was decided that somebody may work there. An isolating executor refuses any
	// other that has its name since, by a link or a rename; empty: whichever it is.
	Folder string
	// Home is a directory of ours that an isolating executor makes the command's home,
	// kept between commands; empty: the executor's own choice. Others ignore it.
	Home string
	// OpenGit lets the command change a repository's hooks and settings, from which git
	// starts programs. Executors that do not isolate ignore it.
	OpenGit bool
	// Network is what an isolating executor lets it reach; nil: the executor's default.
	Network *Network
	// Judge judges the programs that the command starts, in executors that see them start; nil:
	// everything may run. What it refuses ends up in the notes.
	Judge Judge
}

// Root is a piece of this machine that a command may see, at its own path.
type Root struct {
	Path     string // absolute
	Writable bool
}

// Network is what a command may reach. The zero value is nothing but itself.
type Network struct {
	Open  bool   // whatever this machine reaches, its own loopback too
	Proxy string // only this proxy: the path of a unix socket, or host:port; HTTP_PROXY and its like name it
}

// The limits of a command.
const (
	DefaultTimeout = 120 * time.Second
	MaxTimeout     = 600 * time.Second
	MaxStream      = 10 << 20 // bytes kept of each stream; the rest is counted and dropped
)

// Result is how a command ended. Output is cleaned: valid UTF-8, no escape
// sequences, no control characters but newline and tab.
type Result struct {
	Stdout   string
	Stderr   string
	Output   string // both, interleaved as they came
	ExitCode int    // 128+n when killed by signal n; -1 when it was killed by us
	TimedOut bool
	Aborted  bool  // the context was cancelled
	Left     int   // processes that outlived a command which ended by itself; they were killed
	Dropped  int64 // bytes beyond MaxStream
	Took     time.Duration
	Notes    []string // the executor's remarks, one line each; not part of the output
}

// Remark adds words of ours to what a command printed, on a line of their own, and returns them as they stand there.
func (r *Result) Remark(cmd Command, note string) string {
	if r.Output != "" && !strings.HasSuffix(r.Output, "\n") {
		note = "\n" + note
	}
	r.Output += note
	if cmd.Merge {
		r.Stdout += note
	} else {
		r.Stderr += note
	}
	return note
}

// Executor runs commands.
type Executor interface {
	// Run runs one command until it ends, its timeout passes or ctx is cancelled;
	// in the last two cases the whole process tree is killed and what it printed
	// until then is in the result. A command that fails is a Result; an error
	// means it could not be started at all. Safe for concurrent use.
	Run(ctx context.Context, cmd Command) (Result, error)
	// Reap kills whatever still runs of the call after a crash, and says how many
	// processes that were.
	Reap(ctx context.Context, call string) (int, error)
	// Name is how people choose it: host, bwrap, docker.
	Name() string
}

// Judge says at once whether a program may run; an error is why not. Where somebody has to be
// asked it gives ask, which waits for the answer, and the program waits with it; many may wait at
// the same time.
type Judge func(program Exec) (ask func(context.Context) error, err error)

// Exec is a program that a command is about to start, however deep.
type Exec struct {
	// Names are what it is called: by its file, and by every name under which this machine
	// has the same program, be it a copy or a link. There is at least one.
	Names  []string
	Path   string // as it was named
	System bool   // it is one of the machine's, which commands cannot change
	Script bool   // it runs a script that was judged, because the script's first line says so
	Argv   []string
	Dir    func() string   // where it starts
	By     func() []string // the arguments of the process that starts it
}

// Within reports whether path is root or lies below it. Both are absolute and clean.
func Within(path, root string) bool {
	if path == root {
		return true
	}
	root = strings.TrimSuffix(root, "/")
	return len(path) > len(root) && path[len(root)] == '/' && strings.HasPrefix(path, root) // makes no string: it is asked very often
}
