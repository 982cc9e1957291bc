package google

import (
	"context"
	"encoding/json"
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
		"": row().BaseURL + "/v1beta", " ": row().BaseURL + "/v1beta", "http://x": "http://x/v1beta", "http://x/": "http://x/v1beta",
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

// The simulator refuses a signature that it did not give out, and a first call
// without one; so this passes only if they come back with what they came with.
func TestSignaturesComeBackThroughTheJournal(t *testing.T) {
	t.Parallel()
	sim, url := llmsim.Launch(t, llmsim.Options{})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := New(Options{APIKey: "test-key", BaseURL: url, HTTPClient: &http.Client{Transport: transport}})
	sim.Push(
		llmsim.Turn{Thinking: "hm", Text: "see", Calls: []llmsim.Call{{Name: "read"}, {Name: "read"}}},
		llmsim.Turn{Thinking: "so", Text: "done"},
		llmsim.Text("and more"),
	)
	messages := []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hello"})}
	for range 3 {
		prep, err := p.Prepare(model.Request{Model: "gemini-3-pro-preview", Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		var done model.Done
		for c, err := range p.Stream(t.Context(), prep) {
			if err != nil {
				t.Fatal(err)
			}
			done, _ = c.(model.Done)
		}
		kept, err := json.Marshal(done.Blocks)
		if err != nil {
			t.Fatal(err)
		}
		var blocks chat.Blocks
		if err := json.Unmarshal(kept, &blocks); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, modeltest.Message(t, model.Assistant, blocks...))
		for _, c := range blocks.Calls() {
			messages = append(messages, modeltest.Message(t, model.User, chat.ToolResult{Call: c.ID, Blocks: chat.TextBlocks("ok")}))
		}
		if len(blocks.Calls()) == 0 {
			messages = append(messages, modeltest.Message(t, model.User, chat.Text{Text: "go on"}))
		}
	}
	last := sim.Requests()[2]
	if n := strings.Count(string(last.Body), `"thoughtSignature"`); n != 2 || strings.Contains(string(last.Body), unsigned) {
		t.Errorf("%d signatures in %s", n, last.Body)
	}
}

// Another model's calls are unsigned; the newest Geminis want to be told so.
func TestForeignCallsAreMarked(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"gemini-2.5-pro": 0, "gemini-3-pro-preview": 1, "models/gemini-3-flash-preview": 1, "gemini-4": 1, "gemma-3": 0} {
		prep, err := New(Options{}).Prepare(model.Request{Model: name, Messages: []*model.Message{
			modeltest.Message(t, model.User, chat.Text{Text: "hello"}),
			modeltest.Message(t, model.Assistant, chat.ToolUse{ID: "1", Name: "a"}, chat.ToolUse{ID: "2", Name: "b"}),
			modeltest.Message(t, model.User, chat.ToolResult{Call: "1"}, chat.ToolResult{Call: "2"}),
		}})
		if n := strings.Count(string(prep.Body), unsigned); err != nil || n != want {
			t.Errorf("%s: %d in %s, %v", name, n, prep.Body, err)
		}
	}
}

func TestAnswersInARowAreOne(t *testing.T) {
	t.Parallel()
	prep, err := New(Options{}).Prepare(model.Request{Model: "gemini-2.5-pro", Messages: []*model.Message{
		modeltest.Message(t, model.User, chat.Text{Text: "hello"}),
		modeltest.Message(t, model.Assistant, chat.Text{Text: "a"}), modeltest.Message(t, model.Assistant, chat.Text{Text: "b"}, chat.ToolUse{ID: "1", Name: "n"}),
		modeltest.Message(t, model.User, chat.ToolResult{Call: "1"}),
	}})
	const want = `"contents":[{"role":"user","parts":[{"text":"hello"}]},{"role":"model","parts":[{"text":"a"},{"text":"b"},{"functionCall":{"id":"1","name":"n","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"1","name":"n","response":{"output":""}}}]}]}`
	if err != nil || !strings.HasSuffix(string(prep.Body), want) {
		t.Errorf("%s, %v", prep.Body, err)
	}
}
