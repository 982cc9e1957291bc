// Package bedrock answers through Amazon Bedrock: Anthropic's models with their own body
// (InvokeModelWithResponseStream), all others through Converse. This package writes the body of a request
// byte for byte and makes the HTTP call; the vendor's libraries sign, decode frames and find credentials. It
// promises that what was sent once is sent again unchanged, except for cache marks, that it looks for
// credentials at the first call and not before, and that it never retries by itself.
package bedrock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"chorus/internal/awsauth"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

const provider = "bedrock"

// Options configures a Provider. Missing values are looked up at the first call where the vendor's
// own tools look: environment, profiles, sign-ins, container and machine roles.
type Options struct {
	// APIKey is a Bedrock API key (AWS_BEARER_TOKEN_BEDROCK). It takes precedence over everything else.
	APIKey string
	// AccessKey, SecretKey and SessionToken are fixed credentials, which take precedence
	// over the chain. The token belongs to temporary credentials.
	AccessKey, SecretKey, SessionToken string
	Region                             string
	Profile                            string // "": AWS_PROFILE, or else default

	BaseURL    string // of the runtime; "": AWS_ENDPOINT_URL_BEDROCK_RUNTIME, or else the region's
	ControlURL string // of the list of models; "": AWS_ENDPOINT_URL_BEDROCK, else BaseURL, else the region's

	// HTTPClient is used unchanged; nil: a new one.
	HTTPClient *http.Client
	// IdleTimeout limits pauses in an answer, and FirstByteTimeout the time
	// until it begins. Zero means 90 and 120 seconds.
	IdleTimeout, FirstByteTimeout time.Duration

	// Getenv reads the variables of Bedrock itself (API key, addresses, region); nil:
	// os.Getenv. The vendor's library reads its own from the process environment.
	Getenv func(string) string
}

// Provider is a model.Model for every model on Bedrock.
type Provider struct {
	opts  Options
	http  *http.Client
	chain *awsauth.Chain
}

var _ model.Model = (*Provider)(nil)

// New returns a provider. It reads nothing and does not fail: missing
// credentials or a wrong address show in the first call.
func New(opts Options) *Provider {
	for _, s := range []*string{&opts.APIKey, &opts.AccessKey, &opts.SecretKey, &opts.SessionToken, &opts.Region, &opts.Profile} {
		*s = strings.TrimSpace(*s)
	}
	if opts.Getenv == nil {
		opts.Getenv = os.Getenv
	}
	p := &Provider{opts: opts, http: cmp.Or(opts.HTTPClient, wire.Client())}
	p.chain = awsauth.New(awsauth.Options{AccessKey: opts.AccessKey, SecretKey: opts.SecretKey, SessionToken: opts.SessionToken,
		Region: opts.Region, Profile: opts.Profile, Getenv: opts.Getenv})
	return p
}

// Close closes idle connections. The provider may be used again.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// access is what a call is signed with.
type access struct {
	token  string // a Bedrock API key; "": sign with keys
	keys   awsauth.Keys
	region string
}

// secret returns what must not appear in an error.
func (a access) secret() string {
	return cmp.Or(a.token, a.keys.SecretAccessKey)
}

func (p *Provider) side(name string) wire.Side { return wire.Side{Provider: provider, Model: name} }

// access finds the credentials and the region of a call.
func (p *Provider) access(ctx context.Context, side wire.Side, base string) (access, *model.Error) {
	a := access{token: p.opts.APIKey}
	if a.token == "" && p.opts.AccessKey == "" {
		a.token = strings.TrimSpace(p.opts.Getenv("AWS_BEARER_TOKEN_BEDROCK"))
	}
	if a.token == "" {
		keys, err := p.chain.Credentials(ctx)
		if err != nil {
			return access{}, noCredentials(side, err)
		}
		a.keys = keys
	}
	var err error
	if a.region, err = p.region(ctx, base); err != nil {
		return access{}, side.Bad("there is no AWS region; set AWS_REGION, or aws_region in the configuration (%v)", err)
	}
	return a, nil
}

// region returns where the models are. Requests to a server at a custom address
// are signed for the default region unless another is named.
func (p *Provider) region(ctx context.Context, base string) (string, error) {
	r, err := p.chain.Region(ctx)
	if r != "" {
		return r, nil
	}
	if host, _, ok := strings.Cut(strings.TrimPrefix(base, "https://bedrock-runtime."), ".amazonaws.com"); ok {
		return host, nil
	}
	if base != "" {
		return "us-east-1", nil
	}
	if err == nil {
		err = errors.New("neither the environment nor the profile names one")
	}
	return "", err
}

// noCredentials returns the error for a call that was not made.
func noCredentials(side wire.Side, err error) *model.Error {
	e := side.Bad("there are no AWS credentials; set AWS_PROFILE, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK (%v)", err)
	e.Kind, e.Err = model.Auth, err
	return e
}

// runtimeURL and controlURL return the configured addresses, or "" for the region's.
func (p *Provider) runtimeURL() string {
	return strings.TrimRight(firstSet(p.opts.BaseURL, p.opts.Getenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")), "/")
}

func (p *Provider) controlURL() string {
	return strings.TrimRight(firstSet(p.opts.ControlURL, p.opts.Getenv("AWS_ENDPOINT_URL_BEDROCK"), p.runtimeURL()), "/")
}

// firstSet returns the first value that is not blank, trimmed.
func firstSet(all ...string) string {
	for _, s := range all {
		if s = strings.TrimSpace(s); s != "" {
			return s
		}
	}
	return ""
}

// regional returns a service's address in a region.
func regional(service, region string) string {
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain += ".cn"
	}
	return "https://" + service + "." + region + "." + domain
}

// Models lists what the account may call in its region, by name: inference profiles and
// the models that need none. It also serves to check the credentials. It asks the
// control plane, which has another address than the runtime.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	side := p.side("models")
	call := wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout)
	defer func() { _ = call.Close() }()
	base := p.controlURL()
	a, failed := p.access(call.Context(), side, base)
	if failed != nil {
		return nil, failed
	}
	side.Key = a.secret()
	base = cmp.Or(base, regional("bedrock", a.region))
	names, failed := p.foundation(ctx, side, a, base)
	if failed != nil {
		return nil, failed
	}
	after := ""
	// An account has some dozens; a server that never ends its pages is cut off.
	for range 20 {
		var page struct {
			Profiles []struct {
				ID     string `json:"inferenceProfileId"`
				Status string `json:"status"`
			} `json:"inferenceProfileSummaries"`
			Next string `json:"nextToken"`
		}
		query := "?maxResults=1000"
		if after != "" {
			query += "&nextToken=" + url.QueryEscape(after)
		}
		if failed := p.get(ctx, side, a, base+"/inference-profiles"+query, &page); failed != nil {
			return nil, failed
		}
		for _, profile := range page.Profiles {
			if profile.Status == "" || profile.Status == "ACTIVE" {
				names = append(names, profile.ID)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// foundation lists the models that can be called by their own name.
func (p *Provider) foundation(ctx context.Context, side wire.Side, a access, base string) ([]string, *model.Error) {
	var list struct {
		Models []struct {
			ID        string   `json:"modelId"`
			Inference []string `json:"inferenceTypesSupported"`
			Streams   bool     `json:"responseStreamingSupported"`
			Lifecycle struct {
				Status string `json:"status"`
			} `json:"modelLifecycle"`
		} `json:"modelSummaries"`
	}
	if failed := p.get(ctx, side, a, base+"/foundation-models?byOutputModality=TEXT", &list); failed != nil {
		return nil, failed
	}
	var names []string
	for _, m := range list.Models {
		if m.Streams && m.Lifecycle.Status != "LEGACY" && slices.Contains(m.Inference, "ON_DEMAND") {
			names = append(names, m.ID)
		}
	}
	return names, nil
}

// get reads a JSON answer. It returns nil on success.
func (p *Provider) get(ctx context.Context, side wire.Side, a access, address string, into any) *model.Error {
	call := wire.Watch(ctx, p.opts.FirstByteTimeout, p.opts.IdleTimeout)
	defer func() { _ = call.Close() }()
	res, failed := p.do(call, side, a, http.MethodGet, address, nil)
	if failed != nil {
		return failed
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
