package mcp

import "syscall"

// ownGroup makes a process and its children end together, and with us: a server
// that ignores signals must not outlive a killed program.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
