package bwrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// order is the first argument of the launcher.
type order struct {
	Read  []string `json:"read,omitempty"`  // what may be read and run
	Write []string `json:"write,omitempty"` // what may be changed too
	Use   []string `json:"use,omitempty"`   // devices and /proc: written to, but nothing made
	Proxy int      `json:"proxy,omitempty"` // the descriptor to hand the listener over to
}

// order is the launcher's first argument for this command.
func (a *attempt) order() string {
	o := order{Read: append([]string{"/etc", launchPath}, system...), Write: []string{"/tmp", "/dev/shm", homePath}, Use: []string{"/dev", "/proc"}, Proxy: a.proxyFD}
	for _, m := range a.view.mounts {
		if m.cover != noCover || m.guard { // what is inside of a root needs no rule
			continue
		}
		if m.writable {
			o.Write = append(o.Write, m.dest)
		} else {
			o.Read = append(o.Read, m.dest)
		}
	}
	if a.m.landlock == 0 {
		o.Read, o.Write, o.Use = nil, nil, nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and a number
	}
	return string(text)
}

// Launch is called by our own program inside the sandbox, with what follows LaunchArg: it
// opens the way to the proxy, applies Landlock and becomes the command. It only returns
// when that fails, with the exit code to end with.
func Launch(args []string) int {
	if err := launch(args); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox: "+err.Error())
	}
	return 126
}

func launch(args []string) error {
	if len(args) < 3 {
		return errors.New("this is started by the sandbox only")
	}
	var o order
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	path, argv := args[1], args[2:]
	if o.Proxy > 0 {
		if err := handOver(o.Proxy); err != nil {
			return fmt.Errorf("open the way to the proxy: %w", err)
		}
	}
	// Landlock applies to a thread: the one that is restricted must be the one that execs.
	runtime.LockOSThread()
	// The server's keys in the kernel stay the server's; where there are none this fails.
	_, _ = unix.KeyctlJoinSessionKeyring("")
	if len(o.Write) > 0 {
		if err := restrict(o); err != nil {
			return fmt.Errorf("put on landlock: %w", err)
		}
	}
	return fmt.Errorf("start %s: %w", path, unix.Exec(path, argv, os.Environ()))
}

// handOver listens where the proxy is expected and gives the listener away: it
// stays in this network when somebody outside of it takes the connections.
func handOver(fd int) error {
	listener, err := net.Listen("tcp", Proxy)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := unix.Sendmsg(fd, []byte{1}, unix.UnixRights(int(file.Fd())), nil, 0); err != nil {
		return err
	}
	return unix.Close(fd)
}

// landlockVersion is the version of the kernel's interface, 0 without.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// What can be done with files, by what the order calls it.
const (
	readAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	useAccess  = readAccess | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	allAccess  = useAccess | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	deviceAccess = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	fileAccess   = useAccess &^ unix.LANDLOCK_ACCESS_FS_READ_DIR // the most that a rule about a file may allow
)

// known is what of all access the kernel's version knows about.
func known(version int) uint64 {
	access := uint64(allAccess)
	if version < 2 {
		access &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version < 3 {
		access &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version < 5 {
		access &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return access
}

// restrict applies Landlock to this thread and what it becomes.
func restrict(o order) error {
	version := landlockVersion()
	handled := known(version)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	length := unsafe.Sizeof(attr.Handled_access_fs) // all that version 1 knows of the structure
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		length = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), length, 0)
	if errno != 0 {
		return errno
	}
	defer func() { _ = unix.Close(int(ruleset)) }()
	for _, rules := range []struct {
		paths  []string
		access uint64
	}{{o.Read, readAccess}, {o.Use, useAccess}, {o.Write, allAccess &^ deviceAccess}} {
		for _, path := range rules.paths {
			if err := allow(int(ruleset), path, rules.access&handled); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// allow adds one rule; a path that is not there needs none.
func allow(ruleset int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fileAccess
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
