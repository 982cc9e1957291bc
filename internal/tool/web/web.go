// Package web is the tools that reach the web for an agent: web_fetch reads a page, web_search asks
// the search providers of the configuration.
//
// It promises that web_fetch connects to public addresses only, unless the configuration names the
// host; that it follows a redirect only where the rules would have allowed the call for the new
// address; that a call ends within its time and size limits; and that what comes back is marked as
// written by others.
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
	maxBody      = 5 << 20          // of a page, unpacked: longer ones are hardly read to the end by anybody
	maxRedirects = 5
	agentName    = "Mozilla/5.0 (compatible; Chorus; web_fetch)" // many sites refuse clients without the first word
)

// Config is what can change between two runs.
type Config struct {
	// Private reports a host and port that may be reached although its address is not public. nil: none.
	Private func(host, port string) bool
	// Providers are asked in order until one answers.
	Providers []Provider
}

// Options are what holds for good.
type Options struct {
	// Leaks reports a text with a secret in it that must not be sent to anybody. nil: nobody checks.
	Leaks func(text string) bool
	// Hooks for tests; nil means the real network. Addresses are checked before Dial is called.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client makes the requests of one thread's tools. Safe for concurrent use.
type Client struct {
	opt    Options
	config atomic.Pointer[Config]
	pages  *http.Client // guarded
	search *http.Client // to addresses that the operator configured
	cache  pageCache
}

// New makes a client without providers.
func New(opt Options) *Client {
	c := &Client{opt: opt}
	c.config.Store(&Config{})
	guard := &netguard.Guard{Dial: opt.Dial, Allow: func(host, port string) bool {
		private := c.config.Load().Private
		return private != nil && private(host, port)
	}}
	c.pages = &http.Client{
		// One connection for each request: threads are many, and an idle connection would outlive a change of the rules.
		Transport:     &http.Transport{DialContext: guard.DialContext, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // each is judged first
	}
	c.search = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it redirects; set its final address as url") // the key goes nowhere else
		},
	}
	return c
}

// Configure replaces the configuration for every later call.
func (c *Client) Configure(config Config) { c.config.Store(&config) }

// Searches reports whether there is a provider to ask.
func (c *Client) Searches() bool { return len(c.config.Load().Providers) > 0 }

// Tools are web_fetch and web_search.
func (c *Client) Tools() []tool.Tool { return []tool.Tool{c.fetchTool(), c.searchTool()} }

func (c *Client) leaks(text string) bool { return c.opt.Leaks != nil && c.opt.Leaks(text) }
