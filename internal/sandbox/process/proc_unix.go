//go:build unix

package process

import (
	"os"
	"syscall"
)

// groupAlive says whether any process of the group is left; zombies count.
func groupAlive(leader int) bool { return syscall.Kill(-leader, 0) == nil }

// exitCode is the shell's convention: 128 and the signal when there was one.
func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
