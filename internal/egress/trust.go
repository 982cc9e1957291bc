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
)

const trustFile = "trust.pem"

// systemRoots are the files in which systems keep their roots; the first that exists is taken.
func systemRoots() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",                // Debian, Arch
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora
		"/etc/pki/tls/certs/ca-bundle.crt",                  // older Fedora
		"/etc/ssl/ca-bundle.pem",                            // SUSE
		"/etc/ssl/cert.pem",                                 // Alpine, macOS, BSD
	}
}

// bundle is the system's roots and the authority's certificate.
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

// TrustFile writes the roots that the sandbox is to trust, the system's and ours, into
// Options.Dir and gives its path. The file holds no secret. It is written anew at each call.
func (p *Proxy) TrustFile() (string, error) {
	if p.opt.Dir == "" {
		return "", errors.New("write the roots for the sandbox: no folder was given; set Options.Dir")
	}
	path := filepath.Join(p.opt.Dir, trustFile)
	if err := placeFile(path, bundle(p.ca), 0o644); err != nil {
		return "", fmt.Errorf("write the roots for the sandbox: %w", err)
	}
	return path, nil
}

// View is how the sandbox sees what is ours, where that differs.
type View struct {
	Proxy string // host:port; needed for a unix socket, which the sandbox reaches by a port of its own
	Trust string // path of the trust file; empty: the variables for it are left out
}

// near are the names that lead to the sandbox itself.
func (p *Proxy) near() string {
	rules := p.way.Load().rules
	return strings.Join(slices.DeleteFunc([]string{"localhost", "127.0.0.1", "::1"}, func(host string) bool {
		return slices.ContainsFunc(rules.places, func(at place) bool { return !at.wild && at.host == host })
	}), ",")
}

// Environ gives the variables that lead programs through the proxy, NAME=value. They hold the proxy's
// own password, which is worth nothing outside the sandbox. What listens on the sandbox's
// own loopback is reached without it, unless the rules name that: then this machine's is meant.
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
	at, near := u.String(), p.near()
	env := []string{
		"HTTP_PROXY=" + at, "HTTPS_PROXY=" + at, "ALL_PROXY=" + at, "NO_PROXY=" + near,
		"http_proxy=" + at, "https_proxy=" + at, "all_proxy=" + at, "no_proxy=" + near, // curl reads only these for http
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
