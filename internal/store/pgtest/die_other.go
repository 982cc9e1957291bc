//go:build !linux

package pgtest

import "syscall"

// dieWithParent cannot be promised here: a test program that is killed leaves its server behind.
func dieWithParent(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as}
}
