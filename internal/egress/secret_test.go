package egress

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

const mark = "{{secret:key}}"

// heard is what a server was really sent.
type heard struct {
	mu   sync.Mutex
	last string
}

func (h *heard) handler(w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	echo(rec, r)
	h.mu.Lock()
	h.last = rec.Body.String()
	h.mu.Unlock()
	_, _ = w.Write(rec.Body.Bytes())
}

func (h *heard) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.last
	h.last = ""
	return last
}

// TestPlaceholders: each place in which a program may write a placeholder, towards the secret's host
// and towards another one.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	value := testKey + `+/"&= \` // every encoding has something to do
	b := start(t, Rules{Hosts: []string{"*.example.com", "*.example.com:8080"}, Secrets: []Secret{secret("key", value, "api.example.com", "plain.example.com:8080"), secret("other", "other-test-key", "else.example.com")}}, withRoots(t))
	var api, other heard
	b.tlsServer("api.example.com:443", api.handler)
	b.server("plain.example.com:8080", api.handler)
	b.server("other.example.com:80", other.handler)
	b.server("api.example.com:80", other.handler)
	b.tlsServer("else.example.com:443", other.handler)
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	form, plainText, asJSONType := "application/x-www-form-urlencoded", "text/plain", "application/json; charset=utf-8"
	for name, test := range map[string]struct {
		path, header, headerValue, kind, body, want string
	}{
		"a header":               {"/", "X-Key", mark, "", "", "X-Key: " + value},
		"a bearer":               {"/", "Authorization", "Bearer " + mark, "", "", "Authorization: Bearer " + value},
		"basic":                  {"/", "Authorization", basic("ada:" + mark), "", "", "Authorization: " + basic("ada:"+value)},
		"basic, as the user":     {"/", "Authorization", basic(mark + ":"), "", "", "Authorization: " + basic(value+":")},
		"twice":                  {"/", "X-Key", mark + "," + mark, "", "", "X-Key: " + value + "," + value},
		"the query":              {"/?q=1&key=" + mark, "", "", "", "", `/?q=1&key=test-key-0123456789%2B%2F%22%26%3D+%5C`},
		"the query, encoded":     {"/?key=%7B%7bsecret%3Akey%7D%7d", "", "", "", "", `/?key=test-key-0123456789%2B%2F%22%26%3D+%5C`},
		"the path":               {"/bot" + mark + "/send", "", "", "", "", `/bottest-key-0123456789+%2F%22&=%20%5C/send`},
		"a form":                 {"/", "", "", form, "a=b&key=%7B%7Bsecret%3Akey%7D%7D", "length 53\n\na=b&key=test-key-0123456789%2B%2F%22%26%3D+%5C"},
		"JSON":                   {"/", "", "", asJSONType, `{"key":"` + mark + `"}`, `{"key":"test-key-0123456789+/\"\u0026= \\"}`},
		"text":                   {"/", "", "", plainText, "my " + mark + " key", "my " + value + " key"},
		"what is no text stays":  {"/", "", "", "application/octet-stream", "my " + mark, "my " + mark},
		"what is no mark stays":  {"/", "X-A", "{{secret:}} {{ secret:key }} {secret:key}", plainText, "{{secret:a b}}", "X-A: {{secret:}} {{ secret:key }} {secret:key}"},
		"an empty body is empty": {"/", "X-Key", mark, plainText, "", "length 0"},
	} {
		for _, base := range []string{"https://api.example.com", "http://plain.example.com:8080"} {
			for _, chunked := range []bool{false, true} {
				make := func(base string) *http.Request {
					body := io.Reader(strings.NewReader(test.body))
					if chunked && test.body != "" {
						body = iotest.OneByteReader(body) // its length is not known
					}
					req := request("POST", base+test.path, body)
					if test.header != "" {
						req.Header.Set(test.header, test.headerValue)
					}
					if test.kind != "" {
						req.Header.Set("Content-Type", test.kind)
					}
					return req
				}
				resp, echoed := b.do(make(base))
				sent := api.take()
				if want := test.want; resp.StatusCode != 200 || !strings.Contains(sent, strings.Replace(want, "length 53", fmt.Sprintf("length %d", len("a=b&key=test-key-0123456789%2B%2F%22%26%3D+%5C")), 1)) {
					t.Errorf("%s to %s: %d, it was sent\n%s\nwant %s", name, base, resp.StatusCode, sent, want)
				}
				for _, form := range append(encodings(value), value) {
					if strings.Contains(echoed, form) {
						t.Errorf("%s to %s: the answer gives the value back as %s:\n%s", name, base, form, echoed)
					}
				}
				if strings.HasSuffix(name, "stays") || strings.HasSuffix(name, "empty") {
					continue
				}
				for _, wrong := range []string{"http://other.example.com", "http://api.example.com", "https://else.example.com"} {
					resp, body := b.do(make(wrong))
					if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "secrets.key.hosts") || other.take() != "" {
						t.Errorf("%s to %s: %d %s", name, wrong, resp.StatusCode, body)
					}
				}
			}
		}
	}
	last := b.refusals()[0]
	if last.Kind != WrongHost || last.Secret != "key" {
		t.Errorf("%+v", last)
	}
}

// TestManyAtOnce: requests side by side do not mix their values up.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"*.example.com"}, Secrets: []Secret{secret("one", "test-key-of-one", "one.example.com"), secret("two", "test-key-of-two", "two.example.com")}}, withRoots(t))
	check := func(want string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if got := r.Header.Get("X-Key") + string(body); got != want+want {
				t.Errorf("%s was sent %q", r.Host, got)
			}
		}
	}
	b.tlsServer("one.example.com:443", check("test-key-of-one"))
	b.tlsServer("two.example.com:443", check("test-key-of-two"))
	var all sync.WaitGroup
	for i := range 12 {
		name := []string{"one", "two"}[i%2]
		all.Go(func() {
			for range 5 {
				resp, err := b.client.Do(request("POST", "https://"+name+".example.com/", strings.NewReader(placeholder(name)), "X-Key", placeholder(name), "Content-Type", "text/plain"))
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Error(resp.Status)
				}
			}
		})
	}
	all.Wait()
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	bad := Secret{Name: "bad", Value: func() (string, error) { return "", errors.New("vault says " + testKey) }, Hosts: []string{"api.example.com"}}
	b := start(t, Rules{Hosts: []string{"api.example.com"}, Secrets: []Secret{bad, secret("short", "abc", "api.example.com"), secret("lines", "test\r\nkey", "api.example.com")}}, withRoots(t))
	var api heard
	b.tlsServer("api.example.com:443", api.handler)
	for name, want := range map[string]string{"bad": "secrets.bad.value", "short": "secrets.short.value", "lines": "line breaks", "none": `no secret "none"`} {
		resp, body := b.do(request("GET", "https://api.example.com/", nil, "X-Key", placeholder(name)))
		if resp.StatusCode < 400 || !strings.Contains(body, want) || strings.Contains(body, testKey) || api.take() != "" {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

// TestLongBodies: text beyond the limit passes untouched, and not at all with a placeholder in it.
func TestLongBodies(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"api.example.com"}, Secrets: []Secret{secret("key", testKey, "api.example.com")}}, withRoots(t))
	b.tlsServer("api.example.com:443", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			fmt.Fprintf(w, "%d", n)
		}
	})
	long := strings.Repeat("0123456789", maxBody/10+5000)
	resp, body := b.do(request("POST", "https://api.example.com/", strings.NewReader(long), "Content-Type", "text/plain", "Expect", "100-continue"))
	if resp.StatusCode != 200 || body != fmt.Sprint(len(long)) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, at := range []int{0, maxBody - 5, maxBody + 5, len(long)} {
		req := request("POST", "https://api.example.com/", strings.NewReader(long[:at]+mark+long[at:]), "Content-Type", "text/plain")
		resp, body := b.do(req)
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("at %d: %d %s", at, resp.StatusCode, body)
		}
	}
}

// TestEarlyAnswer: a host may answer before it has read everything, and the program gets it.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"open.example.com"}})
	b.server("open.example.com:80", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusUnprocessableEntity)
	})
	ours, theirs := io.Pipe()
	defer theirs.Close()
	go func() { _, _ = io.WriteString(theirs, "the beginning") }()
	resp, _ := b.do(request("POST", "http://open.example.com/", ours, "Content-Type", "application/octet-stream"))
	if resp.StatusCode != http.StatusUnprocessableEntity {
		t.Error(resp.Status)
	}
}

// TestEcho: whatever a host does with a value, the program does not see it.
func TestEcho(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"api.example.com"}, Secrets: []Secret{secret("key", testKey, "api.example.com")}}, withRoots(t))
	zip := func(s string) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = io.WriteString(w, s)
		_ = w.Close()
		return out.Bytes()
	}
	b.tlsServer("api.example.com:443", func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("X-Key")
		w.Header().Set("X-Echo", "<"+key+">")
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("the host may compress with %s", got)
		}
		switch r.URL.Path {
		case "/plain":
			fmt.Fprintf(w, "<%s>", key)
		case "/image":
			w.Header().Set("Content-Type", "image/png")
			fmt.Fprintf(w, "<%s>", key)
		case "/pieces":
			for i := range len(key) {
				_, _ = io.WriteString(w, key[i:i+1])
				w.(http.Flusher).Flush()
			}
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zip("<" + key + ">"))
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, key)
		case "/range":
			if r.Header.Get("Range") != "" {
				_, _ = io.WriteString(w, key[3:])
			}
		case "/redirect":
			http.Redirect(w, r, "https://api.example.com/plain?"+key, http.StatusFound)
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", maxBuffered)+key)
		case "/head":
			w.Header().Set("Content-Length", "77")
		case "/broken":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(conn, "NONSENSE "+key+"\r\n\r\n")
			_ = conn.Close()
		case "/reason":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 "+key+"\r\nContent-Length: 0\r\n\r\n")
			_ = conn.Close()
		}
	})
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for path, want := range map[string]string{
		"/plain": "<" + mark + ">", "/image": "<" + mark + ">", "/pieces": mark, "/gzip": "<" + mark + ">", "/br": "looked through", "/range": "", "/redirect": "plain?" + mark, "/long": "x" + mark,
		"/head": "", "/broken": "chorus: ", "/reason": "",
	} {
		method := "GET"
		if path == "/head" {
			method = "HEAD"
		}
		resp, body := b.do(request(method, "https://api.example.com"+path, nil, "X-Key", mark, "Range", "bytes=3-"))
		all := fmt.Sprint(resp.Status, resp.Header, body)
		if strings.Contains(all, testKey[3:]) || !strings.Contains(body, want) || want == "" && body != "" {
			t.Errorf("%s: %.300s", path, all)
		}
		if resp.ContentLength >= 0 && path != "/head" && resp.ContentLength != int64(len(body)) {
			t.Errorf("%s: length %d of %d", path, resp.ContentLength, len(body))
		}
		if path == "/head" && resp.ContentLength != 77 {
			t.Errorf("HEAD: length %d", resp.ContentLength)
		}
	}
}

// TestEvents: a stream flows while it is looked through.
func TestEvents(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"*.example.com"}, Secrets: []Secret{secret("key", testKey, "api.example.com")}}, withRoots(t))
	next := make(chan struct{})
	events := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	}
	b.tlsServer("api.example.com:443", events)
	b.server("free.example.com:80", events)
	for _, address := range []string{"https://api.example.com/", "http://free.example.com/"} {
		resp, err := b.client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			if got, err := lines.ReadString('\n'); err != nil || got != fmt.Sprintf("data: %d\n", i) {
				t.Errorf("%q %v", got, err)
			}
			next <- struct{}{}
		}
		resp.Body.Close()
	}
}

// TestUpstreamCertificates: ours is shown only for hosts with secrets, and there the real one
// is checked.
func TestUpstreamCertificates(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"*.example.com"}, Secrets: []Secret{secret("key", testKey, "api.example.com")}}) // without the servers' roots
	var hits heard
	b.tlsServer("api.example.com:443", hits.handler)
	b.tlsServer("free.example.com:443", hits.handler)
	resp, body := b.do(request("GET", "https://api.example.com/", nil, "X-Key", mark))
	if resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, "certificate") || hits.take() != "" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if cert := resp.TLS.PeerCertificates[0]; cert.Subject.Organization[0] != "Chorus" || cert.VerifyHostname("api.example.com") != nil {
		t.Errorf("shown %v", cert.Subject)
	}
	resp, _ = b.do(request("GET", "https://free.example.com/", nil))
	if !resp.TLS.PeerCertificates[0].Equal(serverCert(t)) {
		t.Error("a host without secrets is not tunnelled untouched")
	}
}

// TestInsideATunnel: a tunnel that was opened for one host is of no use for another.
func TestInsideATunnel(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"*.example.com"}, Secrets: []Secret{secret("key", testKey, "api.example.com")}}, withRoots(t))
	var api, other heard
	b.tlsServer("api.example.com:443", api.handler)
	b.tlsServer("other.example.com:443", other.handler)
	b.server("api.example.com:80", api.handler)
	for name, head := range map[string]string{
		"another Host":   "GET / HTTP/1.1\r\nHost: other.example.com\r\n",
		"another port":   "GET / HTTP/1.1\r\nHost: api.example.com:444\r\n",
		"no Host":        "GET / HTTP/1.1\r\n",
		"another URL":    "GET https://other.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n",
		"another tunnel": "CONNECT other.example.com:443 HTTP/1.1\r\nHost: api.example.com\r\n",
		"a star":         "OPTIONS * HTTP/1.1\r\nHost: api.example.com\r\n",
	} {
		conn := b.tunnel("api.example.com:443")
		secure := tls.Client(conn, &tls.Config{ServerName: "api.example.com", InsecureSkipVerify: true})
		_, err := io.WriteString(secure, head+"X-Key: "+mark+"\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(secure), nil)
		if err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %v %v", name, resp, err)
		}
		secure.Close()
	}
	conn := b.tunnel("api.example.com:443")
	if err := tls.Client(conn, &tls.Config{ServerName: "other.example.com", InsecureSkipVerify: true}).Handshake(); err == nil {
		t.Error("a certificate for another host was given")
	}
	conn = b.tunnel("api.example.com:443") // no TLS: then the secret does not travel
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: api.example.com:443\r\nX-Key: "+mark+"\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("in the clear: %v %v", resp, err)
	}
	if sent := api.take() + other.take(); sent != "" {
		t.Errorf("sent: %s", sent)
	}
}

// TestWebSocket: through a tunnel untouched, through an intercepted one with the key put in
// and the end when the value comes back.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"*.example.com"}, Secrets: []Secret{secret("key", testKey, "api.example.com")}}, withRoots(t))
	talk := func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Key-Length: %d\r\nX-Extensions: %s\r\n\r\n", len(r.Header.Get("X-Key")), r.Header.Get("Sec-Websocket-Extensions"))
		_ = rw.Flush()
		for {
			line, err := rw.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = rw.WriteString("you said " + strings.Replace(line, "KEY", r.Header.Get("X-Key"), 1))
			_ = rw.Flush()
		}
	}
	b.tlsServer("api.example.com:443", talk)
	b.tlsServer("free.example.com:443", talk)
	b.server("free.example.com:80", talk)
	for _, host := range []string{"api.example.com:443", "free.example.com:443", "free.example.com:80"} {
		conn := b.tunnel(host)
		name, port, _ := strings.Cut(host, ":")
		if port == "443" {
			conn = tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		}
		key := mark
		if name != "api.example.com" {
			key = "own"
		}
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+name+"\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: deflate\r\nX-Key: "+key+"\r\n\r\n")
		br := bufio.NewReader(conn)
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("%s: %v %v", host, resp, err)
		}
		want := map[bool]string{true: "19", false: "3deflate"}[key == mark]
		if got := resp.Header.Get("X-Key-Length") + resp.Header.Get("X-Extensions"); got != want {
			t.Errorf("%s: the host saw %s", host, got)
		}
		for range 3 {
			_, _ = io.WriteString(conn, "hello\n")
			if got, err := br.ReadString('\n'); err != nil || got != "you said hello\n" {
				t.Errorf("%s: %q %v", host, got, err)
			}
		}
		_, _ = io.WriteString(conn, "KEY\n")
		got, _ := br.ReadString('\n')
		if key == mark && got != "you said " && got != "" || key != mark && got != "you said own\n" {
			t.Errorf("%s: %q", host, got)
		}
		conn.Close()
	}
}

// tunnel opens one by hand.
func (b *bench) tunnel(hostport string) net.Conn {
	b.t.Helper()
	conn := b.connect()
	_ = conn.SetDeadline(time.Now().Add(maxWait))
	_, _ = io.WriteString(conn, "CONNECT "+hostport+" HTTP/1.1\r\nHost: "+hostport+"\r\n"+b.password()+"\r\n")
	got := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	if _, err := io.ReadFull(conn, got); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200") {
		b.t.Fatalf("%q %v", got, err)
	}
	return conn
}
