package llmsim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client talks to a simulator as a provider's client would.
type client struct {
	t    *testing.T
	http *http.Client
	url  string
}

func start(t *testing.T, opts Options) (*Server, *client) {
	t.Helper()
	s, url := Launch(t, opts)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return s, &client{t: t, http: &http.Client{Transport: transport}, url: url}
}

func (c *client) post(ctx context.Context, path, body string, header ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("x-api-key", "test-key")
	r.Header.Set("anthropic-version", "2023-06-01")
	r.Header.Set("Authorization", "Bearer test-key")
	for i := 0; i+1 < len(header); i += 2 {
		if r.Header.Del(header[i]); header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	res, err := c.http.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// ask posts and reads everything.
func (c *client) ask(path, body string, header ...string) (int, string) {
	c.t.Helper()
	res := c.post(context.Background(), path, body, header...)
	data, err := io.ReadAll(res.Body)
	if err != nil {
		data = append(data, "READ ERROR: "+err.Error()...)
	}
	return res.StatusCode, string(data)
}

const (
	messages = "/v1/messages"
	chats    = "/v1/chat/completions"
	hello    = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`
	helloO   = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`
)

func TestEcho(t *testing.T) {
	t.Parallel()
	_, c := start(t, Options{})
	if code, body := c.ask(messages, hello); code != 200 || !strings.Contains(body, `"text":"echo: hi"`) || !strings.Contains(body, `"end_turn"`) {
		t.Errorf("anthropic: %d %s", code, body)
	}
	if code, body := c.ask(chats, helloO); code != 200 || !strings.Contains(body, `"content":"echo: hi"`) {
		t.Errorf("openai: %d %s", code, body)
	}
	if code, body := c.ask("/v1/messages/count_tokens", hello); code != 200 || !strings.Contains(body, `"input_tokens":`) {
		t.Errorf("count: %d %s", code, body)
	}
}

func TestAnthropicIsStrict(t *testing.T) {
	t.Parallel()
	user := `{"role":"user","content":"hi"}`
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"bash","input":{}}]}`
	result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}`
	body := func(model, extra string, msgs ...string) string {
		return `{"model":"` + model + `","max_tokens":100` + extra + `,"messages":[` + strings.Join(msgs, ",") + `]}`
	}
	const old = "claude-sonnet-4-5"
	cases := []struct{ name, body, want string }{
		{"not json", `{"model":`, "not valid JSON"},
		{"no model", `{"max_tokens":1,"messages":[` + user + `]}`, "model: Field required"},
		{"no max_tokens", `{"model":"m","messages":[` + user + `]}`, "max_tokens: Field required"},
		{"too many tokens", `{"model":"claude-3-haiku","max_tokens":5000,"messages":[` + user + `]}`, "5000 > 4096"},
		{"unknown field", body(old, `,"colour":"red"`, user), "colour: Extra inputs are not permitted"},
		{"no messages", body(old, ""), "at least one message"},
		{"assistant first", body(old, "", `{"role":"assistant","content":"x"}`), "first message must use"},
		{"bad role", body(old, "", user, `{"role":"system","content":"x"}`), "messages.1.role"},
		{"empty text", body(old, "", `{"role":"user","content":[{"type":"text","text":""}]}`), "must be non-empty"},
		{"blank text", body(old, "", `{"role":"user","content":" "}`), "non-whitespace"},
		{"empty content", body(old, "", `{"role":"user","content":[]}`), "non-empty content"},
		{"dangling call", body(old, "", user, use, user), "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1"},
		{"dangling call at the end", body(old, "", user, use), "immediately after: t1"},
		{"orphan result", body(old, "", user, result), "unexpected `tool_use_id`"},
		{"late result", body(old, "", user, use, result, `{"role":"assistant","content":"x"}`, result), "unexpected `tool_use_id`"},
		{"input no object", body(old, "", user, strings.Replace(use, "{}", `"x"`, 1), result), "valid dictionary"},
		{"five marks", body(old, "", `{"role":"user","content":[`+strings.Repeat(`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},`, 4)+`{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`), "maximum of 4"},
		{"prefill refused", body("claude-opus-4-6", "", user, `{"role":"assistant","content":"x"}`), "does not support assistant message prefill"},
		{"prefill with a space", body(old, "", user, `{"role":"assistant","content":"x "}`), "trailing whitespace"},
		{"budget too small", body(old, `,"thinking":{"type":"enabled","budget_tokens":10}`, user), "1024"},
		{"budget too large", body(old, `,"thinking":{"type":"enabled","budget_tokens":2000}`, user), "must be greater than"},
		{"budget on an adaptive model", body("claude-opus-5", `,"thinking":{"type":"enabled","budget_tokens":2000}`, user), "not supported for this model"},
		{"temperature on an adaptive model", body("claude-opus-5", `,"temperature":0.5`, user), "deprecated for this model"},
		{"unsigned thinking", body(old, "", user, `{"role":"assistant","content":[{"type":"thinking","thinking":"x"}]}`, user), "signature: Field required"},
		{"thinking at the end", body(old, "", user, `{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}]}`, user), "cannot be `thinking`"},
		{"thinking in a loop begun without", `{"model":"` + old + `","max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[` + user + "," + use + "," + result + `]}`, "Expected `thinking`"},
		{"bad image", body(old, "", `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"!"}}]}`), "valid base64"},
		{"tool without schema", body(old, `,"tools":[{"name":"x"}]`, user), "input_schema"},
		{"blank stop", body(old, `,"stop_sequences":[" "]`, user), "non-whitespace"},
		{"empty system", body(old, `,"system":[{"type":"text","text":""}]`, user), "non-empty"},
	}
	s, c := start(t, Options{})
	for _, tc := range cases {
		code, got := c.ask(messages, tc.body)
		if code != 400 || !strings.Contains(got, `"type":"error"`) || !strings.Contains(got, strings.ReplaceAll(tc.want, `"`, `\"`)) {
			t.Errorf("%s: %d %s, want %q", tc.name, code, got, tc.want)
		}
	}
	for want, request := range map[string]string{"context_management": body(old, `,"context_management":{"edits":[]}`, user), "messages.1.role": body(old, "", user, `{"role":"system","content":"x"}`)} {
		if code, got := c.ask(messages, request); code != 400 || !strings.Contains(got, want) {
			t.Errorf("without its beta: %d %s", code, got)
		}
		if code, got := c.ask(messages, request, "anthropic-beta", "context-management-2025-06-27,mid-conversation-system-2026-04-07"); code != 200 {
			t.Errorf("with its beta: %d %s", code, got)
		}
	}
	good := body(old, `,"system":"be kind","tools":[{"name":"bash","description":"d","input_schema":{"type":"object"}}]`,
		user, use, result, user, `{"role":"assistant","content":"and"}`)
	if code, got := c.ask(messages, good); code != 200 {
		t.Errorf("a good request: %d %s", code, got)
	}
	all := s.Requests()
	last := all[len(all)-1]
	if last.System != "be kind" || len(last.Messages) != 5 || last.Messages[1].Calls[0].Name != "bash" || last.Messages[2].Results[0].Text != "ok" || last.State != Answered {
		t.Errorf("recorded %+v", last)
	}
	if all[0].State != Rejected {
		t.Errorf("the first is %s", all[0].State)
	}
}

func TestOpenAIIsStrict(t *testing.T) {
	t.Parallel()
	user := `{"role":"user","content":"hi"}`
	use := `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"c1","content":"ok"}`
	body := func(model, extra string, msgs ...string) string {
		return `{"model":"` + model + `"` + extra + `,"messages":[` + strings.Join(msgs, ",") + `]}`
	}
	tools := `,"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}]`
	cases := []struct{ name, body, want string }{
		{"no model", `{"messages":[` + user + `]}`, "model parameter"},
		{"unknown field", body("gpt-4o", `,"colour":1`, user), "Unrecognized request argument supplied: colour"},
		{"no messages", body("gpt-4o", ""), "empty array"},
		{"bad role", body("gpt-4o", "", `{"role":"boss","content":"x"}`), "Invalid value: 'boss'"},
		{"null content", body("gpt-4o", "", `{"role":"user","content":null}`), "got null"},
		{"empty assistant", body("gpt-4o", "", user, `{"role":"assistant"}`), "got null"},
		{"dangling call", body("gpt-4o", "", user, use, user), "did not have response messages: c1"},
		{"dangling call at the end", body("gpt-4o", "", user, use), "did not have response messages: c1"},
		{"orphan tool", body("gpt-4o", "", user, result), "must be a response to a preceeding message"},
		{"image between results", body("gpt-4o", "", user, strings.Replace(use, `]}`, `,{"id":"c2","type":"function","function":{"name":"b","arguments":""}}]}`, 1), result, user), "c2"},
		{"both limits", body("gpt-4o", `,"max_tokens":1,"max_completion_tokens":1`, user), "at the same time"},
		{"old limit", body("o3", `,"max_tokens":1`, user), "Use 'max_completion_tokens' instead"},
		{"temperature", body("o3", `,"temperature":0.5`, user), "Only the default"},
		{"stream options", body("gpt-4o", `,"stream_options":{"include_usage":true}`, user), "only allowed when 'stream'"},
		{"reasoning with tools", body("gpt-6-sol", tools, user), "set reasoning_effort to 'none'"},
		{"five stops", body("gpt-4o", `,"stop":["a","b","c","d","e"]`, user), "maximum length 4"},
		{"image in a tool message", body("gpt-4o", "", user, use, `{"role":"tool","tool_call_id":"c1","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`), "does not support it"},
	}
	_, c := start(t, Options{})
	for _, tc := range cases {
		code, got := c.ask(chats, tc.body)
		if code != 400 || !strings.Contains(got, `"error":{`) || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %d %s, want %q", tc.name, code, got, tc.want)
		}
	}
	if code, got := c.ask(chats, body("gpt-6-sol", tools+`,"reasoning_effort":"none"`, `{"role":"system","content":"s"}`, user, use, result)); code != 200 {
		t.Errorf("a good request: %d %s", code, got)
	}
}

func TestKeysAndModels(t *testing.T) {
	t.Parallel()
	_, c := start(t, Options{Keys: []string{"test-key"}, Models: []string{"claude-sonnet-4-5", "gpt-4o"}})
	for _, bad := range []string{"", "other"} {
		if code, got := c.ask(messages, hello, "x-api-key", bad, "Authorization", ""); code != 401 || !strings.Contains(got, "authentication_error") {
			t.Errorf("anthropic key %q: %d %s", bad, code, got)
		}
	}
	if code, _ := c.ask(chats, helloO, "Authorization", ""); code != 401 {
		t.Errorf("openai without key: %d", code)
	}
	if code, got := c.ask(chats, strings.Replace(helloO, "gpt-4o", "gpt-9", 1)); code != 404 || !strings.Contains(got, "model_not_found") {
		t.Errorf("unknown model: %d %s", code, got)
	}
	r, _ := http.NewRequest("GET", c.url+"/v1/models", nil)
	r.Header.Set("Authorization", "Bearer test-key")
	res, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil || len(list.Data) != 2 {
		t.Errorf("models: %+v, %v", list, err)
	}
}

func TestStreamsLookReal(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{})
	turn := Turn{
		Thinking: "hm", Text: "Grüße 👋 from afar", Chunk: 5, PacketSize: 3,
		Calls: []Call{{Name: "a", Args: map[string]int{"x": 1}, Fragments: 3}, {Name: "b"}}, Interleave: true,
	}
	s.Push(turn, turn)
	stream := strings.Replace(hello, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)
	_, body := c.ask(messages, stream)
	want := []string{"event: message_start", `"thinking_delta"`, `"signature_delta"`, `"text_delta"`, `"input_json_delta"`, `"stop_reason":"tool_use"`, "event: message_stop"}
	at := 0
	for _, w := range want {
		i := strings.Index(body[at:], w)
		if i < 0 {
			t.Fatalf("no %s behind byte %d of\n%s", w, at, body)
		}
		at += i
	}
	stream = strings.Replace(helloO, `"messages"`, `"stream":true,"stream_options":{"include_usage":true},"messages"`, 1)
	_, body = c.ask(chats, stream)
	if !strings.HasSuffix(body, "data: [DONE]\n\n") || !strings.Contains(body, `"choices":[],`) || !strings.Contains(body, `"finish_reason":"tool_calls"`) {
		t.Errorf("openai stream:\n%s", body)
	}
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && data != "[DONE]" && !json.Valid([]byte(data)) {
			t.Errorf("not JSON: %s", data)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{})
	stream := strings.Replace(hello, `"max_tokens"`, `"stream":true,"max_tokens"`, 1)
	s.Push(
		Turn{Fault: &Fault{Kind: Status, Code: 429, RetryAfter: "7", RetryAfterMS: 250}},
		Fail(529),
		Text("hello there, this is cut").With(Cut, 3),
		Text("hello").With(EOF, 3),
		Text("hello").With(Malformed, 3),
		Text("hello").With(StreamError, 2),
	)
	res := c.post(context.Background(), messages, stream)
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "7" || res.Header.Get("Retry-After-Ms") != "250" {
		t.Errorf("429: %d %v", res.StatusCode, res.Header)
	}
	if code, got := c.ask(messages, stream); code != 529 || !strings.Contains(got, "overloaded_error") {
		t.Errorf("529: %d %s", code, got)
	}
	if _, got := c.ask(messages, stream); !strings.Contains(got, "READ ERROR") || strings.Contains(got, "message_stop") {
		t.Errorf("cut: %s", got)
	}
	if _, got := c.ask(messages, stream); strings.Contains(got, "READ ERROR") || strings.Contains(got, "message_stop") {
		t.Errorf("eof: %s", got)
	}
	if _, got := c.ask(messages, stream); !strings.Contains(got, string(broken.data)) || !strings.Contains(got, "message_stop") {
		t.Errorf("malformed: %s", got)
	}
	if _, got := c.ask(messages, stream); !strings.Contains(got, "event: error") || strings.Contains(got, "message_stop") {
		t.Errorf("error: %s", got)
	}
	if s.Waiting() != 0 {
		t.Errorf("%d turns left", s.Waiting())
	}
}

func TestStallEndsWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{})
	s.Push(Text("hello").With(Stall, 2))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	res := c.post(ctx, messages, strings.Replace(hello, `"max_tokens"`, `"stream":true,"max_tokens"`, 1))
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	if err != nil || line != "event: message_start\n" {
		t.Fatalf("first line %q, %v", line, err)
	}
	cancel()
	wait, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := s.Wait(wait, func(rs []Request) bool { return len(rs) == 1 && rs[0].State == Gone }); err != nil {
		t.Fatal(err)
	}
}

func TestStopEndsAStall(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	url, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	s.Push(Text("x").With(Stall, 1))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := &client{t: t, http: &http.Client{Transport: transport}, url: url}
	c.post(context.Background(), messages, strings.Replace(hello, `"max_tokens"`, `"stream":true,"max_tokens"`, 1))
	stop()
	stop()
}

func TestPrefixCache(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{})
	big := strings.Repeat("words ", 400)
	usage := func(path, body string) (u struct {
		In, Read, Write int
	}) {
		t.Helper()
		_, got := c.ask(path, body)
		var a struct {
			Usage struct {
				Input   int `json:"input_tokens"`
				Read    int `json:"cache_read_input_tokens"`
				Write   int `json:"cache_creation_input_tokens"`
				Prompt  int `json:"prompt_tokens"`
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			} `json:"usage"`
		}
		if err := json.Unmarshal([]byte(got), &a); err != nil {
			t.Fatal(err)
		}
		u.In, u.Read, u.Write = a.Usage.Input, a.Usage.Read, a.Usage.Write
		if a.Usage.Prompt > 0 {
			u.In, u.Read = a.Usage.Prompt-a.Usage.Details.Cached, a.Usage.Details.Cached
		}
		return u
	}
	system := `"system":[{"type":"text","text":"` + big + `","cache_control":{"type":"ephemeral"}}],`
	first := `{"model":"claude-sonnet-4-5","max_tokens":9,` + system + `"messages":[{"role":"user","content":"hi"}]}`
	second := `{"model":"claude-sonnet-4-5","max_tokens":9,` + system + `"messages":[{"role":"user","content":[{"type":"text","text":"other","cache_control":{"type":"ephemeral"}}]}]}`
	if u := usage(messages, first); u.Read != 0 || u.Write < 600 || u.In < 1 {
		t.Errorf("first: %+v", u)
	}
	if u := usage(messages, second); u.Read < 600 || u.Write < 1 || u.In != 0 {
		t.Errorf("second: %+v", u)
	}
	if u := usage(messages, strings.Replace(first, "words", "WORDS", 1)); u.Read != 0 {
		t.Errorf("changed: %+v", u)
	}
	o := `{"model":"gpt-4o","messages":[{"role":"system","content":"` + big + `"},{"role":"user","content":"hi"}]}`
	if u := usage(chats, o); u.Read != 0 {
		t.Errorf("openai first: %+v", u)
	}
	if u := usage(chats, strings.Replace(o, "hi", "ho", 1)); u.Read < 600 || u.In < 1 {
		t.Errorf("openai second: %+v", u)
	}
	s.Push(Turn{Usage: &Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}})
	if u := usage(messages, first); u.In != 1 || u.Read != 3 || u.Write != 4 {
		t.Errorf("scripted: %+v", u)
	}
}

func TestBench(t *testing.T) {
	t.Parallel()
	_, c := start(t, Options{Bench: &Bench{Turns: 2, Command: "echo hi"}})
	for _, path := range []string{messages, chats} {
		for n, want := range []string{`echo hi`, `echo hi`, `done`} {
			body := `{"stream":true,"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"assistant"},`, n), ",") + `]}`
			if _, got := c.ask(path, body); !strings.Contains(got, want) {
				t.Errorf("%s turn %d: %s", path, n, got)
			}
		}
	}
}

func BenchmarkBench(b *testing.B) {
	s := New(Options{Bench: &Bench{Turns: 200}})
	body := []byte(`{"stream":true,"messages":[` + strings.Repeat(`{"role":"assistant","content":"`+strings.Repeat("x", 500)+`"},`, 100) + `{}]}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r, _ := http.NewRequest("POST", messages, bytes.NewReader(body))
		s.Handler().ServeHTTP(discard{h: http.Header{}}, r)
	}
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
