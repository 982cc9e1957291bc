// Package web has the tools with which an agent reaches the web: web_fetch reads
// a page, web_search asks the configured search providers.
//
// It promises that web_fetch connects to public addresses only, unless the configuration names the host; that
// it follows a redirect only if the rules would have allowed the call for the new address; that a call ends
// within its time and size limits; and that what comes back is marked as written by others.
package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"chorus/internal/netguard"
	"chorus/internal/tool"
)

// The names of the tools.
const (
	FetchName  = "web_fetch"
	SearchName = "web_search"
)

const (
	fetchTime    = 30 * time.Second // for a page with all its redirects
	searchTime   = 20 * time.Second // for the answer of one provider
	maxBody      = 5 << 20          // of a page, unpacked; longer pages are rarely read to the end
	maxRedirects = 5
	agentName    = "Mozilla/5.0 (compatible; Chorus; web_fetch)" // many sites refuse clients without the first word
)

// Config is what can change between two runs.
type Config struct {
	// Private reports whether a host and port may be reached although its address is not public; nil: none.
	Private func(host, port string) bool
	// Providers are asked in order until one answers.
	Providers []Provider
}

// Options are what stays the same.
type Options struct {
	// Leaks reports whether a text contains a secret that must not be sent to anybody; nil: no check.
	Leaks func(text string) bool
	// Hooks for tests; nil means the real network. Addresses are checked before Dial is called.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client makes the requests of one thread's tools. It is safe for concurrent use.
type Client struct {
	opt    Options
	config atomic.Pointer[Config]
	pages  *http.Client // guarded
	search *http.Client // for addresses that the operator configured
	cache  pageCache
}

// New returns a client without providers.
func New(opt Options) *Client {
	c := &Client{opt: opt}
	c.config.Store(&Config{})
	guard := &netguard.Guard{Dial: opt.Dial, Allow: func(host, port string) bool {
		private := c.config.Load().Private
		return private != nil && private(host, port)
	}}
	c.pages = &http.Client{
		// One connection for each request: there are many threads, and an idle
		// connection would outlive a change of the rules.
		Transport:     &http.Transport{DialContext: guard.DialContext, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // each redirect is judged first
	}
	c.search = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it redirects; set its final address as url") // the key must not go elsewhere
		},
	}
	return c
}

// Configure replaces the configuration for all later calls.
func (c *Client) Configure(config Config) { c.config.Store(&config) }

// Searches reports whether there is a provider to ask.
func (c *Client) Searches() bool { return len(c.config.Load().Providers) > 0 }

// Tools returns web_fetch and web_search.
func (c *Client) Tools() []tool.Tool { return []tool.Tool{c.fetchTool(), c.searchTool()} }

func (c *Client) leaks(text string) bool { return c.opt.Leaks != nil && c.opt.Leaks(text) }
