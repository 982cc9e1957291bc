package egress

import (
	"bufio"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"chorus/internal/netguard"
)

// clientConn is one connection of the sandbox, or the requests inside an intercepted tunnel.
type clientConn struct {
	p      *Proxy
	ctx    context.Context // ends when the connection's time is over
	base   *timedConn
	conn   net.Conn // base, or TLS on top of it
	br     *bufio.Reader
	bw     *bufio.Writer
	tunnel *target // inside a tunnel: where all requests go
}

func (p *Proxy) newClientConn(ctx context.Context, base *timedConn, conn net.Conn, tunnel *target) *clientConn {
	return &clientConn{p, ctx, base, conn, bufio.NewReaderSize(conn, p.opt.MaxHeader), bufio.NewWriter(conn), tunnel}
}

func (p *Proxy) serve(raw net.Conn) {
	ctx, cancel := context.WithTimeout(p.ctx, p.opt.Total)
	defer cancel()
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	base := &timedConn{Conn: raw, idle: p.opt.Idle}
	p.newClientConn(ctx, base, base, nil).serve()
	linger(base)
}

// linger reads for a moment what the program still sends. Closing at once would reset
// the connection and lose the last response, which says why.
func linger(conn *timedConn) {
	const most, moment = 4 << 20, 2 * time.Second
	if conn.CloseWrite() == nil {
		conn.deadline = time.Now().Add(moment)
		_, _ = io.CopyN(io.Discard, conn, most)
	}
}

func (l *clientConn) serve() {
	for l.ctx.Err() == nil && l.serveRequest() {
	}
}

// serveRequest handles one request and reports whether another may follow.
func (l *clientConn) serveRequest() bool {
	req, host, err := readRequest(l.br, func() { l.limitHeaderTime() })
	l.base.deadline = time.Time{}
	if err != nil {
		l.replyUnreadable(err)
		return false
	}
	if !l.authorized(req) {
		resp := newResponse(http.StatusProxyAuthRequired, "", "the proxy needs the password that is in HTTP_PROXY")
		resp.Header.Set("Proxy-Authenticate", `Basic realm="chorus"`)
		return l.reply(req, resp, req.ContentLength == 0)
	}
	if req.Method == http.MethodConnect {
		return l.connect(req)
	}
	upstream := l.p.upstream.Load()
	to, err := l.target(req, host)
	if err == nil && !upstream.rules.allows(to.host, to.port) {
		err = notListed(to)
	}
	if err != nil {
		return l.reply(req, l.errorResponse(err, nil), req.ContentLength == 0)
	}
	return l.forward(upstream, req, to)
}

// limitHeaderTime sets a deadline for all reads from now on, until it is cleared.
func (l *clientConn) limitHeaderTime() { l.base.deadline = time.Now().Add(l.p.opt.HeaderTime) }

// replyUnreadable answers what could not be read as a request.
func (l *clientConn) replyUnreadable(err error) {
	switch {
	case errors.Is(err, errHeadTooLarge):
		l.reply(nil, newResponse(http.StatusRequestHeaderFieldsTooLarge, "", "the request's header is too large"), false)
	case errors.Is(err, errHead):
		l.reply(nil, newResponse(http.StatusBadRequest, "", err.Error()), false)
	case errors.Is(err, os.ErrDeadlineExceeded) && l.br.Buffered() > 0:
		l.reply(nil, newResponse(http.StatusRequestTimeout, "", "the request's header did not come in time"), false)
	}
}

func (l *clientConn) authorized(req *http.Request) bool {
	if l.p.token == "" || l.tunnel != nil {
		return true
	}
	asked := http.Request{Header: http.Header{"Authorization": req.Header["Proxy-Authorization"]}}
	_, password, _ := asked.BasicAuth()
	return subtle.ConstantTimeCompare([]byte(password), []byte(l.p.token)) == 1
}

// target returns where a request goes. If the request names the host twice, both must agree.
func (l *clientConn) target(req *http.Request, host string) (target, error) {
	if l.tunnel != nil {
		named, ok := parseTarget(host, l.tunnel.tls)
		if !ok || named.host != l.tunnel.host || named.port != l.tunnel.port || req.URL.Host != "" || !strings.HasPrefix(req.RequestURI, "/") {
			return target{}, malformed("inside a tunnel to %s everything goes there; the request names another host", l.tunnel.display())
		}
		return *l.tunnel, nil
	}
	if req.URL.Scheme != "http" || req.URL.Host == "" {
		return target{}, malformed("this is a proxy: send http://host/path, or CONNECT host:port for HTTPS")
	}
	if req.URL.User != nil {
		return target{}, malformed("the URL contains a name or password; use the Authorization header")
	}
	to, ok := parseTarget(req.URL.Host, false)
	if !ok {
		return target{}, malformed("its host is not a host name")
	}
	if named, ok := parseTarget(host, false); host != "" && (!ok || named != to) {
		return target{}, malformed("its Host line and its URL name different hosts")
	}
	return to, nil
}

func (l *clientConn) connect(req *http.Request) bool {
	to, ok := parseTarget(req.RequestURI, true)
	if !ok || l.tunnel != nil || req.ContentLength != 0 || !strings.Contains(req.RequestURI, ":") {
		return l.reply(req, l.errorResponse(malformed("CONNECT wants host:port, once and without a body"), nil), false)
	}
	upstream := l.p.upstream.Load()
	if !upstream.rules.allows(to.host, to.port) {
		return l.reply(req, l.errorResponse(notListed(to), nil), true)
	}
	if upstream.rules.intercepts(to.host, to.port) {
		return l.intercept(to)
	}
	up, err := upstream.dial(l.ctx, "tcp", to.String())
	if err != nil {
		return l.reply(req, l.errorResponse(asRefusal(to, err), nil), true)
	}
	if !l.established() {
		_ = up.Close()
		return false
	}
	splice(l.ctx, &bufferedConn{l.conn, l.br}, up, l.p.opt.Idle)
	return false
}

func (l *clientConn) established() bool {
	_, _ = l.bw.WriteString("HTTP/1.1 200 Connection established\r\n\r\n")
	return l.bw.Flush() == nil
}

// intercept takes the host's place and serves the requests inside the tunnel. A
// program that does not start with TLS is assumed to use plain HTTP.
func (l *clientConn) intercept(to target) bool {
	if !l.established() {
		return false
	}
	l.limitHeaderTime()
	first, err := l.br.Peek(1)
	if err != nil {
		return false
	}
	conn := net.Conn(&bufferedConn{l.conn, l.br})
	const handshake = 0x16 // the type of TLS's first record
	to.tls = first[0] == handshake
	if to.tls {
		secure := tls.Server(conn, &tls.Config{
			MinVersion: tls.VersionTLS12,
			NextProtos: []string{"http/1.1", "http/1.0"},
			GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				if name, _ := canonical(hello.ServerName); hello.ServerName != "" && name != to.host {
					return nil, errors.New("the tunnel is for another host")
				}
				ca, err := l.p.ca()
				if err != nil {
					return nil, err
				}
				return ca.certificate(to.host)
			},
		})
		if err := secure.HandshakeContext(l.ctx); err != nil {
			return false
		}
		defer secure.CloseWrite() // serve closes the connection below it
		conn = secure
	}
	l.base.deadline = time.Time{}
	l.p.newClientConn(l.ctx, l.base, conn, &to).serve()
	return false
}

// asRefusal converts an address that the guard refused to a Refusal.
func asRefusal(to target, err error) error {
	if errors.Is(err, netguard.ErrRefused) {
		return notPublic(to, "it leads to an inner network")
	}
	return err
}

// errorResponse returns the response to an error, without the value of any secret.
func (l *clientConn) errorResponse(err error, needles []needle) *http.Response {
	var no *refused
	var timeout interface{ Timeout() bool }
	text := redactText(err.Error(), needles)
	switch {
	case errors.As(err, &no):
		return l.p.refusalResponse(no)
	case errors.Is(err, errHead):
		return newResponse(http.StatusBadRequest, "", text)
	case errors.Is(err, errBodyTooLong):
		return newResponse(http.StatusRequestEntityTooLarge, "", errBodyTooLong.Error())
	case errors.As(err, &timeout) && timeout.Timeout():
		return newResponse(http.StatusGatewayTimeout, "", text)
	default:
		return newResponse(http.StatusBadGateway, "", text)
	}
}

// reply writes a response and reports whether the connection may be used
// again. keep says whether the caller allows that.
func (l *clientConn) reply(req *http.Request, resp *http.Response, keep bool) bool {
	keep = keep && req != nil && !req.Close && req.ProtoAtLeast(1, 1)
	resp.Request, resp.Close = req, !keep
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	defer resp.Body.Close()
	resp.Body = &flushFirst{resp.Body, l.bw}
	if err := resp.Write(struct{ io.Writer }{l.bw}); err != nil { // hides ReadFrom, which would bypass flushFirst
		return false
	}
	return l.bw.Flush() == nil && keep
}

// flushFirst flushes what was written before it waits for more, so that streams are not delayed.
type flushFirst struct {
	io.ReadCloser
	bw *bufio.Writer
}

func (f *flushFirst) Read(p []byte) (int, error) {
	if err := f.bw.Flush(); err != nil {
		return 0, err
	}
	return f.ReadCloser.Read(p)
}

// watchHangup calls cancel if the program closes its connection while it waits for the
// response. Nobody else may read from the connection until stop returns.
func (l *clientConn) watchHangup(cancel func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := l.br.Peek(1); err != nil && !l.base.interrupted.Load() {
			cancel()
		}
	}()
	return func() {
		l.base.interrupt()
		<-done
		l.base.resume()
	}
}
