//go:build linux

package inside

import (
	"bytes"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// clean removes what a command left besides processes, and returns what it
// could not remove. It runs while nothing else does.
func (s Setup) clean(limits []unix.Rlimit) (unclean string) {
	for _, dir := range s.Sweep {
		if !empty(dir) {
			return dir
		}
	}
	for _, name := range []string{"shm", "sem", "msg"} {
		data, err := os.ReadFile("/proc/sysvipc/" + name)
		if err == nil && bytes.Count(data, []byte("\n")) > 1 { // the first line is a title
			return "System V " + name
		}
	}
	clearKeyrings()
	if !slices.Equal(limits, currentLimits()) {
		return "changed limits of process 1"
	}
	return ""
}

// countProcesses counts the processes in the sandbox, except process 1.
func countProcesses() (n int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err != nil || pid == 1 {
			continue
		}
		data, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// The name in parentheses may contain anything.
		if at := bytes.LastIndexByte(data, ')'); at >= 0 && len(data) > at+2 && data[at+2] != 'Z' && data[at+2] != 'X' {
			n++
		}
	}
	return n
}

// currentLimits returns the limits of process 1. Any process of the same user
// can change them, and the next command would inherit them.
func currentLimits() []unix.Rlimit {
	const resources = 16
	out := make([]unix.Rlimit, resources)
	for i := range out {
		_ = unix.Getrlimit(i, &out[i])
	}
	return out
}

// newKeyring gives the next command its own session keyring, with neither the server's keys
// nor those of the last command. It fails if the kernel has no keyrings.
func newKeyring() {
	_, _, _ = unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
}

// clearKeyrings empties the keyrings of the sandbox's user that outlive a session.
func clearKeyrings() {
	for _, id := range []int{unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_USER_SESSION_KEYRING} {
		_, _, _ = unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_CLEAR, uintptr(id), 0)
	}
}

// The most that is swept. Beyond this a new sandbox is faster, and a command could make a tree of any depth.
const (
	maxRemoved = 5000
	maxDepth   = 100
)

// empty removes everything in a directory, but nothing on another
// filesystem: a workspace may be mounted below /tmp.
func empty(dir string) bool {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		_ = unix.Close(fd)
		return false
	}
	s := sweeper{device: uint64(stat.Dev), budget: maxRemoved}
	ok, _ := s.empty(fd, 0)
	return ok
}

type sweeper struct {
	device uint64
	budget int
}

// empty closes fd. none reports that nothing is left in it, so that it can be removed too.
func (s *sweeper) empty(fd, depth int) (ok, none bool) {
	dir := os.NewFile(uintptr(fd), "")
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(s.budget + 1)
	if len(names) == 0 {
		return true, true // at the end; Readdirnames then returns an error
	}
	if err != nil || len(names) > s.budget || depth > maxDepth {
		return false, false
	}
	s.budget -= len(names)
	ok, none = true, true
	for _, name := range names {
		var stat unix.Stat_t
		if err := unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return false, false
		}
		switch {
		case uint64(stat.Dev) != s.device: // a mount
			none = false
		case stat.Mode&unix.S_IFMT != unix.S_IFDIR:
			ok = unix.Unlinkat(fd, name, 0) == nil && ok
		default:
			gone, kept := s.remove(fd, name, depth)
			ok, none = ok && (gone || kept), none && gone
		}
	}
	return ok, none
}

// remove removes a directory with everything in it. kept reports that a mount below it prevents that.
func (s *sweeper) remove(fd int, name string, depth int) (gone, kept bool) {
	_ = unix.Fchmodat(fd, name, 0o700, 0)
	sub, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false, false
	}
	ok, none := s.empty(sub, depth+1)
	if !ok || !none {
		return false, ok
	}
	return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) == nil, false
}
