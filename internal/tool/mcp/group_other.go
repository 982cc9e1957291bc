//go:build unix && !linux

package mcp

import "syscall"

// ownGroup lets a process and its children be ended together. Only Linux can end them
// with us when we are killed.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
