package ollama

import (
	"net/http"
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
	Name: "ollama", API: llmsim.Ollama, Model: "llama3.2:3b",
	Prefill: true, WholeCalls: true, NoCacheReads: true, NoRefusals: true, PlainErrors: true,
	New: func(c modeltest.Config) modeltest.Provider {
		return New(Options{Host: c.BaseURL, APIKey: c.Key, HTTPClient: c.Client, IdleTimeout: c.Idle, FirstByteTimeout: c.FirstByte})
	},
}

func TestSuite(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, maker)
}

func TestHost(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                            "http://127.0.0.1:11434",
		" \"\" ":                      "http://127.0.0.1:11434",
		"box":                         "http://box:11434",
		"box:8080":                    "http://box:8080",
		":8080":                       "http://127.0.0.1:8080",
		"0.0.0.0":                     "http://127.0.0.1:11434",
		"0.0.0.0:8080":                "http://127.0.0.1:8080",
		"[::]:8080":                   "http://127.0.0.1:8080",
		"::1":                         "http://[::1]:11434",
		"[::1]":                       "http://[::1]:11434",
		"[::1]:8080":                  "http://[::1]:8080",
		"192.168.1.7":                 "http://192.168.1.7:11434",
		"http://box":                  "http://box:80",
		"http://box:11434/":           "http://box:11434",
		"https://box":                 "https://box:443",
		"https://box/ollama/":         "https://box:443/ollama",
		"box/ollama":                  "http://box:11434/ollama",
		"ollama.com":                  "https://ollama.com:443",
		"box:70000":                   "http://box:11434",
		"box:port":                    "http://box:11434",
		"box:99999999999999999999":    "http://box:11434",
		"' http://127.0.0.1:11434/ '": "http://127.0.0.1:11434",
		"://box":                      "http://box:11434",
	} {
		if got := Host(in); got != want {
			t.Errorf("Host(%q) = %q, want %q", in, got, want)
		}
	}
}

// fresh is a provider with a simulator of its own.
func fresh(t *testing.T, opts llmsim.Options) (*llmsim.Server, *Provider) {
	t.Helper()
	sim, url := llmsim.Launch(t, opts)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return sim, New(Options{Host: url, HTTPClient: &http.Client{Transport: transport}})
}

// ask sends a request and gives its end.
func ask(t *testing.T, p *Provider, r model.Request) (*model.Done, error) {
	t.Helper()
	prep, err := p.Prepare(r)
	if err != nil {
		t.Fatal(err)
	}
	for c, err := range p.Stream(t.Context(), prep) {
		if err != nil {
			return nil, err
		}
		if d, ok := c.(model.Done); ok {
			return &d, nil
		}
	}
	t.Fatal("the stream did not end")
	return nil, nil
}

func hello(t *testing.T, name string) model.Request {
	return model.Request{Model: name, Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hello"})}}
}

func TestAModelThatIsNotThereCanBePulled(t *testing.T) {
	t.Parallel()
	_, p := fresh(t, llmsim.Options{Models: []string{"llama3.2:latest"}})
	_, err := ask(t, p, hello(t, "qwen3:8b"))
	if model.KindOf(err) != model.BadRequest || !strings.Contains(err.Error(), "ollama pull qwen3:8b") {
		t.Errorf("error %v", err)
	}
	if _, err := ask(t, p, hello(t, "llama3.2")); err != nil {
		t.Errorf("a name without a tag: %v", err)
	}
}

func TestNoKeyIsSent(t *testing.T) {
	t.Parallel()
	sim, p := fresh(t, llmsim.Options{})
	if _, err := ask(t, p, hello(t, "llama3.2:3b")); err != nil {
		t.Fatal(err)
	}
	if got := sim.Requests()[0].Header.Get("Authorization"); got != "" {
		t.Errorf("sent %q", got)
	}
}

func TestNobodyThereSaysWhatToDo(t *testing.T) {
	t.Parallel()
	p := New(Options{Host: "127.0.0.1:1"})
	_, err := ask(t, p, hello(t, "llama3.2:3b"))
	if model.KindOf(err) != model.Network || !strings.Contains(err.Error(), "ollama serve") || !strings.Contains(err.Error(), "127.0.0.1:1?") {
		t.Errorf("error %v", err)
	}
	if _, err := p.Models(t.Context()); !strings.Contains(err.Error(), "ollama serve") {
		t.Errorf("error %v", err)
	}
}

func TestCallsWithoutIDsGetTheirOwn(t *testing.T) {
	t.Parallel()
	sim, p := fresh(t, llmsim.Options{})
	two := llmsim.Calls(llmsim.Call{Name: "read", Args: `{"path":"a"}`}, llmsim.Call{Name: "read", Args: `{"path":"b"}`})
	sim.Push(two, two, two)
	r := hello(t, "llama3.2:3b")
	first, err := ask(t, p, r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ask(t, p, r)
	if err != nil {
		t.Fatal(err)
	}
	calls := first.Blocks.Calls()
	r.Messages = append(r.Messages, modeltest.Message(t, model.Assistant, first.Blocks...),
		modeltest.Message(t, model.User, chat.ToolResult{Call: calls[0].ID, Name: "read", Blocks: chat.TextBlocks("1")}),
		modeltest.Message(t, model.User, chat.ToolResult{Call: calls[1].ID, Name: "read", Blocks: chat.TextBlocks("2")}))
	next, err := ask(t, p, r)
	if err != nil {
		t.Fatal(err)
	}
	if calls[0].ID == calls[1].ID || calls[0].ID != again.Blocks.Calls()[0].ID || calls[0].ID == next.Blocks.Calls()[0].ID {
		t.Errorf("ids %v, again %v, then %v", calls, again.Blocks.Calls(), next.Blocks.Calls())
	}
}

func TestTheWindowIsAlwaysSaid(t *testing.T) {
	t.Parallel()
	for window, want := range map[int]string{0: `"num_ctx":32768`, 9000: `"num_ctx":9000`} {
		r := hello(t, "llama3.2:3b")
		r.Settings.ContextWindow = window
		prep, err := New(Options{}).Prepare(r)
		if err != nil || !strings.Contains(string(prep.Body), want) {
			t.Errorf("%s, %v", prep.Body, err)
		}
	}
}

func BenchmarkPrepare20(b *testing.B)  { modeltest.BenchmarkPrepare(b, maker, 20) }
func BenchmarkPrepare400(b *testing.B) { modeltest.BenchmarkPrepare(b, maker, 400) }
