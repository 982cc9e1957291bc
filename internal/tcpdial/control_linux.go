package tcpdial

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// control limits how long the kernel sends again what was not answered. Where it refuses, keepalives have to do.
func control(network, _ string, raw syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(Unanswered.Milliseconds()))
	})
}
