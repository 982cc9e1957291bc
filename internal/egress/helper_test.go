package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test.
const maxWait = time.Minute

const testKey = "test-key-0123456789"

func secret(name, value string, hosts ...string) Secret {
	return Secret{Name: name, Value: func() (string, error) { return value, nil }, Hosts: hosts}
}

// world is a small internet: names that lead to servers of the test, dialled by a public address.
type world struct {
	mu      sync.Mutex
	servers map[string]string // host:port as asked for to the real address
	dialled []string
}

// add makes a name lead to a server.
func (w *world) add(hostport string, s *httptest.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[hostport] = s.Listener.Addr().String()
}

// resolve gives each name a public address that dial knows it by.
func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, name := range w.names() {
		if name == host {
			return []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 215, byte(i + 1)})}, nil
		}
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (w *world) names() []string {
	var out []string
	for hostport := range w.servers {
		host, _, _ := net.SplitHostPort(hostport)
		out = append(out, host)
	}
	// the order must not change between two look-ups
	for i := range out {
		for j := i + 1; j < len(out); j++ {
			if out[j] < out[i] {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return out
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	host, port, _ := net.SplitHostPort(address)
	w.dialled = append(w.dialled, address)
	to := ""
	if addr := netip.MustParseAddr(host); addr.Is4() && strings.HasPrefix(host, "93.184.215.") {
		to = w.servers[net.JoinHostPort(w.names()[addr.As4()[3]-1], port)]
	}
	w.mu.Unlock()
	if to == "" {
		return nil, errors.New("connection refused")
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.dialled...)
}

// bench is a proxy in a small internet and a client behind it.
type bench struct {
	t       *testing.T
	world   *world
	proxy   *Proxy
	client  *http.Client
	mu      sync.Mutex
	refused []Refusal
}

func start(t *testing.T, rules Rules, adjust ...func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, world: &world{servers: map[string]string{}}}
	opt := Options{
		Dir: t.TempDir(), Resolve: b.world.resolve, Dial: b.world.dial,
		OnRefused: func(r Refusal) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.refused = append(b.refused, r)
		},
	}
	for _, f := range adjust {
		f(&opt)
	}
	p, err := Listen(t.Context(), "", rules, opt)
	if err != nil {
		t.Fatal(err)
	}
	b.proxy = p
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	b.client = b.newClient()
	return b
}

func (b *bench) refusals() []Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Refusal(nil), b.refused...)
}

func (b *bench) url() *url.URL {
	return &url.URL{Scheme: "http", Host: b.proxy.Addr().String(), User: url.UserPassword(proxyUser, b.proxy.token)}
}

func (b *bench) authority() *Authority {
	b.t.Helper()
	ca, err := b.proxy.ca()
	if err != nil {
		b.t.Fatal(err)
	}
	return ca
}

// newClient trusts the proxy's authority and the test servers', like a sandbox does.
func (b *bench) newClient() *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(b.authority().cert)
	roots.AddCert(serverCert(b.t))
	tr := &http.Transport{Proxy: http.ProxyURL(b.url()), TLSClientConfig: &tls.Config{RootCAs: roots}}
	b.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: maxWait}
}

// httptest's certificate is for example.com and names below it.
var certOnce = sync.OnceValue(func() *x509.Certificate {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	return s.Certificate()
})

func serverCert(*testing.T) *x509.Certificate { return certOnce() }

func withRoots(t *testing.T) func(*Options) {
	return func(o *Options) { o.Roots = []*x509.Certificate{serverCert(t)} }
}

func (b *bench) server(hostport string, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	b.t.Cleanup(s.Close)
	b.world.add(hostport, s)
	return s
}

func (b *bench) tlsServer(hostport string, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewTLSServer(h)
	b.t.Cleanup(s.Close)
	b.world.add(hostport, s)
	return s
}

// do sends a request and gives status and body.
func (b *bench) do(req *http.Request) (*http.Response, string) {
	b.t.Helper()
	resp, err := b.client.Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return resp, string(body)
}

func request(method, address string, body io.Reader, headers ...string) *http.Request {
	req, err := http.NewRequest(method, address, body)
	if err != nil {
		panic(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

// raw sends bytes to the proxy as they are and reads one response.
func (b *bench) raw(text string) (*http.Response, string, error) {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.proxy.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(maxWait))
	if _, err := io.WriteString(conn, text); err != nil {
		return nil, "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

func (b *bench) password() string {
	req := request("GET", "http://x/", nil)
	req.SetBasicAuth(proxyUser, b.proxy.token)
	return "Proxy-Authorization: " + req.Header.Get("Authorization") + "\r\n"
}

// echo answers with everything that it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s\n", r.Method, r.URL.RequestURI())
	_ = r.Header.Write(w)
	fmt.Fprintf(w, "length %d\n\n%s", r.ContentLength, body)
}

func (b *bench) connect() net.Conn {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.proxy.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	return conn
}
