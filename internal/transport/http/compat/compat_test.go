package compat_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/store/storetest"
	"chorus/internal/transport/http/compat"
	"chorus/internal/transport/http/guard"
)

func TestMain(m *testing.M) {
	isolate.InsideSandbox(os.Args[1:]) // a sandbox may start us as its process 1
	goleak.VerifyTestMain(m)
}

// fixture is a server whose agent "helper" plays scripts, behind the real guard.
type fixture struct {
	*testing.T
	app   *app.App
	owner operation.Caller
	url   string
	token string // has the scope chat
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := storetest.FreshHome(t)
	env := map[string]string{"USER": "ada", "HOME": dir}
	a, err := app.Open(t.Context(), app.Options{Env: func(key string) string { return env[key] }, Environ: []string{"PATH=/usr/bin:/bin"},
		Home: dir, Version: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	key, err := a.Service.Tokens().SessionKey()
	if err != nil {
		t.Fatal(err)
	}
	at, err := guard.New(guard.Options{Tokens: a.Service.Tokens(), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(compat.TranslateProblems(at.Wrap(compat.New(compat.Options{Executor: a.Service.Operations(), Memory: a.DB, Heartbeat: 50 * time.Millisecond}))))
	t.Cleanup(func() {
		server.Close()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	h := &fixture{T: t, app: a, owner: a.Service.LocalCaller(), url: server.URL}
	if _, err := operations.CreateAgent.Call(t.Context(), a.Service.Operations(), h.owner, operations.NewAgent{Name: "helper", Model: "demo/script", Permissions: "standard"}); err != nil {
		t.Fatal(err)
	}
	h.token = h.newToken(operation.Chat)
	return h
}

func (h *fixture) newToken(scopes ...operation.Scope) string {
	h.Helper()
	made, err := h.app.Service.Tokens().CreateToken(h.Context(), h.owner, operations.NewToken{Name: string(scopes[0]), Scopes: scopes})
	if err != nil {
		h.Fatal(err)
	}
	return made.Text
}

func (h *fixture) request(ctx context.Context, token, path, body string, header ...string) *http.Response {
	h.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { res.Body.Close() })
	return res
}

type reply struct {
	ID, Object, Model string
	Choices           []struct {
		Message      struct{ Role, Content string }
		Delta        struct{ Role, Content string }
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	Error struct {
		Message, Type, Param, Code string
	}
}

func (h *fixture) ask(body string, header ...string) (reply, *http.Response) {
	h.Helper()
	res := h.request(h.Context(), h.token, "/v1/chat/completions", body, header...)
	var out reply
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		h.Fatal(err)
	}
	return out, res
}

// requestBody makes a request with messages of these roles and texts.
func requestBody(stream bool, said ...string) string {
	body := map[string]any{"model": "agent/helper", "stream": stream, "stream_options": map[string]bool{"include_usage": true}}
	var messages []map[string]string
	for i := 0; i+1 < len(said); i += 2 {
		messages = append(messages, map[string]string{"role": said[i], "content": said[i+1]})
	}
	body["messages"] = messages
	data, _ := json.Marshal(body)
	return string(data)
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	got, res := h.ask(requestBody(false, "user", "!say hello\n!call list_files {}\n!usage in=10 out=5\n!end\n!say done\n!usage in=20 out=7"))
	if res.StatusCode != http.StatusOK || len(got.Choices) != 1 || got.Object != "chat.completion" || got.Model != "agent/helper" {
		t.Fatalf("%s: %+v", res.Status, got)
	}
	if c := got.Choices[0]; c.Message.Content != "hello\n\ndone" || c.Message.Role != "assistant" || c.FinishReason != "stop" {
		t.Errorf("%+v", c)
	}
	if u := got.Usage; u == nil || u.Prompt != 30 || u.Completion != 12 || u.Total != 42 {
		t.Errorf("%+v", u)
	}
	// A request with the header continues the session; without it a new one is made.
	session := res.Header.Get(compat.SessionHeader)
	_, res = h.ask(requestBody(false, "user", "!say again"), compat.SessionHeader, session)
	if again := res.Header.Get(compat.SessionHeader); again != session {
		t.Errorf("%s went on as %s", session, again)
	}
	_, res = h.ask(requestBody(false, "user", "!say again"))
	if other := res.Header.Get(compat.SessionHeader); other == session || other == "" {
		t.Errorf("a session of its own is %q", other)
	}
}

// TestHistory: the model sees the messages that the client sends.
func TestHistory(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	got, res := h.ask(requestBody(false, "system", "Speak of marmots.", "user", "my name is Xylander", "assistant", "noted", "user", "!say answered"))
	if got.Choices[0].Message.Content != "answered" {
		t.Fatalf("%+v", got)
	}
	requests, err := operations.Requests.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.EventRange{ID: res.Header.Get(compat.SessionHeader)})
	if err != nil || len(requests.Items) != 1 {
		t.Fatalf("%+v, %v", requests, err)
	}
	var seen strings.Builder
	for _, f := range requests.Items[0].Fragments {
		seen.WriteString(f.Role + ": " + f.Text + "\n")
	}
	for _, want := range []string{"Speak of marmots.", "my name is Xylander", "assistant: noted"} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("the model did not see %q:\n%s", want, seen.String())
		}
	}
}

func TestPictures(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	shown := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(picture.Bytes()) + `"}}`
	body := `{"model":"agent/helper","messages":[
		{"role":"user","content":[{"type":"text","text":"look"},` + shown + `]},{"role":"assistant","content":"seen"},
		{"role":"user","content":[{"type":"text","text":"!say a picture"},` + shown + `]}]}`
	got, res := h.ask(body)
	if res.StatusCode != http.StatusOK || got.Choices[0].Message.Content != "a picture" {
		t.Fatalf("%s: %+v", res.Status, got)
	}
	list, err := operations.Messages.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.EventRange{ID: res.Header.Get(compat.SessionHeader)})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range list.Items {
		if m, ok := it.(feed.UserMessage); ok && (len(m.Attachments) != 1 || m.Attachments[0].MediaType != "image/png") {
			t.Errorf("%+v", m)
		}
	}
}

// frames are the data of a stream.
func frames(t *testing.T, in io.Reader) []string {
	t.Helper()
	var out []string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			out = append(out, data)
		}
	}
	return out
}

func TestStream(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	res := h.request(t.Context(), h.token, "/v1/chat/completions", requestBody(true, "user", "!say one two\n!call list_files {}\n!usage in=1 out=1\n!end\n!say three\n!usage in=3 out=4"))
	all := frames(t, res.Body)
	if len(all) < 4 || all[len(all)-1] != "[DONE]" || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%v", all)
	}
	text, finish, role := "", "", ""
	for i, data := range all[:len(all)-1] {
		var c reply
		if err := json.Unmarshal([]byte(data), &c); err != nil || c.Object != "chat.completion.chunk" {
			t.Fatalf("%s: %v", data, err)
		}
		if i == len(all)-2 {
			if c.Usage == nil || c.Usage.Completion != 5 || len(c.Choices) != 0 {
				t.Errorf("the last chunk is %s", data)
			}
			continue
		}
		text += c.Choices[0].Delta.Content
		role += c.Choices[0].Delta.Role
		finish += c.Choices[0].FinishReason
	}
	if text != "one two\n\nthree" || finish != "stop" || role != "assistant" {
		t.Errorf("%q, %q, %q", text, finish, role)
	}
}

// TestApprovalEndsTheCompletion: the completion does not hang, it says what needs approval.
func TestApprovalEndsTheCompletion(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	got, res := h.ask(requestBody(false, "user", `!call bash {"command":"touch made"}`+"\n!end\n!say after"))
	if res.StatusCode != http.StatusOK || got.Choices[0].FinishReason != "stop" {
		t.Fatalf("%s: %+v", res.Status, got)
	}
	session := res.Header.Get(compat.SessionHeader)
	list, err := operations.ListApprovals.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.ApprovalQuery{Session: session})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	text := got.Choices[0].Message.Content
	if !strings.Contains(text, list.Items[0].ID) || !strings.Contains(text, session) || !strings.Contains(text, "needs approval") {
		t.Error(text)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	ok := `"messages":[{"role":"user","content":"hi"}]`
	for body, param := range map[string]string{
		`{"model":"gpt-4o",` + ok + `}`:                                                                                               "model",
		`{"model":"agent/helper","messages":[]}`:                                                                                      "messages",
		`{"model":"agent/helper","messages":[{"role":"assistant","content":"x"}]}`:                                                    "messages",
		`{"model":"agent/helper","n":2,` + ok + `}`:                                                                                   "n",
		`{"model":"agent/helper","tools":[{"type":"function"}],` + ok + `}`:                                                           "tools",
		`{"model":"agent/helper","stop":["x"],` + ok + `}`:                                                                            "stop",
		`{"model":"agent/helper","response_format":{"type":"json_object"},` + ok + `}`:                                                "response_format",
		`{"model":"agent/helper","messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`:                                    "messages",
		`{"model":"agent/helper","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x/y.png"}}]}]}`: "messages",
		`{"model":"agent/helper","messages":[{"role":"user","content":"  "}]}`:                                                        "message",
		`{"model":"agent/helper","messages":7}`:                                                                                       "",
		`nonsense`:                                                                                                                    "",
	} {
		got, res := h.ask(body)
		if res.StatusCode/100 != 4 || got.Error.Message == "" || got.Error.Type != "invalid_request_error" || got.Error.Param != param {
			t.Errorf("%s: %s %+v", body, res.Status, got.Error)
		}
	}
	// Parameters that only tune a model are ignored.
	got, _ := h.ask(`{"model":"helper","temperature":0.1,"max_tokens":5,"stop":null,"user":"x","seed":1,"messages":[{"role":"user","content":"!say fine"}]}`)
	if len(got.Choices) != 1 || got.Choices[0].Message.Content != "fine" {
		t.Errorf("%+v", got)
	}
}

// Every failure was a 500, which clients repeat: a busy provider, a rejected request and a wrong
// key are told apart.
func TestFailuresHaveStatuses(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for kind, want := range map[string]struct {
		status            int
		kind, code, retry string
	}{
		"auth":             {502, "server_error", "provider_auth", "false"},
		"refused":          {400, "invalid_request_error", "refused", "false"},
		"bad_request":      {400, "invalid_request_error", "rejected_by_provider", "false"},
		"rate_limit":       {429, "rate_limit_error", "rate_limit_exceeded", ""},
		"overloaded":       {503, "server_error", "overloaded", ""},
		"network":          {502, "server_error", "provider_unreachable", ""},
		"context_too_long": {400, "invalid_request_error", "context_length_exceeded", "false"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			got, res := h.ask(requestBody(false, "user", failing(kind)))
			if res.StatusCode != want.status || got.Error.Type != want.kind || got.Error.Code != want.code || res.Header.Get("X-Should-Retry") != want.retry {
				t.Errorf("%s, retry %q: %+v", res.Status, res.Header.Get("X-Should-Retry"), got.Error)
			}
		})
	}
}

// failing is a script of which every attempt fails so.
func failing(kind string) string { return "!fail " + kind + " retry-after 1ms" }

// A message whose run had called a tool and then failed was sent three times by the client, and
// the tool was called three times.
func TestWhatWasBegunIsNotRepeated(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	got, res := h.ask(requestBody(false, "user", "!call list_files {}\n!end\n"+failing("rate_limit")))
	if res.StatusCode != 429 || res.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%s, retry %q: %+v", res.Status, res.Header.Get("X-Should-Retry"), got.Error)
	}
}

// The same key is the same run: its answer comes again, and nothing is done twice.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	body := requestBody(false, "user", "!say once\n!call list_files {}\n!end\n!say done")
	first, res := h.ask(body, "Idempotency-Key", "k1")
	session := res.Header.Get(compat.SessionHeader)
	if res.StatusCode != 200 || res.Header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("%s: %+v", res.Status, first)
	}
	again, res := h.ask(body, "Idempotency-Key", "k1")
	if res.Header.Get(compat.SessionHeader) != session || res.Header.Get("Idempotency-Replayed") != "true" || again.ID != first.ID ||
		again.Choices[0].Message.Content != "once\n\ndone" {
		t.Errorf("the second time: %s %v %+v", res.Status, res.Header, again)
	}
	if other, res := h.ask(requestBody(false, "user", "!say other"), "Idempotency-Key", "k1"); res.StatusCode != 422 || other.Error.Code != "key_reused" {
		t.Errorf("another request: %s %+v", res.Status, other)
	}
	if _, res := h.ask(body, "Idempotency-Key", strings.Repeat("k", 201)); res.StatusCode != 400 {
		t.Errorf("a long key: %s", res.Status)
	}
	// A failure is told again, too; the client is told not to try.
	for range 2 {
		if _, res := h.ask(requestBody(false, "user", failing("overloaded")), "Idempotency-Key", "k2"); res.StatusCode != 503 || res.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s, retry %q", res.Status, res.Header.Get("X-Should-Retry"))
		}
	}
	list, err := operations.ListSessions.Call(t.Context(), h.app.Service.Operations(), h.owner, operations.SessionQuery{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("%d sessions, %v", len(list.Items), err)
	}
}

// A client that sent a key and lost its connection comes back and is told the rest.
func TestAKeyOutlivesTheConnection(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	body := requestBody(false, "user", "!say begun\n!slow 700ms\n!say and ended")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r, _ := http.NewRequestWithContext(ctx, "POST", h.url+"/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+h.token)
		r.Header.Set("Idempotency-Key", "k")
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
		}
	}()
	session := h.running()
	cancel()
	<-ended
	got, res := h.ask(body, "Idempotency-Key", "k")
	if res.StatusCode != 200 || !strings.HasSuffix(got.Choices[0].Message.Content, "and ended") || res.Header.Get(compat.SessionHeader) != session {
		t.Errorf("%s: %+v", res.Status, got)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	reader := h.newToken(operation.Read)
	for _, path := range []string{"/v1/models", "/v1/models/agent/helper", "/v1/chat/completions"} {
		body := ""
		if strings.HasSuffix(path, "completions") {
			body = requestBody(false, "user", "!say x")
		}
		for token, want := range map[string]int{"": 401, "chorus_wrong": 401, reader: 403, h.token: 200} {
			if res := h.request(t.Context(), token, path, body); res.StatusCode != want {
				t.Errorf("%s with %.10q: %s", path, token, res.Status)
			}
		}
	}
	var out reply
	res := h.request(t.Context(), "chorus_wrong", "/v1/models", "")
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || out.Error.Code != "invalid_api_key" || out.Error.Message == "" {
		t.Errorf("a wrong token is told %+v, %v", out.Error, err)
	}
	if res := h.request(t.Context(), h.token, "/v1/embeddings", "{}"); res.StatusCode != http.StatusNotFound {
		t.Error(res.Status)
	}
}

// TestDisconnectAbortsTheRun: a client that disconnects ends its run.
func TestDisconnectAbortsTheRun(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	for _, stream := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r, _ := http.NewRequestWithContext(ctx, "POST", h.url+"/v1/chat/completions", strings.NewReader(requestBody(stream, "user", "!say begun\n!wait")))
			r.Header.Set("Authorization", "Bearer "+h.token)
			if res, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		}()
		session := h.running()
		cancel()
		<-ended
		for it, err := range operations.Watch.Follow(t.Context(), h.app.Service.Operations(), h.owner, operations.WatchRequest{ID: session, After: 0}) {
			if err != nil {
				t.Fatal(err)
			}
			if end, ok := it.(feed.Completed); ok {
				if end.StopReason != string(chat.EndAborted) {
					t.Errorf("it ended %s", end.StopReason)
				}
				break
			}
		}
	}
}

// running waits for the one active run and its first text.
func (h *fixture) running() string {
	h.Helper()
	id := ""
	polltest.Until(h, "something runs", func() bool {
		list, err := operations.ListSessions.Call(h.Context(), h.app.Service.Operations(), h.owner, operations.SessionQuery{Status: "running"})
		if err != nil {
			h.Fatal(err)
		}
		if len(list.Items) == 1 {
			id = list.Items[0].ID
		}
		return id != ""
	})
	for it := range operations.Watch.Follow(h.Context(), h.app.Service.Operations(), h.owner, operations.WatchRequest{ID: id, After: 0}) {
		if _, ok := it.(feed.TextDelta); ok {
			return id
		}
	}
	h.Fatal("it says nothing")
	return ""
}
