// Package openai answers through Chat Completions: OpenAI's own, or any server
// that speaks it. The body of a request is ours, byte for byte; the vendor's SDK
// authenticates, sends and takes the event stream apart. It promises that what was
// sent once is sent again unchanged, and that it never retries by itself.
package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"chorus/internal/model"
	"chorus/internal/model/wire"
)

const provider = "openai"

// Options are what a provider is made with.
type Options struct {
	// APIKey may be empty when a base URL is given: local servers need none.
	APIKey string
	// BaseURL is the server; "": the vendor's. It may end in /v1, in
	// /chat/completions, or in neither.
	BaseURL string
	// HTTPClient is used as it is; nil: one of its own.
	HTTPClient *http.Client
	// IdleTimeout is how long an answer may pause, FirstByteTimeout how long it may
	// take to begin. Zero: 90 and 120 seconds, and ten minutes to begin for models
	// that reason.
	IdleTimeout, FirstByteTimeout time.Duration
	// Name is the provider's name in errors and in the catalog; "": openai. A server
	// behind another name is asked for nothing the catalog does not know of it.
	Name string
}

// Provider is a model.Model for every model of the server's.
type Provider struct {
	opts   Options
	client sdk.Client
	http   *http.Client
}

var _ model.Model = (*Provider)(nil)

// New makes a provider. It does not look at the environment and does not fail: a
// missing key or a wrong address shows in the first call.
func New(opts Options) *Provider {
	opts.APIKey = strings.TrimSpace(opts.APIKey)
	if opts.Name == "" {
		opts.Name = provider
	}
	p := &Provider{opts: opts, http: opts.HTTPClient}
	if p.http == nil {
		p.http = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	// The client is made by hand: NewClient would read keys, organisations and
	// addresses from the environment.
	p.client = sdk.Client{Options: []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithHTTPClient(p.http),
		option.WithMaxRetries(0),
	}}
	if opts.APIKey != "" {
		p.client.Options = append(p.client.Options, option.WithAPIKey(opts.APIKey))
	}
	if base := baseURL(opts.BaseURL); base != "" {
		p.client.Options = append(p.client.Options, option.WithBaseURL(base))
	}
	return p
}

// baseURL is the address below which /chat/completions stands: one that ends in
// it is used as it is, one that ends in /v1 too, any other gets /v1.
func baseURL(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), "/")
	if s == "" {
		return ""
	}
	if base, ok := strings.CutSuffix(s, "/chat/completions"); ok {
		return strings.TrimRight(base, "/") + "/"
	}
	if !strings.HasSuffix(s, "/v1") {
		s += "/v1"
	}
	return s + "/"
}

// Close lets go of idle connections. The provider may be used again.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

func (p *Provider) side(name string) wire.Side {
	return wire.Side{Provider: p.opts.Name, Model: name, Key: p.opts.APIKey}
}

// keyless reports whether a call has no chance for want of a key.
func (p *Provider) keyless() bool { return p.opts.APIKey == "" && p.opts.BaseURL == "" }

// Models lists what the server offers, by name; so it is also the check of a key.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	side := p.side("models")
	if p.keyless() {
		return nil, side.NoKey("OPENAI_API_KEY")
	}
	call := wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout)
	defer func() { _ = call.Close() }()
	var res *http.Response
	if err := p.client.Get(call.Context(), "models", nil, &res, option.WithMiddleware(call.Intercept)); err != nil {
		return nil, side.Failure(call, res, err)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	data, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, side.Network(call.Cause(fmt.Errorf("read the list of models: %w", err)))
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	slices.Sort(names)
	return names, nil
}
