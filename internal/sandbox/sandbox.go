// Package sandbox is the contract for running other programs: one call runs one process tree, and it always
// ends. All executors (host, bwrap, docker) fulfil the contract; sandboxtest checks them.
package sandbox

import (
	"context"
	"strings"
	"time"
)

// Command is one shell command to run.
type Command struct {
	Shell   string        // run by `sh -c` (bash if there is one)
	Argv    []string      // instead of Shell: a program run without a shell
	Dir     string        // working directory; must exist
	Env     []string      // added to the cleaned environment, NAME=value
	Stdin   []byte        // empty: /dev/null
	Timeout time.Duration // 0: DefaultTimeout
	Call    string        // every child carries CHORUS_CALL=<Call>, so that it can be found after a crash
	// Merge gives both streams one pipe. Output is then in the order in which it was
	// written, Stdout equals it, and Stderr is empty. Without Merge the streams are read
	// separately, and only the order within each is certain.
	Merge bool
	// OnOutput receives cleaned output as it comes; it may be nil. It is called
	// from one goroutine at a time and must not block.
	OnOutput func(text string)
	// Roots are the directories (or files) that an isolating executor shows the command besides
	// the system's. Dir must be in one of them. If empty: Dir, writable.
	Roots []Root
	// Folder is the FolderID that Dir had when it was decided that work there is allowed.
	// An isolating executor refuses any other folder that has since taken Dir's place, by a
	// link or a rename. If empty, any folder is accepted.
	Folder string
	// Home is a directory of ours that an isolating executor makes the command's home and that is kept
	// between commands. If empty, the executor chooses. Other executors ignore it.
	Home string
	// OpenGit lets the command change a repository's hooks and settings, from which git
	// starts programs. Executors that do not isolate ignore it.
	OpenGit bool
	// Network is what an isolating executor lets the command reach; nil: the executor's default.
	Network *Network
	// Judge judges the programs that the command starts, in executors that can observe that;
	// nil: everything may run. What it refuses appears in the notes.
	Judge Judge
}

// Root is a directory or file of this machine that a command may see, at its own path.
type Root struct {
	Path     string // absolute
	Writable bool
}

// Network is what a command may reach. The zero value is nothing but itself.
type Network struct {
	Open  bool   // everything that this machine reaches, including its loopback
	Proxy string // only this proxy: the path of a unix socket, or host:port; HTTP_PROXY and similar variables name it
}

// The limits of a command.
const (
	DefaultTimeout = 120 * time.Second
	MaxTimeout     = 600 * time.Second
	MaxStream      = 10 << 20 // bytes kept of each stream; the rest is counted and dropped
)

// Result is how a command ended. Output is cleaned: valid UTF-8, no escape
// sequences, no control characters except newline and tab.
type Result struct {
	Stdout   string
	Stderr   string
	Output   string // both streams, interleaved as they came
	ExitCode int    // 128+n if killed by signal n; -1 if we killed it
	TimedOut bool
	Aborted  bool  // the context was cancelled
	Left     int   // processes that outlived a command which ended by itself; they were killed
	Dropped  int64 // bytes beyond MaxStream
	Took     time.Duration
	Notes    []string // the executor's remarks, one line each; not part of the output
}

// Remark adds a note of ours to a command's output, on its own line, and returns the note as added.
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
	// Run runs one command until it ends, its timeout passes or ctx is cancelled. In the last two cases the
	// whole process tree is killed, and the result has the output so far. A command that fails is a Result;
	// an error means that it could not be started at all. Run is safe for concurrent use.
	Run(ctx context.Context, cmd Command) (Result, error)
	// Reap kills what still runs of the call after a crash and returns how many processes that were.
	Reap(ctx context.Context, call string) (int, error)
	// Name returns the name by which people choose the executor: host, bwrap, docker.
	Name() string
}

// Judge says at once whether a program may run; an error says why not. If a person must be asked, it returns
// ask, which waits for the answer while the program waits. Many programs may wait at the same time.
type Judge func(program Exec) (ask func(context.Context) error, err error)

// Exec is a program that a command is about to start, at any depth.
type Exec struct {
	// Names are the names of its file and all names under which this machine has the
	// same program, as a copy or a link. There is at least one.
	Names  []string
	Path   string // as the process named it
	System bool   // a program of the machine, which commands cannot change
	Script bool   // it is the interpreter that a judged script's first line names
	Argv   []string
	Dir    func() string   // the directory in which it starts
	By     func() []string // the arguments of the process that starts it
}

// Within reports whether path is root or lies below it. Both are absolute and clean.
func Within(path, root string) bool {
	if path == root {
		return true
	}
	root = strings.TrimSuffix(root, "/")
	return len(path) > len(root) && path[len(root)] == '/' && strings.HasPrefix(path, root) // avoids building a string, because it is called very often
}
