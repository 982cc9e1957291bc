package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/modeltest"
	"chorus/internal/sim/llmsim"
)

// canned answers every request with the same body.
type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(c)),
	}, nil
}

// play streams a canned body and gives its end.
func play(t testing.TB, body []byte) (done *model.Done, failed *model.Error) {
	t.Helper()
	p := New(Options{APIKey: "test-key", HTTPClient: &http.Client{Transport: canned(body)}})
	ends := 0
	for c, err := range p.Stream(context.Background(), model.Prepared{Model: "m", Body: []byte(`{}`)}) {
		if err != nil {
			ends++
			if !errors.As(err, &failed) {
				t.Fatalf("%T is not an *Error", err)
			}
			continue
		}
		if d, ok := c.(model.Done); ok {
			ends++
			done = &d
		}
	}
	if ends != 1 {
		t.Fatalf("the stream ended %d times", ends)
	}
	return done, failed
}

func frames(data ...string) []byte {
	return []byte("data: " + strings.Join(data, "\n\ndata: ") + "\n\n")
}

// delta is a chunk with one delta.
func delta(d string) string { return `{"id":"x","choices":[{"index":0,"delta":` + d + `}]}` }

const (
	fin  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	over = "[DONE]"
)

func TestOddStreams(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		body   []byte
		blocks string // "": it fails
		stop   chat.Stop
	}{
		{"nothing", nil, "", ""},
		{"not a stream", []byte("{\"choices\":[]}"), "", ""},
		{"only [DONE]", frames(over), `[]`, chat.StopEnd},
		{"no [DONE]", frames(delta(`{"content":"hi"}`), fin), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"no finish and no [DONE]", frames(delta(`{"content":"hi"}`)), "", ""},
		{"comments", append([]byte(": PROCESSING\n\n"), frames(delta(`{"content":"hi"}`), over)...), `[{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"content that is no string", frames(delta(`{"content":null}`), delta(`{"content":["x"]}`), over), `[]`, chat.StopEnd},
		{"other choices", frames(`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, over), `[]`, chat.StopEnd},
		{"calls finished with stop", frames(delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":"{}"}}]}`), fin, over), `[{"type":"tool_use","id":"c","name":"n","args":{}}]`, chat.StopTools},
		{"arguments as an object", frames(delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":{"a":1}}}]}`), over), `[{"type":"tool_use","id":"c","name":"n","args":{"a":1}}]`, chat.StopTools},
		{"no index", frames(delta(`{"tool_calls":[{"id":"c","function":{"name":"n","arguments":"{\"a\":"}}]}`), delta(`{"tool_calls":[{"function":{"arguments":"1}"}}]}`), delta(`{"tool_calls":[{"id":"d","function":{"name":"m","arguments":"{}"}}]}`), over), `[{"type":"tool_use","id":"c","name":"n","args":{"a":1}},{"type":"tool_use","id":"d","name":"m","args":{}}]`, chat.StopTools},
		{"two calls at one index", frames(delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":"{}"}}]}`), delta(`{"tool_calls":[{"index":0,"id":"d","function":{"name":"m","arguments":"{}"}}]}`), over), `[{"type":"tool_use","id":"c","name":"n","args":{}},{"type":"tool_use","id":"d","name":"m","args":{}}]`, chat.StopTools},
		{"no id", frames(delta(`{"tool_calls":[{"index":0,"function":{"name":"n","arguments":"{}"}}]}`), over), `[{"type":"tool_use","id":"call_x_1","name":"n","args":{}}]`, chat.StopTools},
		{"refusal", frames(delta(`{"refusal":"I will not."}`), fin, over), `[{"type":"text","text":"I will not."}]`, chat.StopRefused},
		{"reasoning by another name", frames(delta(`{"reasoning":"hm"}`), delta(`{"content":"hi"}`), over), `[{"type":"thinking","text":"hm"},{"type":"text","text":"hi"}]`, chat.StopEnd},
		{"stop sequence of vLLM", frames(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":"###"}]}`, over), `[]`, chat.StopSeq},
		{"an error as a sentence", frames(`{"error":"overheated"}`), "", ""},
		{"wrong types", frames(`{"choices":{}}`), "", ""},
	}
	for _, c := range cases {
		done, failed := play(t, c.body)
		if c.blocks == "" {
			if failed == nil || !failed.Retryable() {
				t.Errorf("%s: %+v", c.name, done)
			}
			continue
		}
		if failed != nil {
			t.Errorf("%s: %v", c.name, failed)
			continue
		}
		if done.Blocks == nil {
			done.Blocks = chat.Blocks{}
		}
		if got, _ := done.Blocks.MarshalJSON(); string(got) != c.blocks || done.Stop != c.stop {
			t.Errorf("%s: %s, stop %s", c.name, got, done.Stop)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	cases := map[string]chat.Usage{
		`{"prompt_tokens":100,"completion_tokens":5}`:                                                                                  {Input: 100, Output: 5},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60}}`:                                     {Input: 40, Output: 5, CacheRead: 60},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}`:             {Input: 10, Output: 5, CacheRead: 60, CacheWrite: 30},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":64,"prompt_tokens_details":null}`:                        {Input: 36, Output: 5, CacheRead: 64},
		`{"prompt_tokens":10,"completion_tokens":-1,"prompt_tokens_details":{"cached_tokens":60}}`:                                     {CacheRead: 60},
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60},"prompt_cache_hit_tokens":60,"x":[]}`: {Input: 40, Output: 5, CacheRead: 60},
	}
	for usage, want := range cases {
		done, failed := play(t, frames(fin, `{"choices":[],"usage":`+usage+`}`, over))
		if failed != nil || done.Usage != want {
			t.Errorf("%s: %+v, %v", usage, done, failed)
		}
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", " ": "", "http://x": "http://x/v1/", "http://x/": "http://x/v1/", "http://x/v1": "http://x/v1/", "http://x/v1//": "http://x/v1/",
		"http://x/api/chat/completions": "http://x/api/", "http://x/v1/chat/completions/": "http://x/v1/", "http://x/openai": "http://x/openai/v1/",
	} {
		if got := baseURL(in); got != want {
			t.Errorf("baseURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNoKeyIsNeededElsewhere(t *testing.T) {
	t.Parallel()
	sim, url := llmsim.Launch(t, llmsim.Options{NoKey: true})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := New(Options{BaseURL: url + "/v1/chat/completions", HTTPClient: &http.Client{Transport: transport}, Name: "ollama"})
	prep, err := p.Prepare(model.Request{Model: "llama3.2:3b", Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hi"})}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range p.Stream(t.Context(), prep) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := sim.Requests()[0].Header.Get("Authorization"); got != "" {
		t.Errorf("sent %q", got)
	}
	if names, err := p.Models(t.Context()); err != nil || len(names) == 0 {
		t.Errorf("models %v, %v", names, err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(""))
	f.Add(frames(over))
	f.Add(frames(delta(`{"role":"assistant","content":"hällo"}`), fin, `{"choices":[],"usage":{"prompt_tokens":1}}`, over))
	f.Add(frames(delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":"{\"a\":"}}]}`), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`), fin))
	f.Add(frames(delta(`{"reasoning_content":"hm"}`), delta(`{"refusal":"no"}`), over))
	f.Add(frames(`{"error":{"message":"m","code":"rate_limit_exceeded"}}`))
	f.Add([]byte("data: {\"choices\":[\n"))
	f.Add([]byte(":c\r\n\r\ndata:[DONE]\r\n\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		done, _ := play(t, body)
		if done == nil {
			return
		}
		// Whatever came can be kept and sent back.
		if _, err := done.Blocks.MarshalJSON(); err != nil {
			t.Fatalf("the answer cannot be kept: %v", err)
		}
		if m, err := model.NewMessage(model.Assistant, chat.Participant{}, done.Blocks); err != nil {
			t.Fatal(err)
		} else if _, err := (encoder{}).message(m); err != nil {
			t.Fatalf("the answer cannot be sent back: %v", err)
		}
	})
}
