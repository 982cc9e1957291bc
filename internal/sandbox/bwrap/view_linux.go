package bwrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"chorus/internal/sandbox"
)

// The programs of this machine and what they need, read-only. /opt is excluded, because
// services keep their keys next to their programs there; a root can name it.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu"}

// Patterns for what programs need of /etc. The rest stays hidden: with a server that runs as
// root, we would own it. The list is short because every mount takes time.
var settings = []string{
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/ssl", "/etc/pki", "/etc/crypto-policies",
	"/etc/nsswitch.conf", "/etc/protocols", "/etc/services", "/etc/os-release", "/etc/java*",
}

// Paths in /proc that a root process could write even without capabilities, above all
// /proc/sys/kernel/core_pattern, which is a way to run programs outside.
var procReadOnly = []string{
	"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/mtrr", "/proc/scsi", "/proc/dynamic_debug",
}

// Paths in /proc in which root could read about the machine's other users.
var procHidden = []string{"/proc/keys", "/proc/kcore", "/proc/timer_list"}

// Paths that are never a root, whoever asks: they would be the machine's own instead of the command's.
var never = []string{"/proc", "/sys", "/dev"}

const homePath = "/home/chorus" // the home inside, in memory or kept

// view is what one command sees.
type view struct {
	mounts []mount
	dir    string // where it starts, resolved
	kept   bool   // its home is a kept directory, not in memory
	uid    int
	gid    int

	guarded      []string            // git folders whose settings and hooks cannot be changed
	placeholders []*placeholder      // created for the duration of the command
	watches      []watched           // checked when it has ended
	held         []held              // what is mounted read-only, as it was
	before       map[string]gitState // folders of worktrees and submodules without mounts, as they were
	trees        []*tree             // the roots whose nested repositories are checked
	begun        []*time.Time        // when the command started, for each of them
}

// mount is one piece of this machine in the view. source is resolved.
type mount struct {
	source, dest string
	writable     bool
	cover        cover
	guard        bool // protects something inside a root
	fd           int  // source, opened, as bubblewrap gets it; 0: by its path
}

// cover is a mount that hides what is there. It has no source.
type cover uint8

const (
	noCover cover = iota
	coverDirectory
	coverFile
)

// args returns bubblewrap's options for the mount, and those that must
// follow once everything inside it is mounted.
func (m mount) args() (now, later []string) {
	switch {
	case m.cover == coverDirectory:
		return []string{"--perms", "0500", "--tmpfs", m.dest}, []string{"--remount-ro", m.dest}
	case m.cover == coverFile:
		return []string{"--ro-bind", "/dev/null", m.dest}, nil
	}
	how, source := "--ro-bind", m.source
	if m.writable {
		how = "--bind"
	}
	if m.fd > 0 {
		how, source = how+"-fd", strconv.Itoa(m.fd)
	}
	return []string{how, source, m.dest}, nil
}

// view assembles what the command may see.
func (e *Executor) view(command sandbox.Command) (*view, error) {
	dir, err := workDir(command.Dir)
	if err != nil {
		return nil, err
	}
	v := &view{dir: dir, uid: os.Getuid(), gid: os.Getgid()}
	if v.uid == 0 {
		// Programs that believe they are root do what only root can: chown, bind to low ports.
		v.uid, v.gid = 1000, 1000
	}
	roots := command.Roots
	if len(roots) == 0 {
		roots = []sandbox.Root{{Path: command.Dir, Writable: true}}
	}
	roots = slices.Concat(e.opts.Roots, roots)
	if err := v.addRoots(roots); err != nil {
		return nil, err
	}
	if err := v.keepHome(command.Home, e.opts.Home); err != nil {
		return nil, err
	}
	if !v.covers(dir) {
		return nil, fmt.Errorf("start the command in %s: not in any root of the sandbox", command.Dir)
	}
	for _, m := range slices.Clone(v.mounts) {
		// Whoever names the repository as a root has decided what may be written in it.
		if common := mainRepository(m.source); common != "" && v.writes(m.dest) && !v.writable(common) && !v.has(common) {
			v.mounts = append(v.mounts, mount{source: common, dest: common, writable: true})
		}
	}
	if err := v.hide(e.opts.Hide); err != nil {
		return nil, err
	}
	if !command.OpenGit {
		if err := v.guard(&e.trees); err != nil {
			v.release()
			return nil, err
		}
	}
	// Outer mounts come before inner ones, which they would otherwise cover.
	slices.SortStableFunc(v.mounts, func(a, b mount) int { return strings.Count(a.dest, "/") - strings.Count(b.dest, "/") })
	return v, nil
}

// release removes what was made for the command.
func (v *view) release() {
	for _, h := range v.placeholders {
		h.release()
	}
}

// keepHome makes the first given directory the command's home.
func (v *view) keepHome(choices ...string) error {
	for _, home := range choices {
		if home == "" {
			continue
		}
		resolved, err := withoutLinks(home)
		if err != nil {
			return fmt.Errorf("sandbox home %s: %w", home, errors.Unwrap(err))
		}
		v.kept = true
		v.mounts = append(v.mounts, mount{source: resolved, dest: homePath, writable: true})
		return nil
	}
	return nil
}

func workDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("start the command: a sandbox needs a directory")
	}
	resolved, err := withoutLinks(dir)
	if err != nil {
		return "", fmt.Errorf("start the command in %s: %w", dir, errors.Unwrap(err))
	}
	if info, err := os.Stat(resolved); err != nil || !info.IsDir() {
		return "", fmt.Errorf("start the command in %s: not a directory", dir)
	}
	return filepath.Abs(resolved)
}

// addRoots adds the roots, each at its own path. A root that is named by a symlink is visible at both paths.
func (v *view) addRoots(roots []sandbox.Root) error {
	for _, root := range roots {
		path, err := filepath.Abs(root.Path)
		if err != nil {
			return fmt.Errorf("sandbox root %s: %w", root.Path, err)
		}
		resolved, err := withoutLinks(path)
		if err != nil {
			return fmt.Errorf("sandbox root %s: %w", root.Path, errors.Unwrap(err))
		}
		if resolved == "/" || slices.ContainsFunc(never, func(dir string) bool { return sandbox.Within(resolved, dir) || sandbox.Within(path, dir) }) {
			return fmt.Errorf("sandbox root %s is the machine itself: name a directory with files to work on", root.Path)
		}
		v.mounts = append(v.mounts, mount{source: resolved, dest: resolved, writable: root.Writable})
		if path != resolved {
			v.mounts = append(v.mounts, mount{source: resolved, dest: path, writable: root.Writable})
		}
	}
	// A command can put a symlink anywhere it can write, and the next command would be given its target.
	for _, root := range roots {
		for _, other := range v.mounts {
			if other.writable && sandbox.Within(filepath.Clean(root.Path), other.dest) && filepath.Clean(root.Path) != other.dest && !v.has(filepath.Clean(root.Path)) {
				return fmt.Errorf("sandbox root %s: a symlink inside %s, which commands can change", root.Path, other.dest)
			}
		}
	}
	return nil
}

// withoutLinks is filepath.EvalSymlinks. Most paths contain no link, which the
// kernel can report in one call instead of one for each folder.
func withoutLinks(path string) (string, error) {
	if filepath.IsAbs(path) && filepath.Clean(path) == path {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err == nil {
			return path, unix.Close(fd)
		}
	}
	return filepath.EvalSymlinks(path)
}

// has reports whether path is a root that is no symlink.
func (v *view) has(path string) bool {
	return slices.ContainsFunc(v.mounts, func(m mount) bool { return m.source == path && m.dest == path })
}

// writable reports whether a writable root contains the path.
func (v *view) writable(path string) bool {
	return slices.ContainsFunc(v.mounts, func(m mount) bool { return m.writable && sandbox.Within(path, m.dest) })
}

// writes reports whether anything at or below the path can be written: a
// repository that is only read needs no more than it shows.
func (v *view) writes(path string) bool {
	return slices.ContainsFunc(v.mounts, func(m mount) bool { return m.writable && sandbox.Within(m.dest, path) })
}

// covers reports whether the command will see at the path what this machine has there.
func (v *view) covers(path string) bool {
	return slices.ContainsFunc(v.mounts, func(m mount) bool { return sandbox.Within(path, m.dest) }) ||
		slices.ContainsFunc(system, func(dir string) bool { return sandbox.Within(path, dir) })
}

// args returns bubblewrap's options for the view, including those for the settings of this
// machine. Bubblewrap reads passwd, group and hosts from descriptors.
func (v *view) args(e *Executor, m machine, network sandbox.Network, settings []string, data [3]int) []string {
	a := append(make([]string, 0, 256), // enough for most
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox",
		"--uid", strconv.Itoa(v.uid), "--gid", strconv.Itoa(v.gid),
	)
	if m.version.atLeast(0, 8) {
		a = append(a, "--disable-userns")
	}
	if !network.Open {
		a = append(a, "--unshare-net")
	}
	a = append(a, systemArgs()...)
	a = append(a, "--perms", "0755", "--dir", "/etc")
	a = append(a, settings...)
	if network.Open {
		a = append(a, "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf", "--ro-bind-try", "/etc/hosts", "/etc/hosts")
	} else {
		a = append(a, "--ro-bind-data", strconv.Itoa(data[2]), "/etc/hosts")
	}
	a = append(a, "--ro-bind-data", strconv.Itoa(data[0]), "/etc/passwd", "--ro-bind-data", strconv.Itoa(data[1]), "/etc/group")
	a = append(a, "--dev", "/dev")
	a = append(a, m.tmpfs("/dev/shm", e.opts.Limits.Tmp)...)
	a = append(a, "--remount-ro", "/dev", "--proc", "/proc")
	if os.Getuid() == 0 {
		a = append(a, procArgs()...)
	}
	a = append(a, m.tmpfs("/tmp", e.opts.Limits.Tmp)...)
	if !v.kept {
		a = append(a, m.tmpfs(homePath, e.opts.Limits.Tmp)...)
	}
	var last []string
	for _, m := range v.mounts {
		now, later := m.args()
		a, last = append(a, now...), append(last, later...)
	}
	a = append(a, last...)
	return append(a, "--remount-ro", "/", "--chdir", "/")
}

// systemArgs show the system with the layout it has here: on many machines /bin is a symlink into
// /usr, and programs care. The layout does not change while a machine runs.
var systemArgs = sync.OnceValue(func() []string {
	var a []string
	for _, path := range system {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			if target, err := os.Readlink(path); err == nil {
				a = append(a, "--symlink", target, path)
			}
		case info.IsDir():
			a = append(a, "--ro-bind", path, path)
		}
	}
	return a
})

// systemDirs are the system directories that are no symlinks.
var systemDirs = sync.OnceValue(func() []string {
	var dirs []string
	for _, dir := range system {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real == dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs
})

// settingPaths are the settings that exist on this machine. They are looked up once: new
// names are rare, and reading all of /etc takes longer than a command.
var settingPaths = sync.OnceValue(func() []string {
	var all []string
	for _, pattern := range settings {
		paths, _ := filepath.Glob(pattern)
		all = append(all, paths...)
	}
	return all
})

// settingArgs show the settings that exist. A symlink into /usr needs no mount.
func settingArgs() []string {
	var a []string
	for _, path := range settingPaths() {
		target, err := filepath.EvalSymlinks(path)
		switch {
		case err != nil:
		case target != path && sandbox.Within(target, "/usr"):
			a = append(a, "--symlink", target, path)
		default:
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	return a
}

// procArgs hide what nobody inside should write or read in /proc, which depends on the kernel.
var procArgs = sync.OnceValue(func() []string {
	var a []string
	for _, path := range procReadOnly {
		if _, err := os.Lstat(path); err == nil {
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	for _, path := range procHidden {
		if _, err := os.Lstat(path); err == nil {
			a = append(a, "--ro-bind-try", "/dev/null", path)
		}
	}
	return a
})

// hide covers paths that would be visible. Invisible paths need no
// cover. A root inside a covered path stays visible.
func (v *view) hide(paths []string) error {
	for _, path := range paths {
		var status unix.Stat_t
		if err := unix.Stat(path, &status); err != nil {
			continue // most do not exist, which costs one call
		}
		resolved, err := withoutLinks(path)
		if err != nil {
			continue
		}
		kind := coverFile
		if status.Mode&unix.S_IFMT == unix.S_IFDIR {
			kind = coverDirectory
		}
		for _, at := range v.places(resolved) {
			if v.has(at) {
				return fmt.Errorf("sandbox root %s belongs to the server and is hidden: work in another directory", at)
			}
			v.mounts = append(v.mounts, mount{dest: at, cover: kind})
		}
	}
	return nil
}

// places returns where in the view a path of this machine can be seen.
func (v *view) places(path string) []string {
	var at []string
	for _, m := range v.mounts {
		if m.cover == noCover && sandbox.Within(path, m.source) {
			at = append(at, m.dest+strings.TrimPrefix(path, m.source))
		}
	}
	for _, dir := range systemDirs() {
		if sandbox.Within(path, dir) {
			at = append(at, path)
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// files returns the contents of passwd, group and hosts.
func (v *view) files() [3]string {
	id := func(n int) string { return strconv.Itoa(n) }
	return [3]string{
		"chorus:x:" + id(v.uid) + ":" + id(v.gid) + "::" + homePath + ":/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
		"chorus:x:" + id(v.gid) + ":\nnogroup:x:65534:\n",
		"127.0.0.1 localhost sandbox\n::1 localhost\n",
	}
}
