package mcp

import "syscall"

// ownGroup lets a process and its children be ended together, and with us: a server
// that does not listen must not outlive a killed program.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
