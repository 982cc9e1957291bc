//go:build unix && !linux

package mcp

import "syscall"

// ownGroup makes a process and its children end together. Only Linux can also end them when we are killed.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
