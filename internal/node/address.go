package node

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// Address returns how other nodes reach a server: as configured, or where it listens. A server that listens on every
// address is known by its host's name.
func Address(configured, scheme string, listens net.Addr) string {
	address := listens.String()
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			_, port, _ := net.SplitHostPort(address)
			address = net.JoinHostPort(name, port)
		}
	}
	own := url.URL{Scheme: scheme, Host: address}
	return cmp.Or(strings.TrimRight(strings.TrimSpace(configured), "/"), own.String())
}
