// Package ollama answers through Ollama's own API, so that local models need neither key nor network. It
// promises that what was sent once is sent again unchanged, that the server is told of a window that fits the
// whole conversation instead of silently cutting it, and that it never retries by itself.
package ollama

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"chorus/internal/model"
	"chorus/internal/model/wire"
)

const provider = "ollama"

// Options are what a provider is created with.
type Options struct {
	// Host is where Ollama listens, in any form that OLLAMA_HOST may have; "": this machine.
	Host string
	// APIKey is for a hosted server or one that requires authentication; "": none is sent.
	APIKey string
	// HTTPClient is used unchanged; nil: a new one.
	HTTPClient *http.Client
	// IdleTimeout limits pauses in an answer, and FirstByteTimeout the time
	// until it begins. Zero means 90 seconds and ten minutes.
	IdleTimeout, FirstByteTimeout time.Duration
}

// loadTime is how long an answer may take to begin: the server itself allows five minutes for loading a
// model from disk, and a long prompt without a graphics card takes as long again.
const loadTime = 10 * time.Minute

// Provider is a model.Model for every model that was pulled.
type Provider struct {
	opts Options
	base string
	http *http.Client
}

var _ model.Model = (*Provider)(nil)

// New returns a provider. It does not read the environment and does not
// fail: a wrong address shows in the first call.
func New(opts Options) *Provider {
	opts.APIKey = strings.TrimSpace(opts.APIKey)
	if opts.FirstByteTimeout <= 0 {
		opts.FirstByteTimeout = loadTime
	}
	return &Provider{opts: opts, base: Host(opts.Host), http: cmp.Or(opts.HTTPClient, wire.Client())}
}

// Host returns the address that OLLAMA_HOST means, without a trailing slash. Scheme, port and
// even the host may be omitted. An invalid address gives the default.
func Host(s string) string {
	s = strings.TrimSpace(strings.Trim(strings.TrimSpace(s), `"'`))
	scheme, rest, ok := strings.Cut(s, "://")
	port := "11434"
	switch {
	case !ok || scheme == "":
		scheme, rest = "http", strings.TrimPrefix(s, "://")
	case scheme == "http":
		port = "80"
	case scheme == "https":
		port = "443"
	}
	if rest == "ollama.com" { // the hosted service
		scheme, port = "https", "443"
	}
	rest, path, _ := strings.Cut(rest, "/")
	host, given, err := net.SplitHostPort(rest)
	if err != nil {
		host = strings.Trim(rest, "[]")
	} else if validPort(given) {
		port = given
	}
	switch host {
	case "", "0.0.0.0", "::": // addresses to listen on, not to call
		host = "127.0.0.1"
	}
	out := scheme + "://" + net.JoinHostPort(host, port)
	if path = strings.Trim(path, "/"); path != "" {
		out += "/" + path
	}
	return out
}

func validPort(s string) bool {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || n > 65535 {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n > 0 && n <= 65535
}

// Close closes idle connections. The provider may be used again.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

func (p *Provider) side(name string) wire.Side {
	return wire.Side{Provider: provider, Model: name, Key: p.opts.APIKey}
}

func (p *Provider) rest(side wire.Side) wire.Rest {
	r := wire.Rest{Client: p.http, Side: side, Header: http.Header{}, Refused: refused(side)}
	if p.opts.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+p.opts.APIKey)
	}
	return r
}

// Models lists what was pulled, by name.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	call := wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout)
	defer func() { _ = call.Close() }()
	var list struct {
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if failed := p.rest(p.side("models")).Get(call, p.base+"/api/tags", "the list of models", &list); failed != nil {
		return nil, p.absent(failed)
	}
	var names []string
	for _, m := range list.Models {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names, nil
}

// refused reads an HTTP error. For a missing model it says how to get it.
func refused(side wire.Side) func(int, http.Header, []byte) *model.Error {
	return func(code int, header http.Header, body []byte) *model.Error {
		e := side.Status(code, header, body)
		if code == http.StatusNotFound && strings.Contains(strings.ToLower(e.Message), "not found") {
			e.Message += "; get it with: ollama pull " + side.Model
		}
		return refine(e)
	}
}

// refine recognises errors that Ollama words in its own way.
func refine(e *model.Error) *model.Error {
	text := strings.ToLower(e.Message)
	for _, words := range []string{"exceeds the context length", "exceeds the available context", "exceed context"} {
		if strings.Contains(text, words) {
			e.Kind = model.TooLong
		}
	}
	return e
}

// absent says what to do if no server listens.
func (p *Provider) absent(e *model.Error) *model.Error {
	if op, ok := errors.AsType[*net.OpError](e.Err); ok && op.Op == "dial" {
		e.Message += "; is Ollama running at " + p.base + "? start it with: ollama serve"
	}
	return e
}
