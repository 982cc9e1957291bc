package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/modeltest"
	"chorus/internal/model/openai/format"
	"chorus/internal/sim/llmsim"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options are the options of a provider under test.
func options(c modeltest.Config) Options {
	return Options{APIKey: c.Key, BaseURL: c.BaseURL, HTTPClient: c.Client, IdleTimeout: c.Idle, FirstByteTimeout: c.FirstByte}
}

var (
	chatMaker = modeltest.Maker{
		Name: "openai", API: llmsim.OpenAI, Model: "gpt-4o", NoPrefill: "gpt-4o",
		New: func(c modeltest.Config) modeltest.Provider { return New(options(c)) },
	}
	responsesMaker = modeltest.Maker{
		Name: "openai", API: llmsim.Responses, Model: "gpt-5.1-codex", NoPrefill: "gpt-5.1-codex", Signatures: true, NoStops: true,
		New: func(c modeltest.Config) modeltest.Provider {
			o := options(c)
			o.API = Responses
			return New(o)
		},
		SentBack: func(th chat.Thinking) string {
			if th.Redacted != "" {
				return "redacted|" + content(th.Redacted)
			}
			return th.Text + "|" + content(th.Signature)
		},
	}
	routerMaker = modeltest.Maker{
		Name: "openrouter", API: llmsim.OpenRouter, Model: "anthropic/claude-sonnet-4.5",
		Prefill: true, NoPrefill: "anthropic/claude-opus-4.6", Signatures: true, CacheWrites: true, NoToolMarks: true,
		New:      func(c modeltest.Config) modeltest.Provider { return New(routed(c)) },
		SentBack: detailed,
	}
	otherRouterMaker = modeltest.Maker{
		Name: "openrouter", API: llmsim.OpenRouter, Model: "openai/gpt-4o", NoPrefill: "openai/gpt-4o", Signatures: true,
		New:      func(c modeltest.Config) modeltest.Provider { return New(routed(c)) },
		SentBack: detailed,
	}
)

// content is the encrypted content of reasoning that was kept.
func content(kept string) string {
	_, encrypted := format.CutReasoning(strings.TrimPrefix(kept, format.ResponsesTag))
	return encrypted
}

func routed(c modeltest.Config) Options {
	o := options(c)
	o.BaseURL += "/api/v1"
	o.Router = &Router{Referer: "https://chorus.example", Title: "Chorus", Prefill: true}
	return o
}

// detailed reads reasoning as it was kept for OpenRouter.
func detailed(th chat.Thinking) string {
	var list []struct{ Type, Text, Signature, Data string }
	if json.Unmarshal([]byte(strings.TrimPrefix(th.Signature+th.Redacted, format.RouterTag)), &list) != nil || len(list) != 1 {
		return "unreadable: " + th.Signature + th.Redacted
	}
	if list[0].Type == "reasoning.encrypted" {
		return "redacted|" + list[0].Data
	}
	return list[0].Text + "|" + list[0].Signature
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]modeltest.Maker{
		"chat": chatMaker, "responses": responsesMaker, "openrouter to anthropic": routerMaker, "openrouter to openai": otherRouterMaker,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modeltest.Run(t, m)
		})
	}
}

func hello(t *testing.T, name string) model.Request {
	t.Helper()
	return model.Request{Model: name, Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hi"})}}
}

// client is one for a test, without connections left behind.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask sends a request and gives its failure, if there is one.
func ask(t *testing.T, p *Provider, r model.Request) error {
	t.Helper()
	prep, err := p.Prepare(r)
	if err != nil {
		return err
	}
	for _, err := range p.Stream(t.Context(), prep) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestNoKeyIsSaidWithoutACall(t *testing.T) {
	t.Parallel()
	for variable, p := range map[string]*Provider{"OPENAI_API_KEY": New(Options{}), "OPENROUTER_API_KEY": New(Options{Router: &Router{}})} {
		err := ask(t, p, hello(t, "gpt-4o"))
		if model.KindOf(err) != model.Auth || err.(*model.Error).Status != 0 || !strings.Contains(err.Error(), variable) {
			t.Errorf("error %v", err)
		}
		if _, err := p.Models(context.Background()); model.KindOf(err) != model.Auth {
			t.Errorf("error %v", err)
		}
	}
}

func TestNoKeyIsNeededElsewhere(t *testing.T) {
	t.Parallel()
	sim, url := llmsim.Launch(t, llmsim.Options{NoKey: true})
	p := New(Options{BaseURL: url + "/v1/chat/completions", HTTPClient: client(t), Name: "ollama"})
	if err := ask(t, p, hello(t, "llama3.2:3b")); err != nil {
		t.Fatal(err)
	}
	if got := sim.Requests()[0].Header.Get("Authorization"); got != "" {
		t.Errorf("sent %q", got)
	}
	if names, err := p.Models(t.Context()); err != nil || len(names) == 0 {
		t.Errorf("models %v, %v", names, err)
	}
}

func TestTheInterfaceFollowsTheModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		api   API
		name  string
		model string
		want  llmsim.API
	}{
		{Auto, "", "gpt-4o", llmsim.OpenAI},
		{Auto, "", "gpt-5.2-codex", llmsim.Responses},
		{"auto", "", "o3-pro-2025-06-10", llmsim.Responses},
		{Auto, "acme", "acme-codex", llmsim.OpenAI},
		{Auto, "work", "gpt-5.2-codex", llmsim.Responses}, // a vendor of one's own that has OpenAI's models
		{Chat, "", "gpt-5", llmsim.OpenAI},
		{Responses, "", "gpt-4o", llmsim.Responses},
		{Responses, "acme", "acme-large", llmsim.Responses},
	} {
		sim, url := llmsim.Launch(t, llmsim.Options{Keys: []string{"test-key"}})
		o := Options{APIKey: "test-key", BaseURL: url, API: c.api, Name: c.name, HTTPClient: client(t)}
		if c.name == "work" {
			o.Catalog = "openai"
		}
		p := New(o)
		r := hello(t, c.model)
		r.Settings.ThinkingBudget = 100
		if err := ask(t, p, r); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if got := sim.Requests()[0].API; got != c.want {
			t.Errorf("%+v: asked through %s", c, got)
		}
	}
}

func TestHeadersQueriesAndExtraFields(t *testing.T) {
	t.Parallel()
	sim, url := llmsim.Launch(t, llmsim.Options{Keys: []string{"other-key"}})
	o := Options{
		APIKey: "test-key", BaseURL: url + "/v1?api-version=7", HTTPClient: client(t),
		Headers: map[string]string{"Authorization": "Bearer other-key", "X-Team": "choir"},
		Extra:   map[string]json.RawMessage{"max_tokens": json.RawMessage(`9`), "max_completion_tokens": json.RawMessage(`null`), "seed": json.RawMessage(`7`)},
	}
	r := hello(t, "gpt-4o")
	r.Settings = chat.Settings{MaxTokens: 50, Stop: []string{"a", "b", "", "c", "d", "e"}}
	if err := ask(t, New(o), r); err != nil {
		t.Fatal(err)
	}
	got := sim.Requests()[0]
	if got.Header.Get("X-Team") != "choir" || got.MaxTokens != 9 || len(got.Stop) != 4 || !strings.Contains(string(got.Body), `"seed":7`) {
		t.Errorf("sent %s with %v", got.Body, got.Header)
	}
	o.Headers["Authorization"] = "Bearer wrong-key-of-a-header"
	if err := ask(t, New(o), r); model.KindOf(err) != model.Auth || strings.Contains(err.Error(), "Bearer wrong-key-of-a-header") {
		t.Errorf("error %v", err)
	}
	o.Extra["messages"] = json.RawMessage(`[]`)
	if err := ask(t, New(o), r); model.KindOf(err) != model.BadRequest || !strings.Contains(err.Error(), `"messages"`) {
		t.Errorf("error %v", err)
	}
}

func TestOpenRouterIsToldWhoAsks(t *testing.T) {
	t.Parallel()
	sim, url := llmsim.Launch(t, llmsim.Options{Keys: []string{"test-key"}})
	p := New(routed(modeltest.Config{BaseURL: url, Key: "test-key", Client: client(t)}))
	if err := ask(t, p, hello(t, "openai/gpt-4o")); err != nil {
		t.Fatal(err)
	}
	h := sim.Requests()[0].Header
	if h.Get("HTTP-Referer") != "https://chorus.example" || h.Get("X-Title") != "Chorus" {
		t.Errorf("headers %v", h)
	}
}

func TestPrefillsBehindARouter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		router Router
		model  string
		ok     bool
	}{
		{Router{Prefill: true}, "anthropic/claude-sonnet-4.5", true},
		{Router{Prefill: true}, "anthropic/claude-3.5-haiku:beta", true},
		{Router{Prefill: true}, "anthropic/claude-opus-4.7", false},
		{Router{Prefill: true}, "openai/gpt-4o", false},
		{Router{}, "anthropic/claude-sonnet-4.5", false},
	} {
		r := hello(t, c.model)
		r.Prefill = "ada:"
		_, err := New(Options{Router: &c.router}).Prepare(r)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "chat mode") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Marks stand where they are asked for, also beside pictures that wait, and change
// nothing else.
func TestMarksChangeNothingElse(t *testing.T) {
	t.Parallel()
	img := chat.Image{Blob: "h1", MediaType: "image/png", Size: 3}
	r := model.Request{
		Model: "anthropic/claude-sonnet-4.5", Blob: func(string) ([]byte, error) { return []byte("png"), nil },
		Messages: []*model.Message{
			modeltest.Message(t, model.User, chat.Text{Text: "look"}, img),
			modeltest.Message(t, model.Assistant, chat.ToolUse{ID: "c-1", Name: "a"}, chat.ToolUse{ID: "c-2", Name: "b"}),
			modeltest.Message(t, model.User, chat.ToolResult{Call: "c-1", Blocks: chat.Blocks{chat.Text{Text: "one \"}]"}, img}}),
			modeltest.Message(t, model.User, chat.ToolResult{Call: "c-2"}, chat.Text{Text: "hurry"}),
		},
	}
	p := New(Options{Router: &Router{}})
	bare, err := p.Prepare(r)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"type":"text","text":"look"` + mark + `}`, "", `{"type":"text","text":"one \"}]"` + mark + `}`, "",
	} {
		r.Marks = []int{i}
		got, err := p.Prepare(r)
		if err != nil {
			t.Fatal(err)
		}
		body := string(got.Body)
		if !strings.Contains(body, want) || strings.Count(body, mark) != min(len(want), 1) || strings.ReplaceAll(body, mark, "") != string(bare.Body) {
			t.Errorf("mark %d: %s", i, body)
		}
	}
}

func TestNoMarksWhereNoCacheIsWanted(t *testing.T) {
	t.Parallel()
	r := hello(t, "anthropic/claude-sonnet-4.5")
	r.Head, r.Marks, r.Settings.NoCache = &model.Head{System: "be kind"}, []int{0}, true
	prep, err := New(Options{Router: &Router{}}).Prepare(r)
	if err != nil || strings.Contains(string(prep.Body), "cache_control") || !strings.Contains(string(prep.Body), "be kind") {
		t.Errorf("%s, %v", prep.Body, err)
	}
}

func TestPenaltiesWhereTheyAreKnown(t *testing.T) {
	t.Parallel()
	high, low := 5.0, -0.5
	for name, want := range map[string]int{"openai/gpt-4o": 2, "openai/o3": 0, "anthropic/claude-sonnet-4.5": 0, "gpt-4o": 2, "gpt-5-codex": 0} {
		o := Options{}
		if strings.Contains(name, "/") {
			o.Router = &Router{}
		}
		r := hello(t, name)
		r.Settings = chat.Settings{PresencePenalty: &high, FrequencyPenalty: &low}
		prep, err := New(o).Prepare(r)
		if n := strings.Count(string(prep.Body), `_penalty":`); err != nil || n != want || want > 0 && !strings.Contains(string(prep.Body), `"presence_penalty":2,"frequency_penalty":-0.5`) {
			t.Errorf("%s: %s, %v", name, prep.Body, err)
		}
	}
}

func TestEffort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		budget int
		least  string
		want   string
	}{
		{1, "", "low"}, {5_000, "", "medium"}, {1 << 40, "", "high"},
		{1, "medium", "medium"}, {1, "high", "high"}, {20_000, "medium", "high"},
	} {
		if got := effort(c.budget, catalog.Entry{LeastEffort: c.least}); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// Reasoning that another vendor gave is never sent, and none that nothing came of.
func TestOnlyOwnReasoningGoesBack(t *testing.T) {
	t.Parallel()
	blocks := chat.Blocks{
		chat.Thinking{Text: "of Anthropic", Signature: "sig"}, chat.Thinking{Redacted: "data"},
		chat.Thinking{Text: "a", Signature: "openai:E1"}, chat.Thinking{Redacted: "openai:rs_2:E2"}, chat.Text{Text: "hi"},
		chat.Thinking{Text: "b", Signature: `openrouter:[{"type":"reasoning.text","text":"b"}]`}, chat.Thinking{Text: "c", Signature: `openrouter:broken`},
		chat.Thinking{Redacted: "openai:E3"},
	}
	message, err := model.NewMessage(model.Assistant, chat.Participant{}, blocks)
	if err != nil {
		t.Fatal(err)
	}
	items, err := itemEncoder{}.message(message)
	got := string(items.Bytes)
	want := `{"type":"reasoning","id":"rs_22249aa61fd2594e50910aa574afbb97","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"E1"},` +
		`{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"E2"},` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}]}`
	if err != nil || got != want {
		t.Errorf("responses: %s, %v", got, err)
	}
	sent, err := encoder{form: form{router: true}}.message(message)
	got = string(sent.Bytes)
	if want = `{"role":"assistant","content":"hi","reasoning_details":[{"text":"b","type":"reasoning.text"}]}`; err != nil || got != want {
		t.Errorf("router: %s, %v", got, err)
	}
	sent, err = encoder{}.message(message)
	got = string(sent.Bytes)
	if want = `{"role":"assistant","content":"hi"}`; err != nil || got != want {
		t.Errorf("chat: %s, %v", got, err)
	}
}

// The newest models were asked through Chat Completions, where tools forbid them to reason, and
// nobody was told: they are asked through Responses, and what is left out is said.
func TestModelsThatReasonDo(t *testing.T) {
	t.Parallel()
	sim, url := llmsim.Launch(t, llmsim.Options{Keys: []string{"k"}})
	ask := func(o Options, name string) (model.Prepared, llmsim.Request) {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		o.APIKey, o.BaseURL, o.HTTPClient = "k", url, &http.Client{Transport: transport}
		p := New(o)
		prep, err := p.Prepare(model.Request{
			Model: name, Settings: chat.Settings{ThinkingBudget: 10_000}, Head: &model.Head{Tools: []model.ToolSpec{{Name: "bash"}}},
			Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hi"})},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range p.Stream(t.Context(), prep) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		all := sim.Requests()
		return prep, all[len(all)-1]
	}
	for _, name := range []string{"gpt-5.6", "gpt-6-sol", "gpt-5.4", "gpt-5", "o3"} {
		prep, got := ask(Options{}, name)
		if got.API != llmsim.Responses || !strings.Contains(string(got.Body), `"reasoning":{"effort":"medium"`) || len(prep.Dropped) != 0 {
			t.Errorf("%s: %s, %s, dropped %v", name, got.API, got.Body, prep.Dropped)
		}
	}
	if prep, got := ask(Options{API: Chat}, "gpt-5.6"); got.API != llmsim.OpenAI || len(prep.Dropped) != 1 || !strings.Contains(prep.Dropped[0], "thinkingBudget: ") {
		t.Errorf("through Chat Completions: %s, dropped %v", got.API, prep.Dropped)
	}
	if prep, got := ask(Options{}, "gpt-4o"); got.API != llmsim.OpenAI || len(prep.Dropped) != 1 {
		t.Errorf("one that does not reason: %s, dropped %v", got.API, prep.Dropped)
	}
}

// A gateway that only knows Chat Completions is asked so from the second attempt on.
func TestAServerWithoutResponses(t *testing.T) {
	t.Parallel()
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if paths = append(paths, r.URL.Path); strings.HasSuffix(r.URL.Path, "/responses") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	p := New(Options{APIKey: "k", BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}})
	for attempt := range 2 {
		prep, err := p.Prepare(model.Request{Model: "gpt-5", Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hi"})}})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range p.Stream(t.Context(), prep) {
			var failed *model.Error
			if errors.As(err, &failed) != (attempt == 0) || attempt == 0 && !failed.Retryable() {
				t.Errorf("attempt %d: %v", attempt, err)
			}
		}
	}
	if got := strings.Join(paths, " "); got != "/v1/responses /v1/chat/completions" {
		t.Errorf("asked %s", got)
	}
}

func BenchmarkPrepare20(b *testing.B)           { modeltest.BenchmarkPrepare(b, chatMaker, 20) }
func BenchmarkPrepare400(b *testing.B)          { modeltest.BenchmarkPrepare(b, chatMaker, 400) }
func BenchmarkPrepareResponses400(b *testing.B) { modeltest.BenchmarkPrepare(b, responsesMaker, 400) }
func BenchmarkPrepareRouter400(b *testing.B)    { modeltest.BenchmarkPrepare(b, routerMaker, 400) }
