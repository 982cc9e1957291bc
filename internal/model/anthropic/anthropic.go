// Package anthropic answers through Anthropic's Messages API, over plain HTTP and without
// the vendor's SDK. It promises that what was sent once is sent again unchanged, except
// for cache marks, and that it never retries by itself.
package anthropic

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/wire"
)

const provider = "anthropic"

// version is the API version, which every request must state.
const version = "2023-06-01"

// Options are what a provider is created with.
type Options struct {
	APIKey  string
	BaseURL string // "": the vendor's; with or without /v1
	// HTTPClient is used unchanged; nil: a new one.
	HTTPClient *http.Client
	// IdleTimeout limits pauses in an answer, and FirstByteTimeout the time
	// until it begins. Zero means 90 and 120 seconds.
	IdleTimeout, FirstByteTimeout time.Duration
}

// Provider is a model.Model for all of the vendor's models.
type Provider struct {
	opts Options
	base string
	http *http.Client
}

var _ model.Model = (*Provider)(nil)

// New returns a provider. It does not read the environment and does not fail: a
// missing key or a wrong address shows in the first call.
func New(opts Options) *Provider {
	opts.APIKey = strings.TrimSpace(opts.APIKey)
	row, _ := catalog.Find(provider)
	return &Provider{opts: opts, base: baseURL(cmp.Or(opts.BaseURL, row.BaseURL)), http: cmp.Or(opts.HTTPClient, wire.Client())}
}

// baseURL returns the address below which /v1/messages is found.
func baseURL(s string) string {
	s = strings.TrimRight(strings.TrimSpace(s), "/")
	s = strings.TrimSuffix(s, "/messages")
	return strings.TrimRight(strings.TrimSuffix(s, "/v1"), "/")
}

// Close closes idle connections. The provider may be used again.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

func (p *Provider) side(name string) wire.Side {
	return wire.Side{Provider: provider, Model: name, Key: p.opts.APIKey}
}

// rest returns how calls are made.
func (p *Provider) rest(side wire.Side) wire.Rest {
	header := http.Header{}
	header.Set("Anthropic-Version", version)
	header.Set("X-Api-Key", p.opts.APIKey)
	return wire.Rest{Client: p.http, Header: header, Side: side}
}

// Models lists the models that the key may use, newest first. It also serves to check a key.
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
		path := p.base + "/v1/models?limit=1000"
		if after != "" {
			path += "&after_id=" + url.QueryEscape(after)
		}
		failed := p.rest(side).Get(call, path, "the list of models", &page)
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
