package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// maxBuffered is how long a response of known length may be to keep its length when secrets are redacted.
const maxBuffered = 1 << 20

// hopByHop returns the headers that concern one connection, not the message.
func hopByHop() []string {
	return []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}
}

// removeHopByHop removes hop-by-hop headers and reports whether they requested a WebSocket.
func removeHopByHop(h http.Header) (websocket bool) {
	names := hopByHop()
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			name = strings.TrimSpace(name)
			websocket = websocket || strings.EqualFold(name, "upgrade") && strings.EqualFold(h.Get("Upgrade"), "websocket")
			names = append(names, name)
		}
	}
	for _, name := range names {
		h.Del(name)
	}
	return websocket
}

// exchange is one request and its response.
type exchange struct {
	client    *clientConn
	req       *http.Request // as received
	to        target
	secrets   *substituter
	needles   []needle // values that the host may know
	websocket bool
	body      requestBody
}

func (l *clientConn) forward(upstream *upstream, req *http.Request, to target) bool {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	x := &exchange{client: l, req: req, to: to, secrets: newSubstituter(upstream.rules, to), body: requestBody{body: req.Body}}
	x.body.end.Store(req.Body == nil || req.Body == http.NoBody)
	defer x.body.detach(l.base)
	out, err := x.prepare(ctx)
	if err != nil {
		return l.reply(req, l.errorResponse(err, nil), x.body.end.Load())
	}
	stop := func() {}
	if x.body.end.Load() {
		stop = l.watchHangup(cancel)
	}
	resp, err := upstream.transport.RoundTrip(out)
	stop()
	if err != nil {
		if ctx.Err() != nil {
			return false // the program closed its connection, or its time is over
		}
		return l.reply(req, l.errorResponse(asRefusal(to, err), x.needles), x.body.end.Load())
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return x.upgrade(ctx, resp)
	}
	back, err := x.response(resp)
	if err != nil {
		return l.reply(req, l.errorResponse(err, x.needles), x.body.end.Load())
	}
	return l.reply(req, back, x.body.end.Load())
}

// prepare makes the request that is sent. It is built anew, so that
// nothing of the received request's framing gets through.
func (x *exchange) prepare(ctx context.Context) (*http.Request, error) {
	req := x.req
	if req.Method == http.MethodTrace {
		return nil, malformed("TRACE returns headers, so it is not forwarded")
	}
	h := req.Header.Clone()
	x.websocket = removeHopByHop(h) && req.Method == http.MethodGet
	expects := h.Get("Expect")
	h.Del("Expect")
	h.Del("Content-Length")
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // otherwise Go would send its own
	}
	at := url.URL{Scheme: "http", Host: x.to.String(), Path: req.URL.Path, RawPath: req.URL.RawPath,
		RawQuery: req.URL.RawQuery, ForceQuery: req.URL.ForceQuery}
	if x.to.tls {
		at.Scheme = "https"
	}
	u, err := x.secrets.url(&at)
	if err == nil {
		err = x.secrets.header(h)
	}
	if err != nil {
		return nil, err
	}
	if expects != "" && !x.body.end.Load() {
		if !strings.EqualFold(expects, "100-continue") {
			return nil, malformed("it expects something unknown")
		}
		_, _ = x.client.bw.WriteString("HTTP/1.1 100 Continue\r\n\r\n")
		if err := x.client.bw.Flush(); err != nil {
			return nil, err
		}
	}
	out := (&http.Request{Method: req.Method, URL: u, Header: h, Host: x.host(), ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if err := x.setBody(out); err != nil {
		return nil, err
	}
	x.prepareRedaction(h)
	return out, nil
}

// host returns the Host line: with the port unless it is the scheme's default.
func (x *exchange) host() string {
	if usual := map[bool]string{false: "80", true: "443"}[x.to.tls]; x.to.port == usual {
		return x.to.display()
	}
	return x.to.String()
}

// setBody sets the body of the request.
func (x *exchange) setBody(out *http.Request) error {
	if x.body.end.Load() {
		out.Body = http.NoBody
		return nil
	}
	body, length, whole, err := x.secrets.body(out.Header, &x.body, x.req.ContentLength)
	if whole {
		x.body.end.Store(true)
	}
	if err != nil {
		return err
	}
	out.ContentLength = length
	out.Body = io.NopCloser(body)
	if text, ok := body.(*strings.Reader); ok {
		again := *text
		out.GetBody = func() (io.ReadCloser, error) { r := again; return io.NopCloser(&r), nil }
	}
	return nil
}

// prepareRedaction makes sure that secrets can be found in the response of a host that knows some: it
// must not be compressed, nor come in ranges that each contain half a value.
func (x *exchange) prepareRedaction(h http.Header) {
	if x.needles = x.secrets.needles(); len(x.needles) > 0 {
		h.Set("Accept-Encoding", "identity")
		for _, name := range []string{"Range", "If-Range", "Sec-Websocket-Extensions"} {
			h.Del(name)
		}
	}
	if x.websocket {
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", "websocket")
	}
}

// response makes the response that the program gets.
func (x *exchange) response(resp *http.Response) (*http.Response, error) {
	h := resp.Header.Clone()
	removeHopByHop(h)
	h.Del("Content-Length")
	back := &http.Response{StatusCode: resp.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: resp.Body, ContentLength: resp.ContentLength}
	if len(x.needles) > 0 {
		redactHeader(h, x.needles)
		if err := x.redactBody(back); err != nil {
			return nil, err
		}
	}
	bodiless := x.req.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	if back.ContentLength < 0 && !bodiless && x.req.ProtoAtLeast(1, 1) {
		back.TransferEncoding = []string{"chunked"}
	} else if back.ContentLength < 0 && !bodiless {
		x.req.Close = true // HTTP/1.0: the end of the connection is the end of the answer
	}
	return back, nil
}

func (x *exchange) redactBody(back *http.Response) error {
	if x.req.Method == http.MethodHead {
		return nil
	}
	src := io.Reader(back.Body)
	switch coding := strings.ToLower(back.Header.Get("Content-Encoding")); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		unzip, err := gzip.NewReader(src)
		if err != nil {
			return errors.New("the answer says that it is gzip and is not")
		}
		src, back.ContentLength = unzip, -1
		back.Header.Del("Content-Encoding")
	default:
		return errors.New("the host compresses its answer in a way that cannot be looked through for secrets, although it was asked not to")
	}
	clear := newRedactor(src, x.needles)
	if back.ContentLength < 0 || back.ContentLength > maxBuffered {
		back.ContentLength = -1
		back.Body = readCloser{clear, back.Body}
		return nil
	}
	held, err := io.ReadAll(clear)
	if err != nil {
		return err
	}
	back.ContentLength = int64(len(held))
	back.Body = readCloser{bytes.NewReader(held), back.Body}
	return nil
}

// upgrade continues as a WebSocket. A value inside a frame cannot be replaced without
// breaking the frame, so a frame with one ends the connection.
func (x *exchange) upgrade(ctx context.Context, resp *http.Response) bool {
	up, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || !x.websocket {
		return x.client.reply(x.req, x.client.errorResponse(errors.New("the host switches to a protocol that was not asked for"), nil), false)
	}
	h := resp.Header.Clone()
	removeHopByHop(h)
	redactHeader(h, x.needles)
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	l := x.client
	_, _ = l.bw.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = h.Write(l.bw)
	_, _ = l.bw.WriteString("\r\n")
	if l.bw.Flush() != nil {
		return false
	}
	if len(x.needles) > 0 {
		clear := newRedactor(up, x.needles)
		clear.strict = true
		up = struct {
			io.Reader
			io.WriteCloser
		}{clear, up}
	}
	splice(ctx, &bufferedConn{l.conn, l.br}, up, l.p.opt.Idle)
	return false
}

type readCloser struct {
	io.Reader
	io.Closer
}

// requestBody is a program's body while the transport uses it. The transport may continue reading
// after the response has come. requestBody records when the end was read.
type requestBody struct {
	mu   sync.Mutex
	body io.Reader
	end  atomic.Bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.body == nil {
		return 0, errors.New("the request is over")
	}
	n, err := b.body.Read(p)
	if errors.Is(err, io.EOF) {
		b.end.Store(true)
	}
	return n, err
}

// detach returns once the transport does not read from the connection and will not do so again.
func (b *requestBody) detach(conn *timedConn) {
	if b.end.Load() {
		return
	}
	conn.interrupt()
	b.mu.Lock()
	b.body = nil
	b.mu.Unlock()
	conn.resume()
}
