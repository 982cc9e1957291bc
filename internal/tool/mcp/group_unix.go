//go:build unix

package mcp

import "syscall"

// ownGroup lets a process and all it starts be ended together.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the group of leader to end.
func terminate(leader int) { _ = syscall.Kill(-leader, syscall.SIGTERM) }

// kill ends it.
func kill(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }
