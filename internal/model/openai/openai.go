// Package openai answers through OpenAI's two interfaces, Chat Completions and
// Responses: OpenAI's own, OpenRouter's, or those of any server that speaks them. The
// body of a request is ours, byte for byte, and package format takes the event stream
// apart: the vendor's SDK is not needed. It promises that what was sent once is sent
// again unchanged, and that it never retries by itself.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/openai/format"
	"chorus/internal/model/wire"
)

const provider = "openai"

// API is which interface of a server is spoken.
type API string

// The interfaces. Auto is Responses for the models of the catalog that reason, since Chat
// Completions does not let the newest of them reason and use tools, and Chat for all others.
// A server at another address that has no Responses is asked through Chat from then on.
//
// Responses knows no stop sequences: none are sent, and whoever needs the answer cut
// cuts it above. It keeps nothing (store is false): reasoning comes encrypted and
// is sent back with the answers it belongs to. There is no prompt_cache_key, since the
// server routes by the prompt's beginning anyway; one can be given as an extra field.
const (
	Auto      API = ""
	Chat      API = "chat"
	Responses API = "responses"
)

// Options are what a provider is made with.
type Options struct {
	// APIKey may be empty when a base URL is given: local servers need none.
	APIKey string
	// BaseURL is the server; "": the vendor's. It may end in /v1, name one call
	// (…/chat/completions), or do neither; see format.Base. A query is sent with each call.
	BaseURL string
	// API is which interface to use; "auto" is Auto too.
	API API
	// HTTPClient is used as it is; nil: one of its own.
	HTTPClient *http.Client
	// IdleTimeout is how long an answer may pause, FirstByteTimeout how long it may
	// take to begin. Zero: 90 and 120 seconds, and ten minutes to begin for models
	// that reason.
	IdleTimeout, FirstByteTimeout time.Duration
	// Name is the provider's name in errors; "": openai.
	Name string
	// Catalog is whose models these are in the catalog; "": Name's. A server whose
	// models the catalog does not know is asked for nothing that not all servers take.
	Catalog string
	// Headers are sent with each call, over those that would be sent otherwise.
	Headers map[string]string
	// Extra are fields merged into the top level of each request's body: one that is
	// ours too replaces it, null takes it away. A field that says what is asked of whom
	// (model, messages, input, instructions, tools, stream) makes every request fail.
	Extra map[string]json.RawMessage
	// Router makes it OpenRouter; nil: it is not. The name is then openrouter and the
	// address OpenRouter's, unless they are given.
	Router *Router
}

// Provider is a model.Model for every model of the server's.
type Provider struct {
	opts  Options
	extra format.Extra
	wrong error // with the extra fields
	stops int   // how many stop sequences are sent
	// chatOnly: the server at the given address has no Responses.
	chatOnly atomic.Bool
	base     string // ends in a slash
	query    string // of every call, with its question mark
	http     *http.Client
}

var _ model.Model = (*Provider)(nil)

// New makes a provider. It does not look at the environment and does not fail: a
// missing key, a wrong address or an impossible extra field shows in the first call.
func New(opts Options) *Provider {
	opts.APIKey = strings.TrimSpace(opts.APIKey)
	if opts.API == "auto" {
		opts.API = Auto
	}
	if opts.Router != nil {
		opts = opts.Router.defaults(opts)
	}
	opts.Name = cmp.Or(opts.Name, provider)
	opts.Catalog = cmp.Or(opts.Catalog, opts.Name)
	row, _ := catalog.Find(provider)
	p := &Provider{opts: opts, http: cmp.Or(opts.HTTPClient, wire.Client()), extra: opts.Extra, stops: row.MaxStops}
	p.wrong = p.extra.Check()
	base, query := format.Base(cmp.Or(opts.BaseURL, row.BaseURL))
	p.base = base
	if len(query) > 0 {
		p.query = "?" + query.Encode()
	}
	return p
}

// Close lets go of idle connections. The provider may be used again.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

func (p *Provider) side(name string) wire.Side {
	return wire.Side{Provider: p.opts.Name, Model: name, Key: p.opts.APIKey, Secrets: format.Secrets(p.opts.Headers)}
}

// rest is how calls are made.
func (p *Provider) rest(side wire.Side) wire.Rest {
	return wire.Rest{Client: p.http, Header: format.Header(p.opts.APIKey, p.opts.Router.headers(), p.opts.Headers), Side: side}
}

// keyless reports whether a call has no chance for want of a key.
func (p *Provider) keyless() bool {
	return p.opts.APIKey == "" && p.vendors() && len(p.opts.Headers) == 0
}

// vendors reports whether the server is OpenAI's or OpenRouter's own.
func (p *Provider) vendors() bool {
	return p.opts.BaseURL == "" || p.opts.Router != nil && p.opts.BaseURL == routerURL()
}

// keyName is the variable that a missing key is looked for in.
func (p *Provider) keyName() string {
	return strings.ToUpper(strings.ReplaceAll(p.opts.Name, "-", "_")) + "_API_KEY"
}

// responses reports whether a model is asked through Responses.
func (p *Provider) responses(name string) bool {
	if p.opts.API != Auto || p.opts.Router != nil {
		return p.opts.API == Responses
	}
	entry, _ := p.lookup(name)
	return entry.Responses || entry.Thinking && !p.chatOnly.Load()
}

// Models lists what the server offers, by name; so it is also the check of a key.
// Of OpenAI's own only those that can be talked with are listed.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	side := p.side("models")
	if p.keyless() {
		return nil, side.NoKey(p.keyName())
	}
	names, err := format.ListModels(p.rest(side), wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout), p.base+"models"+p.query)
	if p.opts.Router == nil && openaiOwn(p.opts.BaseURL) {
		names = talking(names)
	}
	return names, err
}
