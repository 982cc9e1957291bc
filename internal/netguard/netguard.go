// Package netguard connects to untrusted addresses: a URL in a message, or one that a program in a
// sandbox asks for. It promises to reach public addresses only, unless the configuration names the
// host. It checks the address of the connection itself, so neither a redirect nor a name that
// resolves differently the second time reaches a private network.
package netguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"chorus/internal/text"
)

// ErrRefused is the error for a connection to an address that is not
// public. It is wrapped with the address and the reason.
var ErrRefused = errors.New("the address is refused")

const (
	connectTimeout = 10 * time.Second
	maxAddrs       = 8 // addresses tried for one name
)

// Guard makes connections. The zero value refuses every address that is not
// public. It is safe for concurrent use if its functions are.
type Guard struct {
	// Allow reports whether a host may be reached although its address is not public. The host
	// is as given, in lower case and without a trailing dot. nil: no host.
	Allow func(host, port string) bool

	// Hooks for tests; nil means the real network. Addresses are checked before Dial is called.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// Check returns nil for a public address, and otherwise ErrRefused with
// the reason. host is the name or address as given.
func Check(host string, addr netip.Addr) error {
	why := Closed(addr)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s is %s (%s); if it is yours, list the host as allowed", ErrRefused, text.Clip(host, 100), addr, why)
}

// DialContext is for an http.Transport. It tries all addresses of a name
// in order and skips those that are not public.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	allowed := g.allowed(host, port)
	addrs, err := g.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", text.Clip(host, 100), err)
	}
	var problems []error
	for _, addr := range addrs {
		if !allowed {
			if err := Check(host, addr); err != nil {
				problems = append(problems, err)
				continue
			}
		}
		conn, err := g.dial(ctx, network, net.JoinHostPort(addr.String(), port), allowed)
		if err == nil {
			return conn, nil
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil, fmt.Errorf("look up %s: it has no address", text.Clip(host, 100))
	}
	return nil, errors.Join(problems...)
}

// CheckHost refuses a name with an address that is not public. It is for programs that resolve and connect
// themselves: it cannot ensure that the name resolves to the same address a moment later.
func (g *Guard) CheckHost(ctx context.Context, host string) error {
	addrs, err := g.lookup(ctx, host)
	if err != nil {
		return fmt.Errorf("look up %s: %w", text.Clip(host, 100), err)
	}
	for _, addr := range addrs {
		if err := Check(host, addr); err != nil {
			return err
		}
	}
	return nil
}

func (g *Guard) allowed(host, port string) bool {
	return g.Allow != nil && g.Allow(strings.ToLower(strings.TrimSuffix(host, ".")), port)
}

func (g *Guard) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	resolve := g.Resolve
	if resolve == nil {
		resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	addrs, err := resolve(ctx, host)
	return addrs[:min(len(addrs), maxAddrs)], err
}

func (g *Guard) dial(ctx context.Context, network, address string, allowed bool) (net.Conn, error) {
	if g.Dial != nil {
		return g.Dial(ctx, network, address)
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	if !allowed {
		dialer.Control = checkAddress
	}
	return dialer.DialContext(ctx, network, address)
}

// checkAddress checks the address just before the connection is made, whatever the code above it does.
func checkAddress(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrRefused, address)
	}
	return Check(address, at.Addr())
}
