//go:build unix

package process

import (
	"os"
	"syscall"
)

// groupAlive reports whether any process of the group is left, including zombies.
func groupAlive(leader int) bool { return syscall.Kill(-leader, 0) == nil }

// exitCode follows the shell's convention: 128 plus the signal, if there was one.
func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}
