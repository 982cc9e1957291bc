//go:build !linux && unix

package process

import (
	"context"
	"syscall"
)

func attributes(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killTree kills the group of leader. Without /proc it cannot find a child that left the group.
func killTree(_ context.Context, leader int, _ string) (int, error) {
	if leader > 0 && syscall.Kill(-leader, syscall.SIGKILL) == nil {
		return 1, nil
	}
	return 0, nil
}

// Terminate finds nothing without /proc.
func Terminate(string, map[int]bool) int { return 0 }

// StartTime is not known without /proc.
func StartTime(int) (uint64, bool) { return 0, false }

// BootID is not known without /proc.
func BootID() string { return "" }
