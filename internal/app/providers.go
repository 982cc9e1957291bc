package app

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

// provide makes what speaks a vendor's language, for one of its keys.
func (m *Models) provide(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	switch v.Kind {
	case modelrouter.Demo:
		return demo.New(), nil
	case modelrouter.Anthropic:
		return anthropic.New(anthropic.Options{APIKey: a.Key, BaseURL: a.Base, HTTPClient: heading(v),
			FirstByteTimeout: m.patience.first, IdleTimeout: m.patience.idle}), nil
	case modelrouter.OpenAI, modelrouter.OpenRouter:
		return m.openAI(v, a)
	case modelrouter.Completions:
		extra, err := fields(v)
		return completions.New(completions.Options{Name: v.Catalog(), APIKey: a.Key, BaseURL: a.Base, Headers: v.Headers, Extra: extra,
			FirstByteTimeout: m.patience.first, IdleTimeout: m.patience.idle}), err
	case modelrouter.Google:
		return google.New(google.Options{APIKey: a.Key, BaseURL: a.Base, HTTPClient: heading(v),
			FirstByteTimeout: m.patience.first, IdleTimeout: m.patience.idle}), nil
	case modelrouter.Ollama:
		return ollama.New(ollama.Options{Host: a.Base, APIKey: a.Key, HTTPClient: heading(v),
			FirstByteTimeout: m.patience.first, IdleTimeout: m.patience.idle}), nil
	case modelrouter.Bedrock:
		return bedrock.New(bedrock.Options{
			APIKey: a.Get("aws_bearer_token_bedrock"), AccessKey: a.Get("aws_access_key"), SecretKey: a.Get("aws_secret_key"),
			SessionToken: a.Get("aws_session_token"), Region: a.Get("aws_region"), Profile: a.Get("aws_profile"),
			BaseURL: a.Base, HTTPClient: heading(v), Getenv: m.env,
			FirstByteTimeout: m.patience.first, IdleTimeout: m.patience.idle,
		}), nil
	default:
		return nil, fmt.Errorf("there is nothing here that speaks %s", v.Kind)
	}
}

func (m *Models) openAI(v modelrouter.Vendor, a modelrouter.Account) (model.Model, error) {
	extra, err := fields(v)
	if err != nil {
		return nil, err
	}
	o := openai.Options{Name: v.Catalog(), APIKey: a.Key, BaseURL: a.Base, Headers: v.Headers, Extra: extra, API: openai.API(a.Get("openai_api")),
		FirstByteTimeout: m.patience.first, IdleTimeout: m.patience.idle}
	switch o.API {
	case openai.Auto, openai.Chat, openai.Responses:
	default:
		return nil, fmt.Errorf("openai_api is %q; it may be chat or responses, or be left out", o.API)
	}
	if v.Kind == modelrouter.OpenRouter {
		o.Router = &openai.Router{Title: "Chorus", Prefill: true}
	}
	return openai.New(o), nil
}

// fields are the vendor's extra fields as they are sent.
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

// takesExtra reports whether a kind's body has room for fields of one's own.
func takesExtra(k modelrouter.Kind) bool {
	return k == modelrouter.OpenAI || k == modelrouter.OpenRouter || k == modelrouter.Completions
}

// heading is a client that sends the vendor's headers; nil when there are none, so
// that the provider makes its own.
func heading(v modelrouter.Vendor) *http.Client {
	if len(v.Headers) == 0 {
		return nil
	}
	return &http.Client{Transport: headers{wire.Transport(), v.Headers}}
}

// headers sends some with each request.
type headers struct {
	*http.Transport
	add map[string]string
}

// RoundTrip implements http.RoundTripper. Whoever a server sends us on to does not get
// the headers: they may be secrets.
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
