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

// heldAnswer is up to where an answer of known length keeps one when it is looked through.
const heldAnswer = 1 << 20

// hopByHop are the headers that mean one connection, not the message.
func hopByHop() []string {
	return []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate",
		"Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}
}

// strip takes hop-by-hop headers away and says whether a switch to WebSocket was among them.
func strip(h http.Header) (websocket bool) {
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

// exchange is one request on its way and its answer.
type exchange struct {
	line      *line
	req       *http.Request // as it came
	to        target
	swap      *swap
	needles   []needle // values that the host may know
	websocket bool
	body      lent
}

func (l *line) forward(way *way, req *http.Request, to target) bool {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	x := &exchange{line: l, req: req, to: to, swap: newSwap(way.rules, to), body: lent{body: req.Body}}
	x.body.end.Store(req.Body == nil || req.Body == http.NoBody)
	defer x.body.takeBack(l.bottom)
	out, err := x.prepare(ctx)
	if err != nil {
		return l.reply(req, l.failure(err, nil), x.body.end.Load())
	}
	stop := func() {}
	if x.body.end.Load() {
		stop = l.watch(cancel)
	}
	resp, err := way.transport.RoundTrip(out)
	stop()
	if err != nil {
		if ctx.Err() != nil {
			return false // the program is gone, or its time is over
		}
		return l.reply(req, l.failure(inside(to, err), x.needles), x.body.end.Load())
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return x.switchOver(ctx, resp)
	}
	back, err := x.answer(resp)
	if err != nil {
		return l.reply(req, l.failure(err, x.needles), x.body.end.Load())
	}
	return l.reply(req, back, x.body.end.Load())
}

// prepare makes the request that goes out. All of it is new: nothing of the old
// framing passes.
func (x *exchange) prepare(ctx context.Context) (*http.Request, error) {
	req := x.req
	if req.Method == http.MethodTrace {
		return nil, malformed("TRACE gives headers back, so it is not carried")
	}
	h := req.Header.Clone()
	x.websocket = strip(h) && req.Method == http.MethodGet
	expects := h.Get("Expect")
	h.Del("Expect")
	h.Del("Content-Length")
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // or Go's would be sent
	}
	at := url.URL{Scheme: "http", Host: x.to.String(), Path: req.URL.Path, RawPath: req.URL.RawPath,
		RawQuery: req.URL.RawQuery, ForceQuery: req.URL.ForceQuery}
	if x.to.tls {
		at.Scheme = "https"
	}
	u, err := x.swap.url(&at)
	if err == nil {
		err = x.swap.header(h)
	}
	if err != nil {
		return nil, err
	}
	if expects != "" && !x.body.end.Load() {
		if !strings.EqualFold(expects, "100-continue") {
			return nil, malformed("it expects something unknown")
		}
		_, _ = x.line.bw.WriteString("HTTP/1.1 100 Continue\r\n\r\n")
		if err := x.line.bw.Flush(); err != nil {
			return nil, err
		}
	}
	out := (&http.Request{Method: req.Method, URL: u, Header: h, Host: x.host(), ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if err := x.fill(out); err != nil {
		return nil, err
	}
	x.guardEcho(h)
	return out, nil
}

// host is the Host line: with the port where the scheme does not say it.
func (x *exchange) host() string {
	if usual := map[bool]string{false: "80", true: "443"}[x.to.tls]; x.to.port == usual {
		return x.to.shown()
	}
	return x.to.String()
}

// fill gives the request its body.
func (x *exchange) fill(out *http.Request) error {
	if x.body.end.Load() {
		out.Body = http.NoBody
		return nil
	}
	body, length, whole, err := x.swap.body(out.Header, &x.body, x.req.ContentLength)
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

// guardEcho sees to it that the answer of a host that knows secrets can be looked through: not
// compressed, and not in pieces that hold half a value each.
func (x *exchange) guardEcho(h http.Header) {
	if x.needles = x.swap.needles(); len(x.needles) > 0 {
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

// answer makes the response that the program gets.
func (x *exchange) answer(resp *http.Response) (*http.Response, error) {
	h := resp.Header.Clone()
	strip(h)
	h.Del("Content-Length")
	back := &http.Response{StatusCode: resp.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: resp.Body, ContentLength: resp.ContentLength}
	if len(x.needles) > 0 {
		censorHeader(h, x.needles)
		if err := x.censorBody(back); err != nil {
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

func (x *exchange) censorBody(back *http.Response) error {
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
	clear := newCensor(src, x.needles)
	if back.ContentLength < 0 || back.ContentLength > heldAnswer {
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

// switchOver goes on as a WebSocket. A value in its frames cannot be replaced
// without breaking them, so there the connection ends.
func (x *exchange) switchOver(ctx context.Context, resp *http.Response) bool {
	up, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || !x.websocket {
		return x.line.reply(x.req, x.line.failure(errors.New("the host switches to a protocol that was not asked for"), nil), false)
	}
	h := resp.Header.Clone()
	strip(h)
	censorHeader(h, x.needles)
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	l := x.line
	_, _ = l.bw.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = h.Write(l.bw)
	_, _ = l.bw.WriteString("\r\n")
	if l.bw.Flush() != nil {
		return false
	}
	if len(x.needles) > 0 {
		clear := newCensor(up, x.needles)
		clear.strict = true
		up = struct {
			io.Reader
			io.WriteCloser
		}{clear, up}
	}
	splice(ctx, &buffered{l.conn, l.br}, up, l.p.opt.Idle)
	return false
}

type readCloser struct {
	io.Reader
	io.Closer
}

// lent is a program's body in the hands of the transport, which may go on reading when the
// answer is there already. It notes when the end was read.
type lent struct {
	mu   sync.Mutex
	body io.Reader
	end  atomic.Bool
}

func (b *lent) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.body == nil {
		return 0, errors.New("the body was taken back")
	}
	n, err := b.body.Read(p)
	if errors.Is(err, io.EOF) {
		b.end.Store(true)
	}
	return n, err
}

// takeBack returns when nobody reads from the connection any more, nor will.
func (b *lent) takeBack(conn *timed) {
	if b.end.Load() {
		return
	}
	conn.interrupt()
	b.mu.Lock()
	b.body = nil
	b.mu.Unlock()
	conn.resume()
}
