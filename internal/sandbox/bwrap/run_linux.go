package bwrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap/inside"
	"chorus/internal/sandbox/process"
)

// attempt is one run of a command.
type attempt struct {
	e       *Executor
	m       machine
	command sandbox.Command
	view    *view
	network sandbox.Network
	mark    string
	key     string   // everything that the sandbox depends on
	env     []string // inside the sandbox
	path    string   // the program
	argv    []string // and its arguments
	sources map[string]fileID
	files   []*os.File      // a new sandbox's files from descriptor 3 on, closed once it has them
	ctx     context.Context // ends the start of a sandbox; nil: only its timeout does
}

func (e *Executor) run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	a, err := e.attempt(command)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer a.view.release()
	return a.run(ctx)
}

// attempt checks everything that a run needs, and starts nothing. The caller must release its view.
func (e *Executor) attempt(command sandbox.Command) (*attempt, error) {
	a := &attempt{e: e, m: e.machine(), command: command, mark: process.Mark(), network: e.opts.Network}
	if a.m.err != nil {
		return nil, a.m.err
	}
	if command.Network != nil {
		a.network = *command.Network
	}
	var err error
	if a.view, err = e.view(command); err != nil {
		return nil, err
	}
	if err := errors.Join(a.sameFolder(""), a.prepare()); err != nil {
		a.view.release()
		return nil, err
	}
	return a, nil
}

// prepare decides what is started, and with which environment.
func (a *attempt) prepare() error {
	a.env = a.environment()
	a.argv = process.Argv(a.command, func() string {
		if path, err := a.lookup("bash"); err == nil {
			return path
		}
		return "/bin/sh"
	})
	a.path = a.argv[0]
	if len(a.command.Argv) > 0 {
		var err error
		if a.path, err = a.lookup(a.argv[0]); err != nil {
			return err
		}
	}
	for _, text := range slices.Concat(a.argv, a.env) {
		if strings.Contains(text, "\x00") {
			return errors.New("start the command: it contains a NUL character, which cannot be passed to a program")
		}
	}
	a.key = a.identity()
	return nil
}

// run runs the command in a waiting sandbox or a new one.
func (a *attempt) run(ctx context.Context) (sandbox.Result, error) {
	var res sandbox.Result
	a.view.begin()
	place := a.place()
	i, err := a.e.pool.get(place, a.key), error(nil)
	for waited := i != nil; ; waited = false {
		if !waited {
			if i, err = a.start(); err != nil {
				_, unsettled := a.view.settle()
				return sandbox.Result{}, errors.Join(err, unsettled)
			}
		}
		res, err = a.runIn(ctx, i)
		a.e.pool.put(place, i)
		if lost := waited && i.unread && !res.TimedOut && !res.Aborted; !lost {
			break
		}
	}
	notes, unsettled := a.view.settle() // whatever the outcome
	if err := errors.Join(err, unsettled); err != nil {
		return res, err
	}
	res.Notes = slices.Concat(res.Notes, notes, a.view.explains(res))
	return res, nil
}

func (a *attempt) runIn(ctx context.Context, i *instance) (sandbox.Result, error) {
	if i.forward != nil {
		defer i.forward.carryTo(a.network.Proxy)()
	}
	if err := a.sameFolder(i.root()); err != nil {
		i.unclean = true
		return sandbox.Result{}, err
	}
	end := func() []string { return nil }
	r, err := process.Start(a.command, func(r *process.Running, streams process.Streams) (process.Process, error) {
		if i.gate != nil {
			end = i.gate.Judge(ctx, func(program sandbox.Exec) (func(context.Context) error, error) {
				ask, err := a.command.Judge(program)
				if ask == nil {
					return nil, err
				}
				return func(ctx context.Context) error {
					defer r.Pause()() // the command's time does not run meanwhile
					return ask(ctx)
				}, err
			})
		}
		return i.begin(inside.Request{Path: a.path, Argv: a.argv, Env: a.env, Dir: a.view.dir}, streams)
	})
	if err != nil {
		i.unclean = true
		end()
		return sandbox.Result{}, err
	}
	res, err := r.Wait(ctx)
	for _, text := range end() {
		res.Notes = append(res.Notes, "[permissions: "+text+"]")
	}
	return res, err
}

// gated reports whether the programs that the command starts are judged.
func (a *attempt) gated() bool {
	return a.command.Judge != nil && a.m.gate == nil && a.e.noGate.Load() == nil
}

// place is where a sandbox waits for the next command with the same requirements. It is empty if the
// sandbox must not wait, because things made for one command only would remain.
func (a *attempt) place() string {
	if len(a.view.placeholders) > 0 {
		return ""
	}
	roots := a.command.Roots
	if len(roots) == 0 {
		roots = []sandbox.Root{{Path: a.command.Dir, Writable: true}}
	}
	return fmt.Sprintf("%+v %q %v %v %v %v", roots, a.command.Home, a.command.OpenGit, a.network.Open, a.network.Proxy != "", a.gated())
}

// identity is everything that a sandbox depends on: its options, and which files they mean at this
// moment. A file that is replaced, as git replaces its settings, loses its mount.
func (a *attempt) identity() string {
	a.sources = map[string]fileID{}
	text := make([]byte, 0, 4096)
	for _, option := range a.options(nil) { // the options for settings follow from the files' identities
		text = append(append(text, option...), 0)
	}
	text = strconv.AppendBool(text, a.network.Proxy != "")
	text = strconv.AppendBool(text, a.gated())
	for _, m := range a.view.mounts {
		if m.cover == noCover {
			id, _, err := identify(m.source)
			text = id.append(text, err)
			if err == nil {
				a.sources[m.source] = id
			}
		}
	}
	for _, path := range settingPaths() {
		id, err := identifyTarget(path)
		text = id.append(text, err)
	}
	return string(text)
}

// options returns bubblewrap's options.
func (a *attempt) options(settings []string) []string {
	args := a.view.args(a.e, a.m, a.network, settings, [3]int{dataFD, dataFD + 1, dataFD + 2})
	return append(args, "--clearenv", "--as-pid-1")
}

// setup returns what process 1 must apply.
func (a *attempt) setup() inside.Setup {
	s := inside.Setup{
		Read: append([]string{"/etc"}, system...), Write: []string{"/tmp", "/dev/shm", homePath}, Use: []string{"/dev", "/proc"},
		Sweep: []string{"/tmp", "/dev/shm"}, Processes: a.e.opts.Limits.Processes, Proxy: a.network.Proxy != "",
		Gate: a.gated(),
	}
	if !a.view.kept {
		s.Sweep = append(s.Sweep, homePath)
	}
	for _, m := range a.view.mounts {
		if m.cover != noCover || m.guard { // anything inside a root needs no rule
			continue
		}
		if m.writable {
			s.Write = append(s.Write, m.dest)
		} else {
			s.Read = append(s.Read, m.dest)
		}
	}
	if a.m.landlock == 0 {
		s.Read, s.Write, s.Use = nil, nil, nil
	}
	return s
}

// limit limits bubblewrap and everything it will start, while it waits for its options.
func (a *attempt) limit(pid int) error {
	for resource, value := range map[int]int64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: a.e.opts.Limits.FileSize} {
		limit := unix.Rlimit{Cur: uint64(value), Max: uint64(value)}
		var old unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &old); err == nil && old.Max < limit.Max {
			limit = unix.Rlimit{Cur: old.Max, Max: old.Max} // the present limit is tighter
		}
		if err := unix.Prlimit(pid, resource, &limit, nil); err != nil {
			return fmt.Errorf("limit the command: %w", err)
		}
	}
	return nil
}

// give makes f one of the sandbox's files and returns its descriptor there.
func (a *attempt) give(f *os.File) int {
	a.files = append(a.files, f)
	return len(a.files) + 2
}

// pipe creates a pipe whose reading end the sandbox gets.
func (a *attempt) pipe() (ours *os.File, err error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the sandbox: %w", err)
	}
	a.give(theirs)
	return ours, nil
}

// openRoots opens the roots, so that what is mounted is what was checked: a
// concurrent command could put a symlink in between.
func (a *attempt) openRoots() error {
	if !a.m.bindFD {
		return nil
	}
	for i := range a.view.mounts {
		m := &a.view.mounts[i]
		if m.cover != noCover {
			continue
		}
		fd, err := unix.Openat2(unix.AT_FDCWD, m.source, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if errors.Is(err, unix.ENOSYS) {
			return nil // an old kernel
		}
		if err != nil {
			return fmt.Errorf("open the sandbox root %s: %w", m.source, err)
		}
		m.fd = a.give(os.NewFile(uintptr(fd), m.source))
	}
	return nil
}

// data passes the few generated files of /etc to the sandbox.
func (a *attempt) data() error {
	for _, text := range a.view.files() {
		ours, err := a.pipe()
		if err != nil {
			return err
		}
		_, err = ours.WriteString(text) // far less than a pipe holds
		if err := errors.Join(err, ours.Close()); err != nil {
			return fmt.Errorf("write for the sandbox: %w", err)
		}
	}
	return nil
}

func (a *attempt) close() {
	for _, f := range a.files {
		_ = f.Close()
	}
	a.files = nil
}
