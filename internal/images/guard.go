package images

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"chorus/internal/netguard"
	"chorus/internal/text"
)

// The limits of one download that are not worth a setting.
const (
	maxRedirects   = 5
	maxURL         = 8 << 10
	connectTimeout = 10 * time.Second
	headerTimeout  = 15 * time.Second
	maxHeader      = 64 << 10
)

// addressGuard lets through to public addresses and to hosts that were named.
type addressGuard struct {
	allow   []string // hosts, or host:port, in lower case
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

func (d *addressGuard) guard() *netguard.Guard {
	return &netguard.Guard{Allow: d.allowed, Resolve: d.resolve, Dial: d.dial}
}

func (d *addressGuard) allowed(host, port string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.Contains(d.allow, host) || slices.Contains(d.allow, net.JoinHostPort(host, port))
}

// check looks at a URL before anything is connected to.
func (d *addressGuard) check(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: %q is neither http nor https", ErrRefused, text.Clip(u.Scheme, 20))
	}
	if u.Hostname() == "" {
		return fmt.Errorf("%w: it names no host", ErrRefused)
	}
	if u.User != nil {
		return fmt.Errorf("%w: it holds a name or password; leave them out", ErrRefused)
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && !d.allowed(u.Hostname(), portOf(u)) {
		return netguard.Check(u.Hostname(), addr)
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

// client is an HTTP client for one-off downloads from strangers: no proxies but
// the given one, no cookies, no kept connections, no decompression.
func (d *addressGuard) client(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  proxy,
			DialContext:            d.guard().DialContext,
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
