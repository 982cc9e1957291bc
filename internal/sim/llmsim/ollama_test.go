package llmsim

import (
	"strings"
	"testing"
)

const (
	ollamaChat = "/api/chat"
	helloL     = `{"model":"llama3.2:3b","messages":[{"role":"user","content":"hi"}]}`
)

func TestOllamaEcho(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{})
	code, body := c.ask(ollamaChat, helloL)
	lines := strings.Split(strings.TrimSpace(body), "\n")
	if code != 200 || len(lines) != 2 || !strings.Contains(lines[0], `"content":"echo: hi"`) || !strings.Contains(lines[1], `"done_reason":"stop"`) {
		t.Errorf("%d %s", code, body)
	}
	whole := strings.Replace(helloL, "{", `{"stream":false,`, 1)
	if code, body := c.ask(ollamaChat, whole); code != 200 || strings.Contains(body, "\n") || !strings.Contains(body, `"done":true`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := c.ask(ollamaChat, `{"model":"m"}`); code != 200 || !strings.Contains(body, `"done_reason":"load"`) {
		t.Errorf("%d %s", code, body)
	}
	if got := s.Requests()[0]; got.API != Ollama || got.LastUser() != "hi" || !got.Stream {
		t.Errorf("recorded %+v", got)
	}
}

func TestOllamaIsAsStrictAsItIs(t *testing.T) {
	t.Parallel()
	body := func(extra, message string) string { return `{"model":"m"` + extra + `,"messages":[` + message + `]}` }
	user := `{"role":"user","content":"hi"}`
	cases := []struct {
		name, body string
		code       int
		want       string
	}{
		{"empty", "", 400, "missing request body"},
		{"not json", `{"model":`, 400, "unexpected end of JSON input"},
		{"no model", `{"messages":[]}`, 400, "model is required"},
		{"bad role", body("", `{"role":"model","content":"x"}`), 400, "invalid role: model"},
		{"content no string", body("", `{"role":"user","content":[{"type":"text"}]}`), 400, "cannot unmarshal array"},
		{"image", body("", `{"role":"user","content":"x","images":["?"]}`), 400, "illegal base64 data"},
		{"arguments as a string", body("", `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"x","arguments":"{}"}}]}`), 400, "function.arguments of type"},
		{"num_ctx", body(`,"options":{"num_ctx":1.5}`, user), 400, `option \"num_ctx\" must be of type integer`},
		{"temperature", body(`,"options":{"temperature":"hot"}`, user), 400, `option \"temperature\" must be of type float32`},
		{"stop", body(`,"options":{"stop":"x"}`, user), 400, `option \"stop\" must be of type array`},
		{"stop of numbers", body(`,"options":{"stop":[1]}`, user), 400, "array of strings"},
		{"think", body(`,"think":"hard"`, user), 400, "invalid think value"},
		{"think of a number", body(`,"think":1`, user), 400, "think must be a boolean or string"},
		{"tool", body(`,"tools":[{"type":"function","function":{"name":1}}]`, user), 400, "cannot unmarshal number"},
		{"a field of tomorrow", body(`,"colour":1,"options":{"colour":1},"think":"low"`, user), 200, "echo: hi"},
	}
	_, c := start(t, Options{})
	for _, tc := range cases {
		if code, got := c.ask(ollamaChat, tc.body); code != tc.code || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %d %s", tc.name, code, got)
		}
	}
}

func TestOllamaKeysAndModels(t *testing.T) {
	t.Parallel()
	_, c := start(t, Options{Keys: []string{"right"}, Models: []string{"a:latest"}, Window: 100})
	hello := strings.Replace(helloL, "llama3.2:3b", "a", 1)
	for _, tc := range []struct {
		key, body string
		code      int
		want      string
	}{
		{"", hello, 200, "echo"},
		{"Bearer right", hello, 200, "echo"},
		{"Bearer wrong", hello, 401, `{"error":"unauthorized"}`},
		{"", helloL, 404, `{"error":"model 'llama3.2:3b' not found"}`},
		{"", strings.Replace(hello, "hi", strings.Repeat("long ", 200), 1), 400, "exceeds the context length"},
	} {
		if code, body := c.ask(ollamaChat, tc.body, "Authorization", tc.key); code != tc.code || !strings.Contains(body, tc.want) {
			t.Errorf("%+v: %d %s", tc, code, body)
		}
	}
	var tags struct{ Models []struct{ Name string } }
	get(t, c, "/api/tags", &tags)
	if len(tags.Models) != 1 || tags.Models[0].Name != "a:latest" {
		t.Errorf("tags %+v", tags)
	}
}

func TestOllamaFaults(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{})
	s.Push(
		Fail(503),
		Turn{Text: "abc", Chunk: 1, Fault: &Fault{Kind: StreamError, After: 1}},
		Turn{Text: "abc", Chunk: 1}.With(Malformed, 1),
		Turn{Thinking: "hm", Calls: []Call{{Name: "x"}}},
	)
	for _, want := range []string{
		"maximum pending requests exceeded", "\n{\"error\":\"an error was encountered", "\n{\"type\":\"content_block_delta\"", `"tool_calls":[{"function":{"arguments":{},"index":0,"name":"x"}}]`,
	} {
		if _, body := c.ask(ollamaChat, helloL); !strings.Contains(body, want) {
			t.Errorf("want %s in %s", want, body)
		}
	}
}
