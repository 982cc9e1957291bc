// Package anthropic answers through Anthropic's Messages API. The body of a
// request is ours, byte for byte; the vendor's SDK authenticates, sends and takes
// the event stream apart. It promises that what was sent once is sent again
// unchanged, cache marks aside, and that it never retries by itself.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/wire"
)

const provider = "anthropic"

// Options are what a provider is made with.
type Options struct {
	APIKey  string
	BaseURL string // "": the vendor's; with or without /v1
	// HTTPClient is used as it is; nil: one of its own.
	HTTPClient *http.Client
	// IdleTimeout is how long an answer may pause, FirstByteTimeout how long it may
	// take to begin. Zero: 90 and 120 seconds.
	IdleTimeout, FirstByteTimeout time.Duration
}

// Provider is a model.Model for every model of the vendor's.
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
	p := &Provider{opts: opts, http: opts.HTTPClient}
	if p.http == nil {
		p.http = wire.Client()
	}
	// The client is made by hand: NewClient would read keys, profiles and addresses
	// from the environment.
	p.client = sdk.Client{Options: []option.RequestOption{
		option.WithEnvironmentProduction(),
		option.WithHTTPClient(p.http),
		option.WithMaxRetries(0),
		option.WithAPIKey(opts.APIKey),
	}}
	row, _ := catalog.Find(provider)
	if base := baseURL(cmp.Or(opts.BaseURL, row.BaseURL)); base != "" {
		p.client.Options = append(p.client.Options, option.WithBaseURL(base))
	}
	return p
}

// baseURL is the address below which /v1/messages stands.
func baseURL(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), "/")
	s = strings.TrimSuffix(s, "/messages")
	return strings.TrimRight(strings.TrimSuffix(s, "/v1"), "/")
}

// Close lets go of idle connections. The provider may be used again.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

func (p *Provider) side(name string) wire.Side {
	return wire.Side{Provider: provider, Model: name, Key: p.opts.APIKey}
}

// Models lists what the key may use, newest first; so it is also the check of a key.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	side := p.side("models")
	if p.opts.APIKey == "" {
		return nil, side.NoKey("ANTHROPIC_API_KEY")
	}
	var names []string
	after := ""
	// The vendor offers some dozens; a server that never ends its pages is cut off.
	for range 20 {
		call := wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout)
		var page struct {
			Data []struct {
				ID string `json:"id"`
			} `json:"data"`
			HasMore bool   `json:"has_more"`
			LastID  string `json:"last_id"`
		}
		path := "v1/models?limit=1000"
		if after != "" {
			path += "&after_id=" + url.QueryEscape(after)
		}
		failed := p.get(call, side, path, &page)
		_ = call.Close()
		if failed != nil {
			return nil, failed
		}
		for _, m := range page.Data {
			names = append(names, m.ID)
		}
		if !page.HasMore || page.LastID == "" {
			break
		}
		after = page.LastID
	}
	return names, nil
}

// get reads a JSON answer; nil when it came.
func (p *Provider) get(call *wire.Call, side wire.Side, path string, into any) *model.Error {
	var res *http.Response
	if err := p.client.Get(call.Context(), path, nil, &res, option.WithMiddleware(call.Intercept)); err != nil {
		return side.Failure(call, res, err)
	}
	data, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return side.Network(call.Cause(fmt.Errorf("read the list of models: %w", err)))
	}
	return nil
}
