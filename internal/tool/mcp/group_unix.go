//go:build unix

package mcp

import "syscall"

// terminate asks the group of leader to end.
func terminate(leader int) { _ = syscall.Kill(-leader, syscall.SIGTERM) }

// kill ends it.
func kill(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }
