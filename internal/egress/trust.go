package egress

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/atomicfile"
)

const trustFile = "trust.pem"

// systemRoots are the files in which systems keep their root certificates; the first that exists is used.
func systemRoots() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",                // Debian, Arch
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora
		"/etc/pki/tls/certs/ca-bundle.crt",                  // older Fedora
		"/etc/ssl/ca-bundle.pem",                            // SUSE
		"/etc/ssl/cert.pem",                                 // Alpine, macOS, BSD
	}
}

// bundle returns the system's roots and the authority's certificate.
func bundle(a *Authority) []byte {
	var out bytes.Buffer
	for _, path := range systemRoots() {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, []byte("BEGIN CERTIFICATE")) {
			continue
		}
		out.Write(bytes.TrimSpace(raw))
		out.WriteByte('\n')
		break
	}
	out.Write(a.PEM())
	return out.Bytes()
}

// TrustFile writes the root certificates that the sandbox must trust, the system's and the authority's, to
// Options.Dir and returns its path. The file contains no secret. Each call writes it again.
func (p *Proxy) TrustFile() (string, error) {
	if p.opt.Dir == "" {
		return "", errors.New("write the roots for the sandbox: no folder was given; set Options.Dir")
	}
	ca, err := p.ca()
	if err != nil {
		return "", err
	}
	path := filepath.Join(p.opt.Dir, trustFile)
	if err := atomicfile.Write(path, bundle(ca), 0o644); err != nil {
		return "", fmt.Errorf("write the roots for the sandbox: %w", err)
	}
	return path, nil
}

// View is how the sandbox sees the proxy and the trust file, if that differs.
type View struct {
	Proxy string // host:port; needed for a unix socket, which the sandbox reaches through its own port
	Trust string // path of the trust file; empty: the variables for it are omitted
}

// noProxy returns the names of the sandbox itself, which are reached without the proxy.
func (p *Proxy) noProxy() string {
	rules := p.upstream.Load().rules
	return strings.Join(slices.DeleteFunc([]string{"localhost", "127.0.0.1", "::1"}, func(host string) bool {
		return slices.ContainsFunc(rules.patterns, func(at hostPattern) bool { return !at.wildcard && at.host == host })
	}), ",")
}

// Environ returns the variables that make programs use the proxy, NAME=value. They contain the proxy's
// own password, which is useless outside the sandbox. The sandbox's own loopback is reached without the
// proxy, unless the rules name it: then this machine's loopback is meant.
func (p *Proxy) Environ(v View) ([]string, error) {
	if v.Proxy == "" {
		if p.Addr().Network() == "unix" {
			return nil, errors.New("no variable can name a unix socket; give the address at which the sandbox reaches it")
		}
		v.Proxy = p.Addr().String()
	}
	u := url.URL{Scheme: "http", Host: v.Proxy}
	if p.token != "" {
		u.User = url.UserPassword(proxyUser, p.token)
	}
	at, none := u.String(), p.noProxy()
	env := []string{
		"HTTP_PROXY=" + at, "HTTPS_PROXY=" + at, "ALL_PROXY=" + at, "NO_PROXY=" + none,
		"http_proxy=" + at, "https_proxy=" + at, "all_proxy=" + at, "no_proxy=" + none, // curl reads only these for http
		"NODE_USE_ENV_PROXY=1",
	}
	if v.Trust == "" {
		return env, nil
	}
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
		"PIP_CERT", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT"} {
		env = append(env, name+"="+v.Trust)
	}
	return env, nil
}
