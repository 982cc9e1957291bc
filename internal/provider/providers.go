package provider

import (
	"encoding/json"
	"fmt"
	"net/http"

	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/bedrock"
	"chorus/internal/model/completions"
	"chorus/internal/model/demo"
	"chorus/internal/model/google"
	"chorus/internal/model/ollama"
	"chorus/internal/model/openai"
	"chorus/internal/model/wire"
	"chorus/internal/modelrouter"
)

// maker creates the client of a provider for one key of a vendor.
type maker func(m *Models, v modelrouter.Vendor, a modelrouter.Account) (model.Model, error)

// makers has one for each provider of the catalog.
var makers = map[string]maker{
	"anthropic":   (*Models).anthropic,
	"bedrock":     (*Models).bedrock,
	"completions": (*Models).completions,
	"demo":        func(*Models, modelrouter.Vendor, modelrouter.Account) (model.Model, error) { return demo.New(), nil },
	"google":      (*Models).google,
	"ollama":      (*Models).ollama,
	"openai":      (*Models).openAI,
	"openrouter":  (*Models).openRouter,
}

func (m *Models) provide(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	make, ok := makers[string(v.Kind)]
	if !ok {
		return nil, fmt.Errorf("there is no provider %s", v.Kind)
	}
	return make(m, v, a)
}

func (m *Models) anthropic(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	return anthropic.New(anthropic.Options{APIKey: a.Key, BaseURL: a.Base, HTTPClient: headerClient(v),
		FirstByteTimeout: m.Timeouts.FirstByte, IdleTimeout: m.Timeouts.Idle}), nil
}

func (m *Models) bedrock(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	return bedrock.New(bedrock.Options{
		APIKey: a.Get("aws_bearer_token_bedrock"), AccessKey: a.Get("aws_access_key"), SecretKey: a.Get("aws_secret_key"),
		SessionToken: a.Get("aws_session_token"), Region: a.Get("aws_region"), Profile: a.Get("aws_profile"),
		BaseURL: a.Base, HTTPClient: headerClient(v), Getenv: m.Env,
		FirstByteTimeout: m.Timeouts.FirstByte, IdleTimeout: m.Timeouts.Idle,
	}), nil
}

func (m *Models) completions(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	extra, err := fields(v)
	return completions.New(completions.Options{Name: v.Catalog(), APIKey: a.Key, BaseURL: a.Base, Headers: v.Headers, Extra: extra,
		FirstByteTimeout: m.Timeouts.FirstByte, IdleTimeout: m.Timeouts.Idle}), err
}

func (m *Models) google(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	return google.New(google.Options{APIKey: a.Key, BaseURL: a.Base, HTTPClient: headerClient(v),
		FirstByteTimeout: m.Timeouts.FirstByte, IdleTimeout: m.Timeouts.Idle}), nil
}

func (m *Models) ollama(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	return ollama.New(ollama.Options{Host: a.Base, APIKey: a.Key, HTTPClient: headerClient(v),
		FirstByteTimeout: m.Timeouts.FirstByte, IdleTimeout: m.Timeouts.Idle}), nil
}

func (m *Models) openAI(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	o, err := m.openAIOptions(v, a)
	if err != nil {
		return nil, err
	}
	return openai.New(o), nil
}

func (m *Models) openRouter(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	o, err := m.openAIOptions(v, a)
	if err != nil {
		return nil, err
	}
	o.Router = &openai.Router{Title: "Chorus", Prefill: true}
	return openai.New(o), nil
}

func (m *Models) openAIOptions(v modelrouter.Vendor, a modelrouter.Account) (openai.Options, error) {
	extra, err := fields(v)
	o := openai.Options{Name: v.Catalog(), APIKey: a.Key, BaseURL: a.Base, Headers: v.Headers, Extra: extra, API: openai.API(a.Get("openai_api")),
		FirstByteTimeout: m.Timeouts.FirstByte, IdleTimeout: m.Timeouts.Idle}
	switch o.API {
	case openai.Auto, openai.Chat, openai.Responses:
		return o, err
	default:
		return o, fmt.Errorf("openai_api is %q; it may be chat or responses, or be left out", o.API)
	}
}

// fields returns the vendor's extra fields as they are sent.
func fields(v modelrouter.Vendor) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for name, value := range v.Extra {
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("the extra field %s: %w", name, err)
		}
		out[name] = data
	}
	return out, nil
}

// headerClient returns a client that sends the vendor's headers, or nil if
// there are none, so that the provider creates its own.
func headerClient(v modelrouter.Vendor) *http.Client {
	if len(v.Headers) == 0 {
		return nil
	}
	return &http.Client{Transport: headers{wire.Transport(), v.Headers}}
}

// headers adds headers to each request.
type headers struct {
	*http.Transport
	add map[string]string
}

// RoundTrip implements http.RoundTripper. It does not send the headers to servers
// that we are redirected to, because they may be secrets.
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response != nil {
		return h.Transport.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	for name, value := range h.add {
		r.Header.Set(name, value)
	}
	return h.Transport.RoundTrip(r)
}
