package app

import (
	"net"
	"strings"
)

// notify tells the service manager that started us our state, if it wants to know
// (sd_notify). It never fails: nobody could do anything about it.
func notify(env func(string) string, state string) {
	path := env("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if strings.HasPrefix(path, "@") {
		path = "\x00" + path[1:] // in the abstract namespace
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state))
}
