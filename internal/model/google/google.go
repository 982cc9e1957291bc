// Package google answers through the Gemini API: streamGenerateContent over plain HTTP, without the
// vendor's SDK. It promises that what was sent once is sent again unchanged, that a thought's signature
// goes back with the part it came with, and that it never retries by itself.
package google

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/wire"
)

const provider = "google"

// row returns what the catalog knows about the provider.
func row() catalog.Provider { p, _ := catalog.Find(provider); return p }

// Options are what a provider is created with.
type Options struct {
	// APIKey may be empty if a base URL is given: a gateway may have its own.
	APIKey string
	// BaseURL is the server; "": the vendor's. It may end in a version or not.
	BaseURL string
	// HTTPClient is used unchanged; nil: a new one.
	HTTPClient *http.Client
	// IdleTimeout limits pauses in an answer, and FirstByteTimeout the time until it begins. Zero means 90
	// and 120 seconds, and five minutes until the answer of a thinking model begins.
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
	return &Provider{opts: opts, base: baseURL(opts.BaseURL), http: cmp.Or(opts.HTTPClient, wire.Client())}
}

// baseURL returns the address below which /models is found. Without a
// version it adds v1beta, which has everything that we use.
func baseURL(s string) string {
	s = cmp.Or(strings.TrimRight(strings.TrimSpace(s), "/"), row().BaseURL)
	s = strings.TrimRight(strings.TrimSuffix(s, "/models"), "/")
	if last := s[strings.LastIndexByte(s, '/')+1:]; slices.Contains([]string{"v1", "v1beta", "v1alpha"}, last) {
		return s
	}
	return s + "/v1beta"
}

// Close closes idle connections. The provider may be used again.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

func (p *Provider) side(name string) wire.Side {
	return wire.Side{Provider: provider, Model: name, Key: p.opts.APIKey}
}

// keyless reports whether a call cannot succeed because a key is missing.
func (p *Provider) keyless() bool { return p.opts.APIKey == "" && p.opts.BaseURL == "" }

func (p *Provider) rest(side wire.Side) wire.Rest {
	r := wire.Rest{Client: p.http, Side: side, Header: http.Header{}, Refused: refused(side)}
	if p.opts.APIKey != "" {
		r.Header.Set("x-goog-api-key", p.opts.APIKey)
	}
	return r
}

// resource returns the path of a model. Tuned models are named with their collection.
func (p *Provider) resource(name string) string {
	if !strings.Contains(name, "/") {
		name = "models/" + name
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return p.base + "/" + strings.Join(parts, "/")
}

// Models lists the conversational models that the key may use, by name. It also serves to check a key.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	side := p.side("models")
	if p.keyless() {
		return nil, side.NoKey(row().KeyVariable())
	}
	var names []string
	token := ""
	// The vendor offers some dozens; a server that never ends its pages is cut off.
	for range 20 {
		var page struct {
			Models []struct {
				Name    string   `json:"name"`
				Methods []string `json:"supportedGenerationMethods"`
			} `json:"models"`
			NextPageToken string `json:"nextPageToken"`
		}
		path := p.base + "/models?pageSize=1000"
		if token != "" {
			path += "&pageToken=" + url.QueryEscape(token)
		}
		call := wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout)
		failed := p.rest(side).Get(call, path, "the list of models", &page)
		_ = call.Close()
		if failed != nil {
			return nil, failed
		}
		for _, m := range page.Models {
			// Embedding models and the like cannot converse. A gateway may not report methods.
			if m.Methods == nil || slices.Contains(m.Methods, "generateContent") {
				names = append(names, strings.TrimPrefix(m.Name, "models/"))
			}
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
