package google

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/modeltest"
	"chorus/internal/sim/llmsim"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var maker = modeltest.Maker{
	Name: "google", API: llmsim.Google, Model: "gemini-2.5-flash", NoPrefill: "gemini-2.5-flash", WholeCalls: true, WrongKey: 400,
	New: func(c modeltest.Config) modeltest.Provider {
		return New(Options{APIKey: c.Key, BaseURL: c.BaseURL, HTTPClient: c.Client, IdleTimeout: c.Idle, FirstByteTimeout: c.FirstByte})
	},
}

func TestSuite(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, maker)
}

// Everything holds as well for models that sign what they do.
func TestSuiteWithSignatures(t *testing.T) {
	t.Parallel()
	m := maker
	m.Model, m.NoPrefill = "gemini-3-pro-preview", "gemini-3-pro-preview"
	modeltest.Run(t, m)
}

func TestNoKeyIsSaidWithoutACall(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	prep, err := p.Prepare(model.Request{Model: "gemini-2.5-pro", Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hi"})}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range p.Stream(context.Background(), prep) {
		if model.KindOf(err) != model.Auth || err.(*model.Error).Status != 0 {
			t.Errorf("error %v", err)
		}
	}
	if _, err := p.Models(context.Background()); model.KindOf(err) != model.Auth {
		t.Errorf("error %v", err)
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": address + "/v1beta", " ": address + "/v1beta", "http://x": "http://x/v1beta", "http://x/": "http://x/v1beta",
		"http://x/v1beta/": "http://x/v1beta", "http://x/proxy/v1": "http://x/proxy/v1", "http://x/gemini": "http://x/gemini/v1beta",
		"http://x/v1beta/models": "http://x/v1beta", "http://x/v1alpha": "http://x/v1alpha",
	} {
		if got := baseURL(in); got != want {
			t.Errorf("baseURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestResource(t *testing.T) {
	t.Parallel()
	p := New(Options{BaseURL: "http://x"})
	for in, want := range map[string]string{
		"gemini-2.5-pro": "http://x/v1beta/models/gemini-2.5-pro", "models/gemini-2.5-pro": "http://x/v1beta/models/gemini-2.5-pro",
		"tunedModels/mine": "http://x/v1beta/tunedModels/mine", "odd name?": "http://x/v1beta/models/odd%20name%3F",
	} {
		if got := p.resource(in); got != want {
			t.Errorf("resource(%q) = %q, want %q", in, got, want)
		}
	}
}

// pages answers with two pages of models, one of which cannot converse.
type pages struct{ asked []string }

func (p *pages) RoundTrip(r *http.Request) (*http.Response, error) {
	p.asked = append(p.asked, r.URL.RawQuery)
	body := `{"models":[{"name":"models/gemini-b","supportedGenerationMethods":["generateContent"]},{"name":"models/embedding","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"a&b"}`
	if r.URL.Query().Get("pageToken") == "a&b" {
		body = `{"models":[{"name":"models/gemini-a"}]}`
	}
	return answered(r, 200, "application/json", []byte(body)), nil
}

func TestModelsComeInPages(t *testing.T) {
	t.Parallel()
	server := &pages{}
	p := New(Options{APIKey: "test-key", HTTPClient: &http.Client{Transport: server}})
	names, err := p.Models(t.Context())
	if err != nil || !slices.Equal(names, []string{"gemini-a", "gemini-b"}) || len(server.asked) != 2 || !strings.Contains(server.asked[0], "pageSize=") {
		t.Errorf("models %v, %v after %q", names, err, server.asked)
	}
}

func BenchmarkPrepare20(b *testing.B)  { modeltest.BenchmarkPrepare(b, maker, 20) }
func BenchmarkPrepare400(b *testing.B) { modeltest.BenchmarkPrepare(b, maker, 400) }
