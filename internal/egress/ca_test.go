package egress

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCAIsKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "home")
	first, err := CA(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, caFile)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	again, err := CA(dir)
	if err != nil || !again.cert.Equal(first.cert) || !again.key.Equal(first.key) {
		t.Errorf("another one at the second start: %v", err)
	}
	if bytes.Contains(first.PEM(), []byte("PRIVATE")) {
		t.Error("PEM gives the key away")
	}
	for name, spoil := range map[string]func() error{
		"open to others": func() error { return os.Chmod(path, 0o640) },
		"damaged":        func() error { return os.WriteFile(path, []byte("nonsense"), 0o600) },
		"gone":           func() error { return os.Remove(path) },
		"a link": func() error {
			return os.Rename(path, path+".old")
		},
	} {
		before, err := CA(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if name == "a link" {
			if err := os.Symlink(path+".old", path); err != nil {
				t.Fatal(err)
			}
		}
		after, err := CA(dir)
		if err != nil || after.cert.Equal(before.cert) {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLeaves(t *testing.T) {
	t.Parallel()
	a, err := CA("")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	for _, host := range []string{"api.example.com", "10.0.0.5", "2606:4700::1111"} {
		leaf, err := a.certificate(host)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if leaf.Leaf.IsCA || time.Until(leaf.Leaf.NotAfter) > leafLife {
			t.Errorf("%s: a leaf that signs or lives long", host)
		}
		if again, _ := a.certificate(host); again != leaf {
			t.Errorf("%s: made twice", host)
		}
	}
	for i := range maxLeaves + 10 {
		if _, err := a.certificate(fmt.Sprintf("h%d.example.com", i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.leaves) > maxLeaves {
		t.Errorf("%d leaves are kept", len(a.leaves))
	}
}

func TestTrustFileAndEnviron(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{})
	path, err := b.proxy.TrustFile()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.HasSuffix(raw, b.authority().PEM()) || bytes.Contains(raw, []byte("PRIVATE")) {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(raw) {
		t.Error("no certificates in it")
	}
	env, err := b.proxy.Environ(View{Trust: "/run/trust.pem"})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		all[name] = value
	}
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"} {
		if all[name] != "/run/trust.pem" {
			t.Errorf("%s is %q", name, all[name])
		}
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if all[name] != b.url().String() {
			t.Errorf("%s is %q", name, all[name])
		}
	}
	if all["NO_PROXY"] == "" || all["no_proxy"] != all["NO_PROXY"] {
		t.Errorf("NO_PROXY is %q", all["NO_PROXY"])
	}
	env, _ = b.proxy.Environ(View{Proxy: "10.0.2.2:3128"})
	if joined := strings.Join(env, "\n"); strings.Contains(joined, "SSL_CERT_FILE") || !strings.Contains(joined, "@10.0.2.2:3128") {
		t.Error(joined)
	}
	none, err := Listen(t.Context(), "", Rules{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if _, err := none.TrustFile(); err == nil {
		t.Error("a trust file without a folder")
	}
}

// TestTrustFileSuffices: what TrustFile gives is enough to be served.
func TestTrustFileSuffices(t *testing.T) {
	t.Parallel()
	b := start(t, Rules{Hosts: []string{"api.example.com"}, Secrets: []Secret{secret("key", testKey, "api.example.com")}}, withRoots(t))
	b.tlsServer("api.example.com:443", echo)
	path, err := b.proxy.TrustFile()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(raw)
	b.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = pool
	if resp, body := b.do(request("GET", "https://api.example.com/", nil)); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}
