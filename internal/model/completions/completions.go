// Package completions answers through OpenAI's oldest interface, /v1/completions, which base models still
// have: it takes a text and returns a continuation. There are no turns, so the caller must already have
// turned the conversation into one text. This package promises to send exactly that: the system prompt and a
// blank line if there is one, then the messages' text with nothing in between, then the prefill. It rejects
// anything that is not text. It never retries by itself.
package completions

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"time"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/openai/format"
	"chorus/internal/model/wire"
)

const provider = "completions"

// Options are what a provider is created with.
type Options struct {
	// APIKey may be empty if a base URL is given: local servers need none.
	APIKey string
	// BaseURL is the server; "": OpenAI's. See format.Base for the accepted forms.
	BaseURL string
	// HTTPClient is used unchanged; nil: a new one.
	HTTPClient *http.Client
	// IdleTimeout limits pauses in an answer, and FirstByteTimeout the time
	// until it begins. Zero means 90 and 120 seconds.
	IdleTimeout, FirstByteTimeout time.Duration
	// Name is the provider's name in errors; "": completions.
	Name string
	// Catalog is the provider under which the catalog lists the models; "": Name.
	Catalog string
	// Headers are sent with each call and override the usual ones.
	Headers map[string]string
	// Extra are fields merged into the top level of each body: presence_penalty, frequency_penalty,
	// top_k and whatever else the server knows. A field that we also write is replaced; null removes
	// it. With model, prompt or stream in it, every request fails.
	Extra map[string]json.RawMessage
}

// Provider is a model.Model for all of the server's models.
type Provider struct {
	opts  Options
	extra format.Extra
	wrong error // what is wrong with the extra fields
	base  string
	query string
	stops int // how many stop sequences are sent
	http  *http.Client
}

var _ model.Model = (*Provider)(nil)

// New returns a provider. It does not read the environment and does not fail: a missing key, a
// wrong address or an impossible extra field shows in the first call.
func New(opts Options) *Provider {
	row, _ := catalog.Find(provider)
	opts.APIKey = strings.TrimSpace(opts.APIKey)
	opts.Name = cmp.Or(opts.Name, provider)
	opts.Catalog = cmp.Or(opts.Catalog, opts.Name)
	p := &Provider{opts: opts, http: cmp.Or(opts.HTTPClient, wire.Client()), extra: opts.Extra, base: row.BaseURL + "/", stops: row.MaxStops}
	p.wrong = p.extra.Check()
	if base, query := format.Base(opts.BaseURL); base != "" {
		p.base = base
		if len(query) > 0 {
			p.query = "?" + query.Encode()
		}
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
	return wire.Rest{Client: p.http, Header: format.Header(p.opts.APIKey, p.opts.Headers), Side: side}
}

// keyless reports whether a call cannot succeed because a key is missing.
func (p *Provider) keyless() bool {
	return p.opts.APIKey == "" && p.opts.BaseURL == "" && len(p.opts.Headers) == 0
}

// keyName is the variable that errors name for a missing key.
const keyName = "OPENAI_COMPLETIONS_API_KEY"

// Models lists what the server offers, by name. It also serves to check a key.
// Servers do not say which of their models are base models.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	side := p.side("models")
	if p.keyless() {
		return nil, side.NoKey(keyName)
	}
	return format.ListModels(p.rest(side), wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout), p.base+"models"+p.query)
}

// Stream sends the body and yields the answer.
func (p *Provider) Stream(ctx context.Context, prep model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		side := p.side(prep.Model)
		if p.keyless() {
			yield(nil, side.NoKey(keyName))
			return
		}
		call := wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout)
		defer func() { _ = call.Close() }()
		res, failed := p.rest(side).Post(call, p.base+"completions"+p.query, prep.Body)
		if failed != nil {
			yield(nil, failed)
			return
		}
		format.Stream{Side: side, Call: call, Yield: yield}.Completions(res.Body)
	}
}
