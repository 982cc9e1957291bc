package bwrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/process"
)

// The descriptors bubblewrap is started with.
const (
	argsFD   = 3 // its options: it waits for them, and by then its limits apply
	reportFD = 4 // what the wrapper says
	dataFD   = 5 // passwd, group, hosts; then the roots, and where the launcher hands its listener over
)

// wrapper runs the command inside the sandbox. It reports that it has started, and in the
// end how many processes are left: they die with bubblewrap and could not be counted
// later. Its $0 is the limit of processes, for which bash and dash have different letters.
const wrapper = `echo started >&4
exec 5>&2 2>/dev/null
ulimit -u "$0" || ulimit -p "$0"
( exec 2>&5 4>&- 5>&-; exec "$@" )
code=$?
left=0
for p in /proc/[0-9]*; do
	case $p in /proc/1|/proc/$$) continue;; esac
	while read -r key value rest; do
		if [ "$key" = State: ]; then
			case $value in Z|X) ;; *) left=$((left+1));; esac
			break
		fi
	done < "$p/status"
done
echo "left $left" >&4
exit $code
`

// attempt is one run of a command.
type attempt struct {
	e       *Executor
	m       machine
	command sandbox.Command
	view    *view
	network sandbox.Network
	mark    string
	env     []string   // inside the sandbox
	path    string     // the program
	argv    []string   // and how it is called
	files   []*os.File // the child's ends from descriptor 3 on, closed once it has them
	proxyFD int        // which of them is the launcher's
	leave   func()     // out of the cgroup
}

func (e *Executor) run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	a := &attempt{e: e, m: e.machine(), command: command, mark: process.Mark(), network: e.opts.Network, leave: func() {}}
	if a.m.err != nil {
		return sandbox.Result{}, a.m.err
	}
	if command.Network != nil {
		a.network = *command.Network
	}
	if a.network.Proxy != "" && a.m.launcher == "" {
		return sandbox.Result{}, errors.New("the sandbox reaches a proxy only with a launcher, and has none")
	}
	var err error
	if a.view, err = e.view(command); err != nil {
		return sandbox.Result{}, err
	}
	defer a.view.release()
	if err := a.prepare(); err != nil {
		return sandbox.Result{}, err
	}
	return a.run(ctx)
}

// prepare decides what is started, and with what environment.
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
			return errors.New("start the command: it holds a NUL character, which no program can be given")
		}
	}
	return nil
}

// run starts the child and waits for it.
func (a *attempt) run(ctx context.Context) (sandbox.Result, error) {
	defer func() { a.leave() }()
	defer a.close()
	feed, err := a.pipe() // argsFD
	if err != nil {
		return sandbox.Result{}, err
	}
	defer func() { _ = feed.Close() }()
	report, err := a.reportPipe() // reportFD
	if err != nil {
		return sandbox.Result{}, err
	}
	defer func() { _ = report.Close() }()
	if err := a.data(); err != nil {
		return sandbox.Result{}, err
	}
	if err := a.openRoots(); err != nil {
		return sandbox.Result{}, err
	}
	if a.network.Proxy != "" {
		stop, err := a.forward(a.network.Proxy)
		if err != nil {
			return sandbox.Result{}, err
		}
		defer stop()
	}
	r, err := process.Start(a.command, process.Child{
		Argv: a.arguments(), Env: process.Marks(a.command, a.mark), Mark: a.mark, Files: a.files,
		Started: func(pid int) error { return a.started(pid, feed) },
	})
	if err != nil {
		return sandbox.Result{}, err
	}
	a.close() // or the report would never end
	res, err := r.Wait(ctx)
	notes, unsettled := a.view.settle() // whatever came of it
	if err := errors.Join(err, unsettled); err != nil {
		return res, err
	}
	res.Notes = append(notes, a.view.explains(res)...)
	return a.judge(res, report)
}

// arguments start bubblewrap. Its options come through a pipe, so that it does
// nothing until it is limited; the command does not fit in there.
func (a *attempt) arguments() []string {
	argv := []string{a.m.program, "--args", strconv.Itoa(argsFD), "--", "/bin/sh", "-c", wrapper, strconv.FormatInt(a.e.opts.Limits.Processes, 10)}
	if a.m.launcher != "" {
		argv = append(argv, launchPath, LaunchArg, a.order(), a.path)
	}
	return append(argv, a.argv...)
}

// started limits bubblewrap and then gives it its options.
func (a *attempt) started(pid int, feed *os.File) error {
	for resource, value := range map[int]int64{unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: a.e.opts.Limits.FileSize} {
		limit := unix.Rlimit{Cur: uint64(value), Max: uint64(value)}
		var old unix.Rlimit
		if err := unix.Prlimit(pid, resource, nil, &old); err == nil && old.Max < limit.Max {
			limit = unix.Rlimit{Cur: old.Max, Max: old.Max} // it is tighter already
		}
		if err := unix.Prlimit(pid, resource, &limit, nil); err != nil {
			return fmt.Errorf("limit the command: %w", err)
		}
	}
	leave, err := a.m.groups.enter(pid, a.e.opts.Limits)
	if err != nil {
		return fmt.Errorf("put the command into a cgroup: %w", err)
	}
	a.leave = leave
	args := a.view.args(a.e, a.m, a.network, [3]int{dataFD, dataFD + 1, dataFD + 2})
	args = append(args, "--clearenv")
	for _, entry := range a.env {
		name, value, _ := strings.Cut(entry, "=")
		args = append(args, "--setenv", name, value)
	}
	_ = feed.SetWriteDeadline(time.Now().Add(10 * time.Second))
	// If it ends before it has read everything, its exit code and its output say why.
	_, _ = feed.WriteString(strings.Join(args, "\x00") + "\x00")
	return feed.Close()
}

// judge distinguishes a command that failed from a sandbox that could not be set up, and
// adds what only the wrapper knows.
func (a *attempt) judge(res sandbox.Result, report *os.File) (sandbox.Result, error) {
	_ = report.SetReadDeadline(time.Now().Add(time.Second))
	begun, left := false, 0
	for lines := bufio.NewScanner(io.LimitReader(report, 4096)); lines.Scan(); {
		switch key, value, _ := strings.Cut(lines.Text(), " "); key {
		case "started":
			begun = true
		case "left":
			// A command can write here too, so the number is checked.
			if n, err := strconv.Atoi(value); err == nil && n >= 0 && n <= 1<<20 {
				left = n
			}
		}
	}
	killed := res.TimedOut || res.Aborted
	if !begun && !killed && res.ExitCode != 128+int(unix.SIGKILL) {
		return sandbox.Result{}, fmt.Errorf("put up the sandbox: %w", explain(strings.TrimSpace(res.Output)))
	}
	if res.Left = left; killed {
		res.Left = 0
	}
	return res, nil
}

// give makes f one of the child's files and says under which descriptor.
func (a *attempt) give(f *os.File) int {
	a.files = append(a.files, f)
	return len(a.files) + 2
}

// pipe makes a pipe whose reading end the child gets.
func (a *attempt) pipe() (ours *os.File, err error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the sandbox: %w", err)
	}
	a.give(theirs)
	return ours, nil
}

func (a *attempt) reportPipe() (*os.File, error) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the sandbox: %w", err)
	}
	a.give(theirs)
	return ours, nil
}

// openRoots holds on to the roots, so that what is mounted is what was looked at: a
// command that runs beside this one could put a symlink in between.
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

// data gives the child the few files of /etc that are made up.
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
