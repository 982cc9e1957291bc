//go:build unix

package mcp

import "syscall"

// terminate asks the group of leader to end.
func terminate(leader int) { _ = syscall.Kill(-leader, syscall.SIGTERM) }

// kill kills the group of leader.
func kill(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }
