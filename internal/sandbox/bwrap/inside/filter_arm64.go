//go:build linux

package inside

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0xffffffff
)

var machineCalls []call

// newImage is a call that a program makes soon after it was started, while it has one
// thread. At that moment what the kernel loaded can be read.
var newImage = call{number: NewImage, action: report}

// NewImage is the number of that call.
const NewImage = unix.SYS_SET_TID_ADDRESS
