// Package egress is the only way for programs in a sandbox to reach the
// network: an HTTP proxy with a list of allowed hosts.
//
// It promises that:
//   - it connects only to hosts that the list allows;
//   - a name leads only to public addresses, which are resolved here and checked on the connection itself, unless the list names exactly that host and port;
//   - a secret's value goes to the hosts it is for and nowhere else, the sandbox included;
//   - every connection ends.
//
// It cannot prevent a program from sending anything it knows to an allowed host, nor a host that
// gets a secret from returning it in an encoding that is not recognised.
package egress

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/await"
)

// proxyUser is the user name in the proxy's URL; only the password matters.
const proxyUser = "chorus"

// Options configures a proxy apart from its rules. Zero fields mean the default.
type Options struct {
	// Setting is the configuration key to which people are told to add a host: "egress.hosts".
	Setting string
	// OnRefused is called for each refusal, so that people can be asked. It is called
	// from many goroutines and must not block. It may be nil.
	OnRefused func(Refusal)
	// CA signs for hosts with secrets; nil: an authority in memory.
	CA *Authority
	// Dir is where TrustFile writes.
	Dir string

	MaxConns   int           // concurrent connections of the sandbox: 128
	MaxHeader  int           // bytes of a request's head: 64 KB
	HeaderTime time.Duration // from a request's first byte to the end of its head, and for a TLS handshake: 10 s
	Idle       time.Duration // without a byte in either direction: 5 min
	Total      time.Duration // one connection: 1 h

	// Roots are trusted upstream in addition to the system's.
	Roots []*x509.Certificate
	// Hooks for tests; nil means the real network. Addresses are checked before Dial is called.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

func (o Options) withDefaults() Options {
	o.Setting = cmp.Or(o.Setting, "egress.hosts")
	if o.MaxConns <= 0 {
		o.MaxConns = 128
	}
	if o.MaxHeader <= 0 {
		o.MaxHeader = 64 << 10
	}
	for _, d := range []struct {
		field     *time.Duration
		otherwise time.Duration
	}{{&o.HeaderTime, 10 * time.Second}, {&o.Idle, 5 * time.Minute}, {&o.Total, time.Hour}} {
		if *d.field <= 0 {
			*d.field = d.otherwise
		}
	}
	return o
}

// Proxy is one running proxy. Each sandbox has its own, with its own
// rules and limits. It is safe for concurrent use.
type Proxy struct {
	opt      Options
	ca       func() (*Authority, error) // created on first use: most sandboxes have no secrets
	token    string                     // empty on a unix socket, whose file mode decides who may connect
	listener net.Listener
	upstream atomic.Pointer[upstream]

	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	slots chan struct{}
	group sync.WaitGroup
	once  sync.Once
}

// Listen starts a proxy on "unix:/path" (accessible only to its owner) or on a TCP address; empty means
// 127.0.0.1 and a free port. On TCP, callers must know the password that Environ returns, because other
// programs on the machine can connect there too. The proxy also ends with ctx.
func Listen(ctx context.Context, address string, rules Rules, opt Options) (*Proxy, error) {
	set, err := compile(rules)
	if err != nil {
		return nil, fmt.Errorf("read the rules of the sandbox's network: %w", err)
	}
	p := &Proxy{opt: opt.withDefaults()}
	p.ca = sync.OnceValues(func() (*Authority, error) {
		if opt.CA != nil {
			return opt.CA, nil
		}
		return CA("")
	})
	p.upstream.Store(p.newUpstream(set))
	if p.listener, err = listen(ctx, address); err != nil {
		return nil, fmt.Errorf("listen for the sandbox: %w", err)
	}
	if p.listener.Addr().Network() != "unix" {
		p.token = rand.Text()
	}
	p.slots = make(chan struct{}, p.opt.MaxConns)
	p.ctx, p.stop = context.WithCancel(ctx)
	context.AfterFunc(p.ctx, func() { _ = p.listener.Close() })
	p.group.Go(p.accept)
	return p, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		address = cmp.Or(address, "127.0.0.1:0")
		return config.Listen(ctx, "tcp", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(path); err != nil { // left by a process that was killed
			return nil, err
		}
	}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Addr returns where the proxy listens.
func (p *Proxy) Addr() net.Addr { return p.listener.Addr() }

// SetRules replaces the rules for every new request and tunnel. Open
// tunnels stay. On an error the old rules remain in force.
func (p *Proxy) SetRules(rules Rules) error {
	set, err := compile(rules)
	if err != nil {
		return fmt.Errorf("read the rules of the sandbox's network: %w", err)
	}
	p.upstream.Swap(p.newUpstream(set)).transport.CloseIdleConnections()
	return nil
}

// Close ends the proxy and all its connections, and waits for them. It may be called twice.
func (p *Proxy) Close() error {
	var err error
	p.once.Do(func() {
		p.stop()
		if err = p.listener.Close(); errors.Is(err, net.ErrClosed) {
			err = nil
		}
		p.group.Wait()
		p.upstream.Load().transport.CloseIdleConnections()
	})
	return err
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if p.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			if !await.For(p.ctx, 50*time.Millisecond) { // probably out of file descriptors
				return
			}
			continue
		}
		select {
		case p.slots <- struct{}{}:
			p.group.Go(func() {
				defer func() { <-p.slots }()
				p.serve(conn)
			})
		default:
			p.rejectConn(conn)
		}
	}
}

// rejectConn answers a connection beyond the limit. The response fits
// into the socket's buffer, so nothing waits.
func (p *Proxy) rejectConn(conn net.Conn) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	resp := newResponse(http.StatusServiceUnavailable, "",
		fmt.Sprintf("this sandbox has %d connections open, which is all it may; close some", p.opt.MaxConns))
	resp.Close = true
	_ = resp.Write(conn)
	_ = conn.Close()
}
