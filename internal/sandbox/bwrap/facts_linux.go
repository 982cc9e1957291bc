package bwrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/bwrap/execgate"
	"chorus/internal/sandbox/bwrap/inside"
)

// machine holds what this machine supports.
type machine struct {
	program  string
	version  version
	bindFD   bool     // it accepts roots as open descriptors
	init     *os.File // the program that is process 1
	groups   groups
	landlock int   // version of the interface; 0: none
	gate     error // why programs that commands start cannot be judged, or nil
	err      error
}

type version struct{ major, minor int }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

const install = "install bubblewrap (apt-get install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap)"

// look finds out what this machine supports.
func look(opts Options) machine {
	m := machine{program: opts.Program}
	m.program = cmp.Or(m.program, "bwrap")
	path, err := exec.LookPath(m.program)
	if err != nil {
		m.err = fmt.Errorf("the sandbox needs %s, which is missing: %s", m.program, install)
		return m
	}
	m.program = path
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	keepDescriptors()
	var groups groups
	var asked sync.WaitGroup // starting programs takes most of the time, so all start at once
	defer asked.Wait()
	asked.Go(func() { groups = findGroups(opts.Limits) })
	var program *os.File
	var opened error
	asked.Go(func() { program, opened = openInit(opts.Init) })
	if !m.recall(opts.Known) {
		m.err = m.ask(ctx)
	}
	if m.err != nil {
		return m
	}
	asked.Wait()
	m.groups = groups
	m.landlock, m.gate = inside.LandlockVersion(), execgate.Works()
	if m.init = program; opened != nil {
		m.err = fmt.Errorf("open the program that runs inside the sandbox: %w", opened)
	}
	return m
}

// ask asks bubblewrap for its version.
func (m *machine) ask(ctx context.Context) error {
	var help []byte
	var asked sync.WaitGroup
	defer asked.Wait()
	asked.Go(func() { help, _ = exec.CommandContext(ctx, m.program, "--help").Output() })
	out, err := exec.CommandContext(ctx, m.program, "--version").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", m.program, err)
	}
	if m.version = parseVersion(string(out)); !m.version.atLeast(0, 5) {
		return fmt.Errorf("the sandbox needs bubblewrap 0.5 or later, %s says %q: %s", m.program, strings.TrimSpace(string(out)), install)
	}
	asked.Wait()
	m.bindFD = strings.Contains(string(help), "--ro-bind-fd")
	return nil
}

// learnedForm is the format that learned writes and recall reads.
const learnedForm = "bubblewrap %d.%d %t"

// learned returns what ask found out.
func (m machine) learned() string {
	if m.err != nil {
		return ""
	}
	return fmt.Sprintf(learnedForm, m.version.major, m.version.minor, m.bindFD)
}

func (m *machine) recall(learned string) bool {
	n, _ := fmt.Sscanf(learned, learnedForm, &m.version.major, &m.version.minor, &m.bindFD)
	return n == 3 && m.version.atLeast(0, 5)
}

// keepDescriptors keeps descriptors that this process inherited away from its
// children: a socket among them would be a way out of the sandbox.
func keepDescriptors() {
	names, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range names {
		if fd, err := strconv.Atoi(filepath.Base(name)); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// parseVersion parses "bubblewrap 0.8.0".
func parseVersion(text string) (v version) {
	_, _ = fmt.Sscanf(strings.TrimSpace(text), "bubblewrap %d.%d", &v.major, &v.minor)
	return v
}

// tmpfs returns the options for a directory in memory.
func (m machine) tmpfs(path string, size int64) []string {
	mode := "1777"
	if path == homePath {
		mode = "0700"
	}
	if !m.version.atLeast(0, 7) {
		return []string{"--perms", mode, "--tmpfs", path}
	}
	return []string{"--perms", mode, "--size", fmt.Sprint(size), "--tmpfs", path}
}

// Probe runs a command in the sandbox. It returns nil if that works, and otherwise why not and what to do.
func (e *Executor) Probe(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "chorus-probe-")
	if err != nil {
		return fmt.Errorf("try the sandbox: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	res, err := e.Run(ctx, sandbox.Command{Shell: "true", Dir: dir, Timeout: 20 * time.Second, Network: &sandbox.Network{}})
	switch {
	case err != nil:
		return err
	case res.Aborted:
		return context.Cause(ctx)
	case res.TimedOut:
		return errors.New("try the sandbox: a command that does nothing did not end in 20 seconds")
	case res.ExitCode != 0:
		return fmt.Errorf("try the sandbox: a command that does nothing ended with exit code %d: %s", res.ExitCode, res.Output)
	}
	return nil
}

// explain turns bubblewrap's message into what to do.
func explain(said string) error {
	switch {
	case said == "":
		return errors.New("bubblewrap ended without a message")
	case !strings.Contains(said, "namespace") && !strings.Contains(said, "uid map") && !strings.Contains(said, "mount proc"):
		return errors.New(said)
	}
	read := func(path string) string { return line(path) }
	switch {
	case strings.Contains(said, "mount proc"):
		return fmt.Errorf("%s; inside a container it needs a /proc that is not masked (docker run --security-opt systempaths=unconfined)", said)
	case read("/proc/sys/user/max_user_namespaces") == "0":
		return fmt.Errorf("%s; user namespaces are forbidden here: sysctl -w user.max_user_namespaces=15000", said)
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return fmt.Errorf("%s; user namespaces are forbidden here: sysctl -w kernel.unprivileged_userns_clone=1", said)
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return fmt.Errorf("%s; AppArmor forbids user namespaces here: give bwrap a profile, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0", said)
	}
	return fmt.Errorf("%s; inside a container it needs permission to create namespaces (docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined)", said)
}

// Facts reports which isolation and limits work on this machine. It
// does not try the sandbox itself; Probe does.
func (e *Executor) Facts() []Fact {
	m, l := e.machine(), e.opts.Limits
	if m.err != nil {
		return []Fact{{"namespaces", false, m.err.Error()}}
	}
	facts := []Fact{{"namespaces", true, fmt.Sprintf("bubblewrap %d.%d: own files, processes, users, host name and network", m.version.major, m.version.minor)}}
	nested := Fact{"nested namespaces", m.version.atLeast(0, 8), "commands cannot create their own user namespaces"}
	if !nested.Holds {
		nested.Words = "commands can create their own user namespaces: bubblewrap 0.8 or later prevents it"
	}
	races := Fact{"symlink races", m.bindFD, "roots are held open while they are mounted"}
	if !races.Holds {
		races.Words = "a command could replace a root inside its workspace by a symlink while the next one starts: bubblewrap 0.10 or later prevents it"
	}
	facts = append(facts, nested, races)
	if m.landlock == 0 {
		facts = append(facts, Fact{"landlock", false, "missing or disabled in this kernel: it needs Linux 5.13 or later with landlock in the lsm= list"})
	} else {
		facts = append(facts, Fact{"landlock", true, fmt.Sprintf("a second limit on files, by the kernel (version %d)", m.landlock)})
	}
	facts = append(facts, e.gateFact(m), Fact{"time", true, fmt.Sprintf("%s unless asked for, at most %s", sandbox.DefaultTimeout, sandbox.MaxTimeout)},
		Fact{"output", true, size(sandbox.MaxStream) + " of each stream"},
		Fact{"file size", true, size(l.FileSize) + " each"},
		Fact{"core dumps", true, "none"})
	tmp := Fact{"tmp", m.version.atLeast(0, 7), size(l.Tmp)}
	if !tmp.Holds {
		tmp.Words = "half of the machine's memory: bubblewrap 0.7 or later limits it"
	}
	return append(facts, tmp, m.memory(l), m.processes(l))
}

// gateFact reports whether every program that a command starts is judged.
func (e *Executor) gateFact(m machine) Fact {
	err := m.gate
	if lost := e.noGate.Load(); lost != nil {
		err = *lost
	}
	if err != nil {
		return Fact{"exec gate", false, fmt.Sprintf("%v: only a command's text is judged, not what its programs start (that needs Linux 5.14 or later, and no other such gate around Chorus)", err)}
	}
	return Fact{"exec gate", true, "every program that a command starts is judged before it runs; debuggers and tracers do not work inside"}
}

const noGroup = "no cgroup is writable here (run as root, or as a service with Delegate=yes)"

func (m machine) memory(l Limits) Fact {
	if dir, ok := m.groups["memory"]; ok {
		return Fact{"memory", true, size(l.Memory) + " by " + dir.name()}
	}
	return Fact{"memory", false, noGroup}
}

func (m machine) processes(l Limits) Fact {
	if dir, ok := m.groups["pids"]; ok {
		return Fact{"processes", true, fmt.Sprintf("%d by %s", l.Processes, dir.name())}
	}
	if os.Getuid() != 0 {
		return Fact{"processes", true, fmt.Sprintf("%d by rlimit: %s", l.Processes, noGroup)}
	}
	return Fact{"processes", false, noGroup + ", and rlimits do not limit root"}
}

func (g groupDir) name() string {
	if g.v2 {
		return "cgroup v2"
	}
	return "cgroup v1"
}

func size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
