package images

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

func TestURLsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t, t.TempDir(), Options{
		Dial: func(context.Context, string, string) (net.Conn, error) {
			t.Error("dialled")
			return nil, errors.New("no")
		},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("::ffff:10.0.0.1")}, nil
		},
	})
	for _, address := range []string{
		"", "x", "/etc/passwd", "file:///etc/passwd", "ftp://example.com/a.png", "data:image/png;base64,AAAA", "gopher://example.com", "http://", "http:///a.png", "https://:443/",
		"http://ada:secret@example.com/a.png", "http://%zz", "http://example.com/\x7f",
		"http://127.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://169.254.169.254/latest/meta-data/", "http://0/", "http://0.0.0.0/",
		"http://2130706433/", "http://0x7f.1/", "http://127.1/", "http://localhost/", "http://inside.example/", "http://[fe80::1%25lo]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
		"http://example.com/" + strings.Repeat("a", maxURL),
	} {
		_, err := c.Fetch(ctx, address)
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%.60s: %v", address, err)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error gives a password away: %v", err)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var inside atomic.Int64
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inside.Add(1) }))
	t.Cleanup(secret.Close)
	_, port, _ := net.SplitHostPort(secret.Listener.Addr().String())
	picture := pngOf(t, 6, 6, 0)
	s, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.Query().Get("to")
		var left int
		if n, _ := fmt.Sscanf(r.URL.Path, "/again/%d", &left); n == 1 && left > 0 {
			to = fmt.Sprintf("/again/%d", left-1)
		}
		if r.Header.Get("Referer") != "" {
			t.Error("a redirect tells where it came from")
		}
		if to == "" {
			w.Write(picture)
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	c := open(t, t.TempDir(), Options{AllowPrivate: own(s)})
	for _, to := range []string{
		"http://127.0.0.1:" + port, "http://[::1]:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://169.254.169.254/latest/", "http://localhost:" + port, "http://127.0.0.2:" + port,
		"file:///etc/passwd", "gopher://127.0.0.1:" + port, "http://ada:x@1.1.1.1/",
	} {
		if _, err := c.Fetch(ctx, s.URL+"/?to="+url.QueryEscape(to)); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", to, err)
		}
	}
	if inside.Load() > 0 {
		t.Error("a redirect led inside")
	}
	if _, err := c.Fetch(ctx, s.URL+"/again/5"); err != nil {
		t.Errorf("five redirects: %v", err)
	}
	if _, err := c.Fetch(ctx, s.URL+"/again/6"); !errors.Is(err, ErrRefused) {
		t.Errorf("six redirects: %v", err)
	}
}

// TestRebinding: a name that is public when it is looked up first and private the
// next time leads nowhere the next time.
func TestRebinding(t *testing.T) {
	t.Parallel()
	for _, inside := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "fd00::1"} {
		s, count := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) })
		var asked atomic.Int64
		var dialled []string
		c := open(t, t.TempDir(), Options{
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				if asked.Add(1) == 1 {
					return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
				}
				return []netip.Addr{netip.MustParseAddr(inside)}, nil
			},
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				dialled = append(dialled, address)
				return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
			},
		})
		if _, err := c.Fetch(ctx, "http://rebind.example/"); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", inside, err)
		}
		if count.Load() != 1 || asked.Load() != 2 || len(dialled) != 1 {
			t.Errorf("%s: %d requests, %d look-ups, dialled %v", inside, count.Load(), asked.Load(), dialled)
		}
	}
}

// TestNamesThatLeadInside: the same with the real dialer.
func TestNamesThatLeadInside(t *testing.T) {
	t.Parallel()
	s, count := server(t, func(w http.ResponseWriter, r *http.Request) { w.Write(pngOf(t, 5, 5, 0)) })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for _, inside := range []string{"127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::"} {
		c := open(t, t.TempDir(), Options{Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(inside)}, nil
		}})
		if _, err := c.Fetch(ctx, "http://inside.example:"+port); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", inside, err)
		}
	}
	if count.Load() > 0 {
		t.Error("a name led inside")
	}
}

func TestAllowed(t *testing.T) {
	t.Parallel()
	d := &addressGuard{allow: []string{"nas.lan", "10.0.0.5:8080", "[::1]:80"}}
	for _, test := range []struct {
		host, port string
		want       bool
	}{
		{"nas.lan", "80", true}, {"NAS.lan.", "8080", true}, {"other.lan", "80", false}, {"10.0.0.5", "8080", true}, {"10.0.0.5", "80", false}, {"::1", "80", true}, {"::1", "81", false},
	} {
		if got := d.allowed(test.host, test.port); got != test.want {
			t.Errorf("%s %s: %v", test.host, test.port, got)
		}
	}
}

// TestProxies: a proxy is used when it is given, and only then.
func TestProxies(t *testing.T) {
	t.Parallel()
	s, count := server(t, func(w http.ResponseWriter, r *http.Request) { w.Write(pngOf(t, 5, 5, 0)) })
	if c := open(t, t.TempDir(), Options{}); c.client.Transport.(*http.Transport).Proxy != nil {
		t.Error("a cache uses proxies by itself")
	}
	proxy, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, t.TempDir(), Options{Proxy: http.ProxyURL(proxy), AllowPrivate: own(s)})
	if _, err := c.Fetch(ctx, "http://pictures.example/a.png"); err != nil || count.Load() != 1 {
		t.Errorf("%d %v", count.Load(), err)
	}
	if _, err := c.Fetch(ctx, "http://10.0.0.1/a.png"); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}
