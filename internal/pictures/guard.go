package pictures

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The limits of one download that are not worth a setting.
const (
	maxRedirects   = 5
	maxURL         = 8 << 10
	connectTimeout = 10 * time.Second
	headerTimeout  = 15 * time.Second
	maxHeader      = 64 << 10
)

// closed are the networks that a stranger's URL must not reach, and why. What is
// not listed and not global unicast is refused as well.
var closed = []struct {
	prefix netip.Prefix
	why    string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's inner network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "this machine"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds keep their metadata"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private network"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "for documents only"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private network"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for measurements only"},
	{netip.MustParsePrefix("198.51.100.0/24"), "for documents only"},
	{netip.MustParsePrefix("203.0.113.0/24"), "for documents only"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::1/128"), "this machine"},
	{netip.MustParsePrefix("fc00::/7"), "a private network"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/23"), "a tunnel or reserved"},
	{netip.MustParsePrefix("2001:db8::/32"), "for documents only"},
	{netip.MustParsePrefix("2002::/16"), "a 6to4 tunnel"},
	{netip.MustParsePrefix("3fff::/20"), "for documents only"},
}

var (
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
	globalV6 = netip.MustParsePrefix("2000::/3")
)

// closedTo says why an address is not for strangers' URLs; empty: it is public.
func closedTo(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) { // the way to IPv4 from a network that has none
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:16]))
	}
	for _, c := range closed {
		if c.prefix.Contains(addr) {
			return c.why
		}
	}
	if !addr.IsValid() || addr.Is6() && !globalV6.Contains(addr) {
		return "not a public address"
	}
	return ""
}

// doorman connects to public addresses and to hosts that were named. It looks at the
// address that the connection really goes to, so neither a redirect nor a name
// that resolves differently the second time leads inside.
type doorman struct {
	allow   []string // hosts, or host:port, in lower case
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

func (d *doorman) allowed(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.Contains(d.allow, host) || slices.Contains(d.allow, net.JoinHostPort(host, port))
}

// check looks at a URL before anything is connected to.
func (d *doorman) check(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: %q is neither http nor https", ErrRefused, clip(u.Scheme, 20))
	}
	if u.Hostname() == "" {
		return fmt.Errorf("%w: it names no host", ErrRefused)
	}
	if u.User != nil {
		return fmt.Errorf("%w: it holds a name or password; leave them out", ErrRefused)
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && !d.allowed(u.Hostname(), portOf(u)) {
		return refusal(u.Hostname(), addr)
	}
	return nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

func refusal(host string, addr netip.Addr) error {
	why := closedTo(addr)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s is %s (%s); if it is yours, list the host as allowed", ErrRefused, clip(host, 100), addr, why)
}

// connect is the transport's DialContext.
func (d *doorman) connect(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	allowed := d.allowed(host, port)
	addrs, err := d.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", clip(host, 100), err)
	}
	var problems []error
	for _, addr := range addrs {
		if !allowed {
			if err := refusal(host, addr); err != nil {
				problems = append(problems, err)
				continue
			}
		}
		conn, err := d.knock(ctx, network, net.JoinHostPort(addr.String(), port), allowed)
		if err == nil {
			return conn, nil
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return nil, fmt.Errorf("look up %s: it has no address", clip(host, 100))
	}
	return nil, errors.Join(problems...)
}

// maxAddrs bounds how many addresses of one name are tried.
const maxAddrs = 8

func (d *doorman) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	resolve := d.resolve
	if resolve == nil {
		resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	addrs, err := resolve(ctx, host)
	return addrs[:min(len(addrs), maxAddrs)], err
}

func (d *doorman) knock(ctx context.Context, network, address string, allowed bool) (net.Conn, error) {
	if d.dial != nil {
		return d.dial(ctx, network, address)
	}
	dialer := net.Dialer{Timeout: connectTimeout}
	if !allowed {
		dialer.Control = lastLook
	}
	return dialer.DialContext(ctx, network, address)
}

// lastLook sees the address just before the connection is made, whatever the code above it does.
func lastLook(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrRefused, address)
	}
	return refusal(address, at.Addr())
}

// client is an HTTP client for one-off downloads from strangers: no proxies but
// the given one, no cookies, no kept connections, no decompression.
func (d *doorman) client(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  proxy,
			DialContext:            d.connect,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			TLSHandshakeTimeout:    connectTimeout,
			ResponseHeaderTimeout:  headerTimeout,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("%w: it redirects more than %d times", ErrRefused, maxRedirects)
			}
			req.Header.Del("Referer") // a URL may be a secret
			return d.check(req.URL)
		},
	}
}

// clip shortens a stranger's text for an error message.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
