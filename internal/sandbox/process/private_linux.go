package process

import (
	"fmt"
	"syscall"
)

// prSetDumpable is PR_SET_DUMPABLE of prctl(2).
const prSetDumpable = 4

// KeepPrivate hides the environment and the memory of this process (/proc/PID/environ, mem, ptrace, core
// dumps) from other processes of the same user: they contain keys, and commands without a sandbox run as that
// user. Programs that this process starts are not affected. Root can still read everything.
func KeepPrivate() error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetDumpable, 0, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("keep the environment private: %w", errno)
	}
	return nil
}
