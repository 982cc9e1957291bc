//go:build linux

package inside

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Every command runs under a filter of system calls. It refuses file modes that would
// let a program leave the sandbox. If a gate is requested, it also reports each
// program that is started to the server, which decides.

// The fields of the data that a filter sees.
const (
	callField = 0
	archField = 4
	argsField = 16
)

// call is one row of the filter.
type call struct {
	number uint32
	arg    int    // the argument that decides
	mask   uint32 // any of these bits in it; 0: all calls, or those with equals
	equals *uint32
	unless bool // any other value instead
	action uint32
}

const (
	refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	report  = unix.SECCOMP_RET_USER_NOTIF
	allowed = unix.SECCOMP_RET_ALLOW
)

// otherUser are the mode bits that make a program run as its owning user or
// group. With a server that runs as root, that would be root.
const otherUser = unix.S_ISUID | unix.S_ISGID

// calls returns the rows for this machine.
func calls(gate bool) []call {
	rows := []call{
		{number: unix.SYS_FCHMOD, arg: 1, mask: otherUser, action: refuse},
		{number: unix.SYS_FCHMODAT, arg: 2, mask: otherUser, action: refuse},
		{number: unix.SYS_FCHMODAT2, arg: 2, mask: otherUser, action: refuse},
		{number: unix.SYS_OPENAT, arg: 3, mask: otherUser, action: refuse},
		{number: unix.SYS_MKNODAT, arg: 2, mask: otherUser, action: refuse},
		// Their arguments are in memory, which a filter cannot read.
		{number: unix.SYS_OPENAT2, action: missing},
		{number: unix.SYS_IO_URING_SETUP, action: missing},
	}
	rows = append(rows, machineCalls...)
	if !gate {
		return rows
	}
	self := uint32(0)
	return append(rows,
		call{number: unix.SYS_EXECVE, action: report},
		call{number: unix.SYS_EXECVEAT, action: report},
		newImage,
		// These could change a program between the answer and its start, or the limits of process 1.
		call{number: unix.SYS_PTRACE, action: refuse},
		call{number: unix.SYS_PROCESS_VM_WRITEV, action: refuse},
		call{number: unix.SYS_PRLIMIT64, arg: 0, equals: &self, unless: true, action: refuse},
	)
}

// filterProgram returns the filter in the kernel's format.
func filterProgram(rows []call) []unix.SockFilter {
	const (
		load = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		jeq  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		jge  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		jset = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret  = unix.BPF_RET | unix.BPF_K
	)
	program := []unix.SockFilter{
		{Code: load, K: archField},
		{Code: jeq, K: auditArch, Jt: 1},
		{Code: ret, K: missing}, // other architectures number calls differently
		{Code: load, K: callField},
		{Code: jge, K: foreignCalls, Jf: 1},
		{Code: ret, K: missing},
	}
	for _, row := range rows {
		var test []unix.SockFilter
		if row.mask != 0 || row.equals != nil {
			test = append(test, unix.SockFilter{Code: load, K: argsField + 8*uint32(row.arg)})
			last := unix.SockFilter{Code: jset, K: row.mask, Jf: 1}
			if row.equals != nil {
				last = unix.SockFilter{Code: jeq, K: *row.equals, Jf: 1}
			}
			if row.unless {
				last.Jt, last.Jf = last.Jf, last.Jt
			}
			test = append(test, last)
		}
		test = append(test, unix.SockFilter{Code: ret, K: row.action}, unix.SockFilter{Code: load, K: callField})
		skip := uint8(len(test))
		if row.mask == 0 && row.equals == nil {
			test, skip = test[:1], 1 // nothing else was loaded
		}
		program = append(append(program, unix.SockFilter{Code: jeq, K: row.number, Jf: skip}), test...)
	}
	return append(program, unix.SockFilter{Code: ret, K: allowed})
}

// filterCalls applies the filter to this thread and what it starts. With a gate,
// it returns the descriptor on which the server listens.
func filterCalls(gate bool) (listener int, err error) {
	if auditArch == 0 {
		if gate {
			return -1, errors.New("not known for this kind of machine")
		}
		return -1, nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	rows := filterProgram(calls(gate))
	program := unix.SockFprog{Len: uint16(len(rows)), Filter: &rows[0]}
	flags := uintptr(0)
	if gate {
		// A program that waits for an answer can be killed, but other signals do not interrupt it.
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if gate && errno == unix.EINVAL { // before Linux 5.19
		fd, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	}
	if errno != 0 {
		return -1, errno
	}
	if !gate {
		return -1, nil
	}
	unix.CloseOnExec(int(fd))
	return int(fd), nil
}
