// Package openai answers through OpenAI's two interfaces, Chat Completions and Responses, at OpenAI, at
// OpenRouter, or at any server that supports them. We write the body of a request byte for byte, and
// package format parses the event stream, so the vendor's SDK is not needed. It promises that what was sent
// once is sent again unchanged, and that it never retries by itself.
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

// API says which interface of a server is used.
type API string

// The interfaces. Auto is Responses for the models of the catalog that reason, because Chat
// Completions does not let the newest of them reason and use tools, and Chat for all others. A server
// at another address without Responses is asked through Chat from then on.
//
// Responses has no stop sequences: none are sent, and a caller that needs the answer cut must cut it.
// Nothing is stored on the server (store is false): reasoning comes encrypted and is sent back with
// the answers it belongs to. There is no prompt_cache_key, because the server routes by the beginning
// of the prompt anyway; it can be given as an extra field.
const (
	Auto      API = ""
	Chat      API = "chat"
	Responses API = "responses"
)

// Options are what a provider is created with.
type Options struct {
	// APIKey may be empty if a base URL is given: local servers need none.
	APIKey string
	// BaseURL is the server; "": the vendor's. It may end in /v1, name one call
	// (…/chat/completions), or do neither; see format.Base. A query is sent with each call.
	BaseURL string
	// API is the interface to use; "auto" also means Auto.
	API API
	// HTTPClient is used unchanged; nil: a new one.
	HTTPClient *http.Client
	// IdleTimeout limits pauses in an answer, and FirstByteTimeout the time until it begins. Zero means 90
	// and 120 seconds, and ten minutes until the answer of a reasoning model begins.
	IdleTimeout, FirstByteTimeout time.Duration
	// Name is the provider's name in errors; "": openai.
	Name string
	// Catalog is the provider under which the catalog lists the models; "": Name. Requests to a server
	// whose models the catalog does not know use only what all servers accept.
	Catalog string
	// Headers are sent with each call and override the usual ones.
	Headers map[string]string
	// Extra are fields merged into the top level of each request's body. A field that we also write
	// is replaced; null removes it. With a field that says what is asked of which model (model,
	// messages, input, instructions, tools, stream), every request fails.
	Extra map[string]json.RawMessage
	// Router makes it OpenRouter; nil: it is not. Name and address then default to OpenRouter's.
	Router *Router
}

// Provider is a model.Model for all of the server's models.
type Provider struct {
	opts  Options
	extra format.Extra
	wrong error // what is wrong with the extra fields
	stops int   // how many stop sequences are sent
	// chatOnly means that the server at the given address has no Responses.
	chatOnly atomic.Bool
	base     string // ends in a slash
	query    string // of every call, with its question mark
	http     *http.Client
}

var _ model.Model = (*Provider)(nil)

// New returns a provider. It does not read the environment and does not fail: a missing key, a
// wrong address or an impossible extra field shows in the first call.
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

// Close closes idle connections. The provider may be used again.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

func (p *Provider) side(name string) wire.Side {
	return wire.Side{Provider: p.opts.Name, Model: name, Key: p.opts.APIKey, Secrets: format.Secrets(p.opts.Headers)}
}

// rest returns how calls are made.
func (p *Provider) rest(side wire.Side) wire.Rest {
	return wire.Rest{Client: p.http, Header: format.Header(p.opts.APIKey, p.opts.Router.headers(), p.opts.Headers), Side: side}
}

// keyless reports whether a call cannot succeed because a key is missing.
func (p *Provider) keyless() bool {
	return p.opts.APIKey == "" && p.vendors() && len(p.opts.Headers) == 0
}

// vendors reports whether the server is OpenAI's or OpenRouter's own.
func (p *Provider) vendors() bool {
	return p.opts.BaseURL == "" || p.opts.Router != nil && p.opts.BaseURL == routerURL()
}

// keyName returns the variable that errors name for a missing key.
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

// Models lists what the server offers, by name. It also serves to check a key. Of
// OpenAI's own models, it lists only those that can converse.
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
