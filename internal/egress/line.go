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

// line is one connection of the sandbox, or the inside of one that was opened.
type line struct {
	p      *Proxy
	ctx    context.Context // ends with the connection's time
	bottom *timed
	conn   net.Conn // bottom, or TLS upon it
	br     *bufio.Reader
	bw     *bufio.Writer
	inside *target // of a CONNECT: where all requests go
}

func (p *Proxy) newLine(ctx context.Context, bottom *timed, conn net.Conn, inside *target) *line {
	return &line{p, ctx, bottom, conn, bufio.NewReaderSize(conn, p.opt.MaxHeader), bufio.NewWriter(conn), inside}
}

func (p *Proxy) serve(raw net.Conn) {
	ctx, cancel := context.WithTimeout(p.ctx, p.opt.Total)
	defer cancel()
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	bottom := &timed{Conn: raw, idle: p.opt.Idle}
	p.newLine(ctx, bottom, bottom, nil).run()
	linger(bottom)
}

// linger takes what the program still sends for a moment. Closing at once would reset the
// connection, and our last answer, which says why, would be lost with it.
func linger(conn *timed) {
	const most, moment = 4 << 20, 2 * time.Second
	if conn.CloseWrite() == nil {
		conn.until = time.Now().Add(moment)
		_, _ = io.CopyN(io.Discard, conn, most)
	}
}

func (l *line) run() {
	for l.ctx.Err() == nil && l.one() {
	}
}

// one handles one request and says whether another may follow.
func (l *line) one() bool {
	req, host, err := readRequest(l.br, func() { l.hurry() })
	l.bottom.until = time.Time{}
	if err != nil {
		l.complain(err)
		return false
	}
	if !l.authorized(req) {
		resp := answer(http.StatusProxyAuthRequired, "", "the proxy wants the password that stands in HTTP_PROXY")
		resp.Header.Set("Proxy-Authenticate", `Basic realm="chorus"`)
		return l.reply(req, resp, req.ContentLength == 0)
	}
	if req.Method == http.MethodConnect {
		return l.connect(req)
	}
	way := l.p.way.Load()
	to, err := l.target(req, host)
	if err == nil && !way.rules.open(to.host, to.port) {
		err = notListed(to)
	}
	if err != nil {
		return l.reply(req, l.failure(err, nil), req.ContentLength == 0)
	}
	return l.forward(way, req, to)
}

// hurry bounds what is read from now on as a whole, until the bound is lifted.
func (l *line) hurry() { l.bottom.until = time.Now().Add(l.p.opt.HeaderTime) }

// complain answers what is not even a request.
func (l *line) complain(err error) {
	switch {
	case errors.Is(err, errHeadTooLarge):
		l.reply(nil, answer(http.StatusRequestHeaderFieldsTooLarge, "", "the request's header is too large"), false)
	case errors.Is(err, errHead):
		l.reply(nil, answer(http.StatusBadRequest, "", err.Error()), false)
	case errors.Is(err, os.ErrDeadlineExceeded) && l.br.Buffered() > 0:
		l.reply(nil, answer(http.StatusRequestTimeout, "", "the request's header did not come in time"), false)
	}
}

func (l *line) authorized(req *http.Request) bool {
	if l.p.token == "" || l.inside != nil {
		return true
	}
	asked := http.Request{Header: http.Header{"Authorization": req.Header["Proxy-Authorization"]}}
	_, password, _ := asked.BasicAuth()
	return subtle.ConstantTimeCompare([]byte(password), []byte(l.p.token)) == 1
}

// target says where a request goes; what it says of that twice must agree.
func (l *line) target(req *http.Request, host string) (target, error) {
	if l.inside != nil {
		named, ok := parseTarget(host, l.inside.tls)
		if !ok || named.host != l.inside.host || named.port != l.inside.port || req.URL.Host != "" || !strings.HasPrefix(req.RequestURI, "/") {
			return target{}, malformed("inside a tunnel to %s everything goes there; the request names another host", l.inside.shown())
		}
		return *l.inside, nil
	}
	if req.URL.Scheme != "http" || req.URL.Host == "" {
		return target{}, malformed("this is a proxy: send http://host/path, or CONNECT host:port for HTTPS")
	}
	if req.URL.User != nil {
		return target{}, malformed("the URL holds a name or password; use the Authorization header")
	}
	to, ok := parseTarget(req.URL.Host, false)
	if !ok {
		return target{}, malformed("its host is no host name")
	}
	if named, ok := parseTarget(host, false); host != "" && (!ok || named != to) {
		return target{}, malformed("its Host line and its URL name different hosts")
	}
	return to, nil
}

func (l *line) connect(req *http.Request) bool {
	to, ok := parseTarget(req.RequestURI, true)
	if !ok || l.inside != nil || req.ContentLength != 0 || !strings.Contains(req.RequestURI, ":") {
		return l.reply(req, l.failure(malformed("CONNECT wants host:port, once and without a body"), nil), false)
	}
	way := l.p.way.Load()
	if !way.rules.open(to.host, to.port) {
		return l.reply(req, l.failure(notListed(to), nil), true)
	}
	if way.rules.intercepts(to.host, to.port) {
		return l.intercept(to)
	}
	up, err := way.dial(l.ctx, "tcp", to.String())
	if err != nil {
		return l.reply(req, l.failure(inside(to, err), nil), true)
	}
	if !l.established() {
		_ = up.Close()
		return false
	}
	splice(l.ctx, &buffered{l.conn, l.br}, up, l.p.opt.Idle)
	return false
}

func (l *line) established() bool {
	_, _ = l.bw.WriteString("HTTP/1.1 200 Connection established\r\n\r\n")
	return l.bw.Flush() == nil
}

// intercept answers in the host's place and serves the requests inside. A program that does not begin
// with TLS is taken to speak plain HTTP.
func (l *line) intercept(to target) bool {
	if !l.established() {
		return false
	}
	l.hurry()
	first, err := l.br.Peek(1)
	if err != nil {
		return false
	}
	conn := net.Conn(&buffered{l.conn, l.br})
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
				return l.p.ca.certificate(to.host)
			},
		})
		if err := secure.HandshakeContext(l.ctx); err != nil {
			return false
		}
		defer secure.CloseWrite() // serve closes what is below
		conn = secure
	}
	l.bottom.until = time.Time{}
	l.p.newLine(l.ctx, l.bottom, conn, &to).run()
	return false
}

// inside turns the guard's refusal into ours.
func inside(to target, err error) error {
	if errors.Is(err, netguard.ErrRefused) {
		return leadsInside(to, "it leads to an inner network")
	}
	return err
}

// failure is the answer to an error, without any value in it.
func (l *line) failure(err error, needles []needle) *http.Response {
	var no *refused
	var timeout interface{ Timeout() bool }
	text := censorText(err.Error(), needles)
	switch {
	case errors.As(err, &no):
		return l.p.answerTo(no)
	case errors.Is(err, errHead):
		return answer(http.StatusBadRequest, "", text)
	case errors.Is(err, errBodyTooLong):
		return answer(http.StatusRequestEntityTooLarge, "", errBodyTooLong.Error())
	case errors.As(err, &timeout) && timeout.Timeout():
		return answer(http.StatusGatewayTimeout, "", text)
	default:
		return answer(http.StatusBadGateway, "", text)
	}
}

// reply writes a response; keep: the connection may go on. It says whether it does.
func (l *line) reply(req *http.Request, resp *http.Response, keep bool) bool {
	keep = keep && req != nil && !req.Close && req.ProtoAtLeast(1, 1)
	resp.Request, resp.Close = req, !keep
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	defer resp.Body.Close()
	resp.Body = &flushFirst{resp.Body, l.bw}
	if err := resp.Write(struct{ io.Writer }{l.bw}); err != nil { // without ReadFrom, which flushFirst would disturb
		return false
	}
	return l.bw.Flush() == nil && keep
}

// flushFirst sends what was written before it waits for more, so that streams flow.
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

// watch cancels when the program hangs up while its answer is waited for. The reader belongs to it
// until stop returns.
func (l *line) watch(cancel func()) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := l.br.Peek(1); err != nil && !l.bottom.stop.Load() {
			cancel()
		}
	}()
	return func() {
		l.bottom.interrupt()
		<-done
		l.bottom.resume()
	}
}
