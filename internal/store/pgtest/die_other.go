//go:build !linux

package pgtest

import "syscall"

// dieWithParent does nothing on this system: a killed test program leaves its server running.
func dieWithParent(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as}
}
