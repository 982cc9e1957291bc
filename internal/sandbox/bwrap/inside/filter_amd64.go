//go:build linux

package inside

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_X86_64
	foreignCalls = 0x40000000 // calls from here on belong to the x32 interface
)

// machineCalls are calls that only this architecture has.
var machineCalls = []call{
	{number: unix.SYS_CHMOD, arg: 1, mask: otherUser, action: refuse},
	{number: unix.SYS_OPEN, arg: 2, mask: otherUser, action: refuse},
	{number: unix.SYS_CREAT, arg: 1, mask: otherUser, action: refuse},
	{number: unix.SYS_MKNOD, arg: 1, mask: otherUser, action: refuse},
}

var setThreadPointer = uint32(0x1002) // ARCH_SET_FS

// newImage is a call that a program makes soon after it was started, while it has one
// thread. At that moment what the kernel loaded can be read.
var newImage = call{number: NewImage, arg: 0, equals: &setThreadPointer, action: report}

// NewImage is the number of that call.
const NewImage = unix.SYS_ARCH_PRCTL
