//go:build linux

package inside

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_X86_64
	foreignCalls = 0x40000000 // from here on those of the x32 interface
)

// machineCalls are those that only this kind of machine has.
var machineCalls = []call{
	{number: unix.SYS_CHMOD, arg: 1, mask: otherUser, action: refuse},
	{number: unix.SYS_OPEN, arg: 2, mask: otherUser, action: refuse},
	{number: unix.SYS_CREAT, arg: 1, mask: otherUser, action: refuse},
	{number: unix.SYS_MKNOD, arg: 1, mask: otherUser, action: refuse},
}

var setThreadPointer = uint32(0x1002) // ARCH_SET_FS

// newImage is what a program calls soon after it was started, while it has one thread:
// then what the kernel took can be read.
var newImage = call{number: NewImage, arg: 0, equals: &setThreadPointer, action: report}

// NewImage is the number of that call.
const NewImage = unix.SYS_ARCH_PRCTL
