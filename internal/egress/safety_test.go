package egress

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestInnerAddresses: a listed name that leads inside leads nowhere, by request and by tunnel.
func TestInnerAddresses(t *testing.T) {
	t.Parallel()
	for _, inner := range []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.0.1", "100.64.0.1", "100.100.100.200", "169.254.169.254", "168.63.129.16", "192.0.0.192", "224.0.0.1", "255.255.255.255",
		"::1", "::", "fe80::1", "fd00:ec2::254", "::ffff:169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "ff02::1",
	} {
		b := start(t, Rules{Hosts: []string{"*", "bad.example.com", "exact.example.com:80"}, Secrets: []Secret{secret("key", testKey, "looked.example.com", "bad.example.com:8")}}, func(o *Options) {
			o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr(inner)}, nil
			}
		})
		resp, body := b.do(request("GET", "http://bad.example.com/", nil))
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "is not public") {
			t.Errorf("%s: %d %s", inner, resp.StatusCode, body)
		}
		resp, body = b.do(request("GET", "https://looked.example.com/", nil))
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s, inside TLS: %d %s", inner, resp.StatusCode, body)
		}
		if _, err := b.client.Get("https://bad.example.com/"); err == nil || !strings.Contains(err.Error(), "not public") {
			t.Errorf("%s, by CONNECT: %v", inner, err)
		}
		if dials := b.world.dials(); len(dials) > 0 {
			t.Errorf("%s: dialled %v", inner, dials)
		}
		for _, r := range b.refusals() {
			if r.Kind != Inside {
				t.Errorf("%s: %+v", inner, r)
			}
		}
		b.do(request("GET", "http://exact.example.com/", nil))
		if dials := b.world.dials(); len(dials) != 1 {
			t.Errorf("%s: the host that is named with its port was not dialled", inner)
		}
	}
}

// TestRealDialer: the same without any hook, where only the check on the connection is left.
func TestRealDialer(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	real := func(o *Options) { o.Dial, o.Resolve = nil, nil }
	count := func(w http.ResponseWriter, r *http.Request) { hits.Add(1) }
	b := start(t, Rules{}, real)
	s := b.server("x:1", count)
	address := s.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	for _, hosts := range [][]string{{"*:" + port}, {"127.0.0.1"}, {"*.localhost:" + port, "*"}} {
		if err := b.proxy.SetRules(Rules{Hosts: hosts}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{address, "localhost:" + port, "a.localhost:" + port, "2130706433:" + port, "0x7f.1:" + port, "127.1:" + port, "[::ffff:127.0.0.1]:" + port, "127.0.0.1.:" + port} {
			resp, body := b.do(request("GET", "http://"+at+"/", nil))
			if resp.StatusCode < 400 {
				t.Errorf("%v %s: %d %s", hosts, at, resp.StatusCode, body)
			}
		}
	}
	if hits.Load() > 0 {
		t.Error("something led inside")
	}
	if err := b.proxy.SetRules(Rules{Hosts: []string{address}}); err != nil {
		t.Fatal(err)
	}
	if resp, body := b.do(request("GET", "http://"+address+"/", nil)); resp.StatusCode != 200 || hits.Load() != 1 {
		t.Errorf("named with its port: %d %s", resp.StatusCode, body)
	}
}

// TestRebinding: a name that is public once and private the next time.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	b := start(t, Rules{Hosts: []string{"turn.example.com"}}, func(o *Options) {
		resolve := o.Resolve
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			if asked.Add(1) == 1 {
				return resolve(ctx, host)
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	})
	b.server("turn.example.com:80", func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Connection", "close") })
	if resp, body := b.do(request("GET", "http://turn.example.com/", nil)); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if resp, _ := b.do(request("GET", "http://turn.example.com/", nil)); resp.StatusCode != http.StatusForbidden || len(b.world.dials()) != 1 {
		t.Errorf("%d, dialled %v", resp.StatusCode, b.world.dials())
	}
}

// TestNarrowedRules: a connection that the old rules let inside is not used under the new ones.
func TestNarrowedRules(t *testing.T) {
	t.Parallel()
	var s *httptest.Server
	b := start(t, Rules{Hosts: []string{"nas.example.com:80"}}, func(o *Options) {
		o.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.5")}, nil
		}
		o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		}
	})
	s = b.server("nas.example.com:80", echo)
	if resp, body := b.do(request("GET", "http://nas.example.com/", nil)); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if err := b.proxy.SetRules(Rules{Hosts: []string{"nas.example.com"}}); err != nil {
		t.Fatal(err)
	}
	if resp, body := b.do(request("GET", "http://nas.example.com/", nil)); resp.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"open.example.com"}}, func(o *Options) { o.MaxHeader = 8 << 10 })
	var hits atomic.Int64
	b.server("open.example.com:80", func(w http.ResponseWriter, r *http.Request) { hits.Add(1) })
	line, host, auth := "POST http://open.example.com/ HTTP/1.1\r\n", "Host: open.example.com\r\n", b.password()
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"length and chunks":       {line + host + auth + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"chunks and length":       {line + host + auth + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", 400},
		"two lengths":             {line + host + auth + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400},
		"a list of lengths":       {line + host + auth + "Content-Length: 0, 0\r\n\r\n", 400},
		"a signed length":         {line + host + auth + "Content-Length: +0\r\n\r\n", 400},
		"a huge length":           {line + host + auth + "Content-Length: 99999999999999999999\r\n\r\n", 400},
		"another coding":          {line + host + auth + "Transfer-Encoding: xchunked\r\n\r\n", 400},
		"two codings":             {line + host + auth + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"gzip, chunked":           {line + host + auth + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
		"space before the colon":  {line + host + auth + "Content-Length : 4\r\n\r\n", 400},
		"a folded line":           {line + host + auth + "X-A: b\r\n Content-Length: 4\r\n\r\n", 400},
		"a bare line feed":        {line + host + auth + "X-A: b\nContent-Length: 4\r\n\r\n", 400},
		"a bare return":           {line + host + auth + "X-A: b\rContent-Length: 4\r\n\r\n", 400},
		"a zero byte":             {line + host + auth + "X-A: b\x00c\r\n\r\n", 400},
		"two hosts":               {line + host + "Host: other.example.com\r\n" + auth + "\r\n", 400},
		"another host":            {line + "Host: other.example.com\r\n" + auth + "\r\n", 400},
		"another port":            {line + "Host: open.example.com:81\r\n" + auth + "\r\n", 400},
		"chunks in 1.0":           {"POST http://open.example.com/ HTTP/1.0\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		"HTTP/2":                  {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
		"no proxy request":        {"GET / HTTP/1.1\r\n" + host + auth + "\r\n", 400},
		"https without CONNECT":   {"GET https://open.example.com/ HTTP/1.1\r\n" + host + auth + "\r\n", 400},
		"a password in the URL":   {"GET http://a:b@open.example.com/ HTTP/1.1\r\n" + host + auth + "\r\n", 400},
		"a file":                  {"GET file:///etc/passwd HTTP/1.1\r\n" + auth + "\r\n", 400},
		"a spaced target":         {"GET http://open.example.com/a b HTTP/1.1\r\n" + host + auth + "\r\n", 400},
		"CONNECT without a port":  {"CONNECT open.example.com HTTP/1.1\r\n" + auth + "\r\n", 400},
		"CONNECT with port zero":  {"CONNECT open.example.com:0 HTTP/1.1\r\n" + auth + "\r\n", 400},
		"CONNECT with a body":     {"CONNECT open.example.com:80 HTTP/1.1\r\n" + auth + "Content-Length: 3\r\n\r\nabc", 400},
		"CONNECT to a zone":       {"CONNECT [fe80::1%25lo]:80 HTTP/1.1\r\n" + auth + "\r\n", 400},
		"TRACE":                   {"TRACE http://open.example.com/ HTTP/1.1\r\n" + host + auth + "\r\n", 400},
		"a large header":          {line + host + auth + "X-A: " + strings.Repeat("a", 9<<10) + "\r\n\r\n", 431},
		"many lines":              {line + host + auth + strings.Repeat("A: b\r\n", 300) + "\r\n", 400},
		"no password":             {line + host + "Content-Length: 0\r\n\r\n", 407},
		"a wrong password":        {line + host + "Proxy-Authorization: Basic Y2hvcnVzOng=\r\n\r\n", 407},
		"CONNECT, no password":    {"CONNECT open.example.com:443 HTTP/1.1\r\n\r\n", 407},
		"an unknown expectation":  {line + host + auth + "Content-Length: 3\r\nExpect: cake\r\n\r\nabc", 400},
		"a number for a host":     {"GET http://2130706433/ HTTP/1.1\r\n" + auth + "\r\n", 403},
		"a name that is no ASCII": {"GET http://\xc3\xb6pen.example.com/ HTTP/1.1\r\n" + auth + "\r\n", 400},
	} {
		resp, body, err := b.raw(test.text)
		if err != nil || resp.StatusCode != test.want || !strings.HasPrefix(body, "chorus: ") {
			t.Errorf("%s: %v %v %q", name, resp, err, body)
		}
	}
	if hits.Load() > 0 {
		t.Error("a malformed request got through")
	}
}

// TestPipeline: what follows a body is a request of its own, judged like every other.
func TestPipeline(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"open.example.com"}})
	b.server("open.example.com:80", echo)
	conn, err := net.Dial("tcp", b.proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(maxWait))
	auth := b.password()
	_, _ = io.WriteString(conn, "POST http://open.example.com/one HTTP/1.1\r\nHost: open.example.com\r\n"+auth+"Transfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n3\r\nabc\r\n0\r\n\r\n"+
		"GET http://shut.example.com/two HTTP/1.1\r\nHost: shut.example.com\r\n"+auth+"\r\n"+
		"GET http://open.example.com/three HTTP/1.1\r\nHost: open.example.com\r\n"+auth+"Connection: close\r\n\r\n")
	br := bufio.NewReader(conn)
	for i, want := range []string{"length 3\n\nabc", "shut.example.com", "GET /three"} {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(i, err)
		}
		body, _ := io.ReadAll(resp.Body)
		if !strings.Contains(string(body), want) {
			t.Errorf("%d: %s", i, body)
		}
	}
}

func TestHopByHop(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"open.example.com"}})
	b.server("open.example.com:80", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("X-End", "1")
		echo(w, r)
	})
	resp, body, err := b.raw("GET http://open.example.com/ HTTP/1.1\r\nHost: open.example.com\r\n" + b.password() +
		"Connection: close, X-Inner\r\nX-Inner: 1\r\nX-Outer: 1\r\nTE: trailers\r\nProxy-Connection: keep-alive\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"X-Inner", "Te:", "Proxy-", "Keep-Alive", "Upgrade", "User-Agent", b.proxy.token} {
		if strings.Contains(body, gone) {
			t.Errorf("%s went through:\n%s", gone, body)
		}
	}
	if !strings.Contains(body, "X-Outer: 1") || resp.Header.Get("X-End") != "1" || resp.Header.Get("X-Hop") != "" || resp.Header.Get("Keep-Alive") != "" {
		t.Errorf("%v\n%s", resp.Header, body)
	}
}

// ended waits until the proxy closes a connection.
func ended(t *testing.T, conn net.Conn) string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(maxWait))
	rest, err := io.ReadAll(conn)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatal("the connection stays open")
	}
	return string(rest)
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	brief := 2 * time.Second // long enough for a busy machine to send what is there
	for name, test := range map[string]struct {
		adjust func(*Options)
		text   string
		want   string
	}{
		"a head that does not end": {func(o *Options) { o.HeaderTime = brief }, "GET http://open.example.com/ HTTP/1.1\r\nX-A: ", "408"},
		"a silent connection":      {func(o *Options) { o.Idle = brief }, "", ""},
		"a body that does not end": {func(o *Options) { o.Idle = brief }, "POST http://open.example.com/ HTTP/1.1\r\nAUTH" + "Content-Type: text/plain\r\nContent-Length: 9\r\n\r\nabc", "504"},
		"a silent host":            {func(o *Options) { o.Idle = brief }, "GET http://silent.example.com/ HTTP/1.1\r\nAUTH\r\n", ""},
		"a silent tunnel":          {func(o *Options) { o.Idle = brief }, "CONNECT silent.example.com:80 HTTP/1.1\r\nAUTH\r\n", "200"},
		"a silent handshake":       {func(o *Options) { o.HeaderTime = brief }, "CONNECT looked.example.com:443 HTTP/1.1\r\nAUTH\r\n\x16\x03", "200"},
		"the total":                {func(o *Options) { o.Total = brief }, "CONNECT silent.example.com:80 HTTP/1.1\r\nAUTH\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, Rules{Hosts: []string{"*"}, Secrets: []Secret{secret("key", testKey, "looked.example.com")}}, test.adjust)
			b.server("open.example.com:80", echo)
			release := make(chan struct{})
			b.server("silent.example.com:80", func(w http.ResponseWriter, r *http.Request) { <-release })
			defer close(release)
			conn, err := net.Dial("tcp", b.proxy.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, strings.Replace(test.text, "AUTH", b.password(), 1))
			if got := ended(t, conn); !strings.Contains(got, test.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"open.example.com"}}, func(o *Options) { o.MaxConns = 1 })
	b.server("open.example.com:80", echo)
	first, err := net.Dial("tcp", b.proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	ask := "GET http://open.example.com/ HTTP/1.1\r\nHost: open.example.com\r\n" + b.password() + "\r\n"
	_, _ = io.WriteString(first, ask)
	if resp, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	second, err := net.Dial("tcp", b.proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if got := ended(t, second); !strings.Contains(got, "503") {
		t.Errorf("%q", got)
	}
}

// TestClose: everything that is open ends with the proxy.
func TestClose(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"open.example.com"}})
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	b.server("open.example.com:80", func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	defer close(release)
	var conns []net.Conn
	for _, text := range []string{"", "GET http://open", "GET http://open.example.com/ HTTP/1.1\r\nAUTH\r\n", "CONNECT open.example.com:80 HTTP/1.1\r\nAUTH\r\n"} {
		conn, err := net.Dial("tcp", b.proxy.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, strings.Replace(text, "AUTH", b.password(), 1))
		conns = append(conns, conn)
	}
	<-arrived
	for range 2 {
		if err := b.proxy.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, conn := range conns {
		ended(t, conn)
	}
	if _, err := net.Dial("tcp", b.proxy.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// TestHangUp: a program that leaves ends its request at the host.
func TestHangUp(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"open.example.com"}})
	arrived, left := make(chan struct{}), make(chan struct{})
	b.server("open.example.com:80", func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(left)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := b.client.Do(request("GET", "http://open.example.com/", nil).WithContext(ctx)); err == nil {
		t.Error("an answer came")
	}
	select {
	case <-left:
	case <-time.After(maxWait):
		t.Error("the host still works on a request that nobody waits for")
	}
}
