package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"chorus/internal/netguard"
)

const (
	dialTime    = 30 * time.Second // for the lookup and all addresses together
	idleConns   = 8                // kept to one host
	idleTime    = 90 * time.Second
	maxRespHead = 256 << 10
)

// upstream is a set of rules and the connections made under them. New rules get a new upstream, so
// that no connection that the old rules allowed is used under the new ones.
type upstream struct {
	rules     *ruleset
	guard     *netguard.Guard
	transport *http.Transport
}

// newUpstream uses HTTP/1 only: nothing needs more.
func (p *Proxy) newUpstream(rules *ruleset) *upstream {
	w := &upstream{rules: rules, guard: &netguard.Guard{Allow: rules.allowsPrivate, Resolve: p.opt.Resolve, Dial: p.opt.Dial}}
	var roots *x509.CertPool // nil: the system's, read by the first connection that needs them
	if len(p.opt.Roots) > 0 {
		var err error
		if roots, err = x509.SystemCertPool(); err != nil {
			roots = x509.NewCertPool()
		}
		for _, c := range p.opt.Roots {
			roots.AddCert(c)
		}
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	w.transport = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := w.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &timedConn{Conn: conn, idle: p.opt.Idle}, nil
		},
		Protocols:              &protocols,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    p.opt.HeaderTime,
		DisableCompression:     true,
		MaxConnsPerHost:        p.opt.MaxConns,
		MaxIdleConnsPerHost:    idleConns,
		IdleConnTimeout:        idleTime,
		ResponseHeaderTimeout:  p.opt.Idle,
		MaxResponseHeaderBytes: maxRespHead,
	}
	return w
}

// dial connects through the guard.
func (w *upstream) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return w.guard.DialContext(ctx, network, address)
}
