package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"chorus/internal/app"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/service"
	"chorus/internal/store/storetest"
	"chorus/internal/tool"
	"chorus/internal/tool/mcp"
	"chorus/internal/transport/mcpserver"
)

func TestMain(m *testing.M) {
	isolate.InsideSandbox(os.Args[1:]) // a sandbox may start us as its process 1
	goleak.VerifyTestMain(m)
}

// home is a home behind its real server.
type home struct {
	*testing.T
	app *app.App
	url string
}

func serve(t *testing.T) *home {
	t.Helper()
	dir := storetest.FreshHome(t)
	env := map[string]string{"USER": "ada", "HOME": dir}
	a, err := app.Open(t.Context(), app.Options{Env: func(key string) string { return env[key] }, Environ: []string{"PATH=/usr/bin:/bin"},
		Home: dir, Version: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- a.Serve(ctx, app.ServeOptions{Addr: "127.0.0.1:0", Ready: func(url, _ string) { ready <- url }})
	}()
	h := &home{T: t, app: a}
	select {
	case h.url = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		began := time.Now()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took >= 10*time.Second { // as long as requests may be answered
			t.Errorf("open MCP sessions kept the server from stopping for %s", took)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *home) token(name string, scopes ...operation.Scope) string {
	h.Helper()
	made, err := operations.CreateToken.Call(h.Context(), h.app.Service.Operations(), h.app.Service.LocalCaller(), operations.NewToken{Name: name, Scopes: scopes})
	if err != nil {
		h.Fatal(err)
	}
	return made.Text
}

// bearer adds a token to requests.
type bearer struct {
	token string
	base  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.base.RoundTrip(r)
}

func (h *home) client(token string) *sdk.ClientSession { return h.clientWith(token, nil) }

func (h *home) clientWith(token string, o *sdk.ClientOptions) *sdk.ClientSession {
	h.Helper()
	base := http.DefaultTransport.(*http.Transport).Clone()
	h.Cleanup(base.CloseIdleConnections)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(h.Context(), &sdk.StreamableClientTransport{Endpoint: h.url + "/mcp", HTTPClient: &http.Client{Transport: bearer{token, base}}},
		&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = session.Close() })
	return session
}

// call is a tool's answer; out is filled from its structured content.
func call(t *testing.T, s *sdk.ClientSession, name string, args, out any) *sdk.CallToolResult {
	t.Helper()
	got, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		data, err := json.Marshal(got.StructuredContent)
		if err == nil {
			err = json.Unmarshal(data, out)
		}
		if err != nil || got.IsError {
			t.Fatalf("%s: %v, %s", name, err, text(got))
		}
	}
	return got
}

func text(res *sdk.CallToolResult) string {
	out := ""
	for _, c := range res.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			out += t.Text
		}
	}
	return out
}

func toolNames(t *testing.T, s *sdk.ClientSession) (names []string) {
	t.Helper()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list.Tools {
		names = append(names, one.Name)
	}
	return names
}

type asked struct{ SessionID, Status, Text string }

// A client sees what its token opens, and does what its holder may.
func TestRightsOfClients(t *testing.T) {
	t.Parallel()
	h := serve(t)
	reader, chatter, other := h.client(h.token("reader", operation.Read)), h.client(h.token("chatter", operation.Chat)), h.client(h.token("other", operation.Chat))
	approver := h.client(h.token("approver", operation.Chat, operation.Approve))
	for name, want := range map[string][4]bool{
		"session_list": {true, true, true, true}, "session_search": {true, true, true, true}, "session_say": {false, true, true, true}, "session_ask": {false, true, true, true},
		"schedule_add": {false, true, true, true}, "approval_answer": {false, false, false, true}, "setting_set": {}, "create_agent": {},
		"process_list": {true, true, true, true}, "process_logs": {true, true, true, true}, "process_kill": {false, true, true, true}, "memory_recall": {true, true, true, true},
		"memory_edit": {false, true, true, true}, "list_hooks": {true, true, true, true}, "create_hook": {false, true, true, true}, "skill_approve": {}, "mcpserver_add": {}, "mcpserver_list": {},
	} {
		for i, s := range []*sdk.ClientSession{reader, chatter, other, approver} {
			if has := slices.Contains(toolNames(t, s), name); has != want[i] {
				t.Errorf("client %d has %s: %v", i, name, has)
			}
		}
	}
	// What is not listed cannot be called either.
	if got, err := reader.CallTool(t.Context(), &sdk.CallToolParams{Name: "session_say", Arguments: map[string]any{"id": "x", "message": "y"}}); err == nil && !got.IsError {
		t.Error("a reader could speak")
	}
	var mine asked
	call(t, chatter, "session_ask", map[string]any{"message": "hello"}, &mine)
	if mine.Status != "done" || !strings.Contains(mine.Text, "offline guide") {
		t.Fatalf("%+v", mine)
	}
	uri := "chorus://threads/" + mine.SessionID
	got, err := chatter.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil || !strings.Contains(got.Contents[0].Text, "offline guide") || !strings.Contains(got.Contents[0].Text, `"hello"`) {
		t.Fatalf("%+v, %v", got, err)
	}
	// Another's thread is neither listed nor read, by whichever way.
	if _, err := other.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
		t.Error("somebody else's thread was read")
	}
	if got := call(t, other, "session_messages", map[string]any{"id": mine.SessionID}, nil); !got.IsError {
		t.Errorf("somebody else's messages were read: %s", text(got))
	}
	for s, want := range map[*sdk.ClientSession]bool{chatter: true, other: false} {
		list, err := s.ListResources(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if has := slices.ContainsFunc(list.Resources, func(r *sdk.Resource) bool { return r.URI == uri }); has != want {
			t.Errorf("listed: %v", has)
		}
	}
	if _, err := chatter.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "chorus://threads/01nowhere"}); err == nil {
		t.Error("a thread that is not there was read")
	}
	if _, err := chatter.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri + "?before=zero"}); err == nil {
		t.Error("a number that is none was taken")
	}
	for _, uri := range []string{"chorus://threads", "chorus://approvals", "chorus://schedules", "chorus://agents", "chorus://agents/chorus"} {
		if _, err := chatter.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err != nil && uri != "chorus://agents/chorus" {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// A session belongs to the token that opened it, a revoked token opens nothing, and a cookie is not enough.
func TestSessionsBelongToTheirToken(t *testing.T) {
	t.Parallel()
	h := serve(t)
	first, second := h.token("first", operation.Chat), h.token("second", operation.Chat)
	s := h.client(first)
	post := func(token, session, origin string) int {
		body := `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		req.Header.Set("Mcp-Session-Id", session)
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	for name, c := range map[string]struct {
		token, session, origin string
		want                   int
	}{
		"its own":          {first, s.ID(), "", 200},
		"somebody else's":  {second, s.ID(), "", 403},
		"none":             {"", s.ID(), "", 401},
		"wrong":            {"chorus_wrong", s.ID(), "", 401},
		"an unknown one":   {first, "nothing", "", 404},
		"of a web page":    {first, s.ID(), "https://evil.example.com", 403},
		"of our own pages": {first, s.ID(), h.url, 200},
	} {
		if got := post(c.token, c.session, c.origin); got != c.want {
			t.Errorf("%s: %d instead of %d", name, got, c.want)
		}
	}
	tokens, err := operations.ListTokens.Call(t.Context(), h.app.Service.Operations(), h.app.Service.LocalCaller(), operation.None{})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range tokens.Items {
		if one.Name == "first" {
			if _, err := operations.RevokeToken.Call(t.Context(), h.app.Service.Operations(), h.app.Service.LocalCaller(), operations.TokenRef{ID: one.ID}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := post(first, s.ID(), ""); got != 401 {
		t.Errorf("a revoked token: %d", got)
	}
}

// What the suite checks and Chorus has, it has as the suite wants it.
func TestRealServerConformance(t *testing.T) {
	t.Parallel()
	run := mcpserver.Conformance(t)
	h := serve(t)
	target, err := url.Parse(h.url)
	if err != nil {
		t.Fatal(err)
	}
	token := h.token("suite", operation.Chat)
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	at := httptest.NewServer(proxy)
	t.Cleanup(at.Close)
	for _, scenario := range []string{"server-initialize", "ping", "completion-complete", "tools-list", "resources-list", "server-sse-multiple-streams", "dns-rebinding-protection"} {
		run(t, "server", "--url", at.URL+"/mcp", "--scenario", scenario)
	}
}

// A call that waits for an agent does not keep the server from stopping.
func TestTheServerStopsDuringACall(t *testing.T) {
	t.Parallel()
	h := serve(t)
	s := h.client(h.token("chatter", operation.Chat))
	go func() {
		_, _ = s.CallTool(context.Background(), &sdk.CallToolParams{Name: "session_ask", Arguments: map[string]any{"message": "run: sleep 60"}})
	}()
	polltest.Until(t, "the agent works", func() bool {
		list, err := operations.ListSessions.Call(t.Context(), h.app.Service.Operations(), h.app.Service.LocalCaller(), operations.SessionQuery{})
		return err == nil && len(list.Items) == 1 && list.Items[0].Status != "idle"
	})
}

// On standard input and output the same is offered, within the scopes that were named.
func TestServeStreams(t *testing.T) {
	t.Parallel()
	h := serve(t)
	server := mcpserver.New(mcpserver.Options{Executor: h.app.Service.Operations(), Operations: operations.All(), Tool: service.ClientTool(h.app.Service.Operations()), Version: "test"})
	by := h.app.Service.LocalCaller()
	by.Scopes = []operation.Scope{operation.Read}
	theirs, ours := io.Pipe()
	back, answers := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(t.Context(), by, theirs, answers) }()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: back, Writer: ours}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if names := toolNames(t, session); slices.Contains(names, "session_say") || !slices.Contains(names, "session_list") {
		t.Errorf("%v", names)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	_ = ours.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var log bytes.Buffer
	if _, err := log.ReadFrom(back); err != nil && log.Len() > 0 {
		t.Errorf("%s %v", log.String(), err)
	}
}

// A client that subscribes to a thread is told when something is said there; others' threads cannot be followed.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	h := serve(t)
	told := make(chan string, 100)
	mine := h.clientWith(h.token("mine", operation.Chat), &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
		told <- r.Params.URI
	}})
	other := h.client(h.token("other", operation.Chat))
	var first asked
	call(t, mine, "session_ask", map[string]any{"message": "hello"}, &first)
	uri := "chorus://threads/" + first.SessionID
	for _, wrong := range []string{"chorus://agents", "chorus://threads/nothing", uri + "?before=3"} {
		if err := mine.Subscribe(t.Context(), &sdk.SubscribeParams{URI: wrong}); err == nil {
			t.Errorf("%s can be followed", wrong)
		}
	}
	if err := other.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err == nil {
		t.Error("somebody else's thread can be followed")
	}
	for range 2 {
		if err := mine.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err != nil {
			t.Fatal(err)
		}
	}
	call(t, mine, "session_say", map[string]any{"id": first.SessionID, "message": "more"}, nil)
	if got := <-told; got != uri {
		t.Errorf("%s", got)
	}
	if err := mine.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
}

// Projects and tasks are resources: listed, read, and told about when they change.
func TestTasksAreResources(t *testing.T) {
	t.Parallel()
	h := serve(t)
	told := make(chan string, 100)
	mine := h.clientWith(h.token("mine", operation.Chat), &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
		told <- r.Params.URI
	}})
	other := h.client(h.token("other", operation.Chat))
	call(t, mine, "create_project", map[string]any{"name": "Site"}, nil)
	call(t, mine, "pause_project", map[string]any{"project_id": "site"}, nil)
	var made operations.Task
	call(t, mine, "create_task", map[string]any{"title": "Dark mode", "project_id": "site"}, &made)
	uri := "chorus://tasks/" + made.ID
	for client, sees := range map[*sdk.ClientSession]bool{mine: true, other: false} {
		listed := map[string]bool{}
		for r, err := range client.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			listed[r.URI] = true
		}
		if !listed["chorus://tasks"] || !listed["chorus://projects"] || listed[uri] != sees || listed["chorus://projects/site"] != sees {
			t.Errorf("listed: %v", listed)
		}
		read, err := client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if sees != (err == nil) || sees && !strings.Contains(read.Contents[0].Text, `"title":"Dark mode"`) {
			t.Errorf("%+v, %v", read, err)
		}
		if err := client.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); sees != (err == nil) {
			t.Errorf("subscribed: %v", err)
		}
	}
	if err := mine.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "chorus://tasks"}); err != nil {
		t.Fatal(err)
	}
	call(t, mine, "edit_task", map[string]any{"task_id": made.ID, "priority": 5}, nil)
	got := []string{<-told, <-told}
	slices.Sort(got)
	if !slices.Equal(got, []string{"chorus://tasks", uri}) {
		t.Errorf("told of %v", got)
	}
	if read, err := mine.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "chorus://tasks"}); err != nil || !strings.Contains(read.Contents[0].Text, `"priority":5`) {
		t.Errorf("%+v, %v", read, err)
	}
}

// session_ask as a task: our own client calls it so, since the list says that it can be one.
func TestAskAsATask(t *testing.T) {
	t.Parallel()
	h := serve(t)
	token := h.token("mine", operation.Chat)
	hub := mcp.New([]mcp.Server{{Name: "chorus", URL: h.url + "/mcp", Headers: map[string]string{"Authorization": "Bearer " + token}}}, mcp.Options{Dir: t.TempDir(), Version: "test"})
	defer hub.Close()
	list := hub.Tools(t.Context(), nil)
	at := slices.IndexFunc(list.Tools, func(x tool.Tool) bool { return x.Spec().Name == "mcp__chorus__session_ask" })
	if at < 0 {
		t.Fatal(list.Notice())
	}
	res, err := list.Tools[at].Run(t.Context(), []byte(`{"message":"hello"}`))
	if err != nil || res.Failed || !strings.Contains(res.Blocks.Text(), "offline guide") {
		t.Fatalf("%v %s", err, res.Blocks.Text())
	}

	// By hand: it is made, is its owner's alone, is listed, and has the result.
	mine, other := h.raw(token), h.raw(h.token("other", operation.Chat))
	var made struct {
		Task struct{ TaskID, Status string }
	}
	mine.call("tools/call", `{"name":"session_ask","arguments":{"message":"again"},"task":{"ttl":60000}}`, &made)
	if made.Task.TaskID == "" || made.Task.Status == "" {
		t.Fatalf("%+v", made)
	}
	ref := `{"taskId":"` + made.Task.TaskID + `"}`
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		if said := other.call(method, ref, nil); !strings.Contains(said, "there is no such task") {
			t.Errorf("somebody else may %s: %s", method, said)
		}
	}
	if said := mine.call("tasks/result", ref, nil); !strings.Contains(said, "offline guide") || !strings.Contains(said, `"io.modelcontextprotocol/related-task":{"taskId":"`+made.Task.TaskID) {
		t.Errorf("%s", said)
	}
	if said := mine.call("tasks/get", ref, nil); !strings.Contains(said, `"status":"completed"`) || !strings.Contains(said, `"pollInterval":1000`) {
		t.Errorf("%s", said)
	}
	if said := mine.call("tasks/list", `{}`, nil); strings.Count(said, `"taskId"`) != 2 {
		t.Errorf("%s", said)
	}
	if said := mine.call("tasks/cancel", ref, nil); !strings.Contains(said, "the task has ended") {
		t.Errorf("%s", said)
	}
	if said := mine.call("tools/call", `{"name":"session_list","arguments":{},"task":{}}`, nil); !strings.Contains(said, `"code":-32601`) {
		t.Errorf("%s", said)
	}
}

// A task that is cancelled stops its agent.
func TestCancelledTask(t *testing.T) {
	t.Parallel()
	h := serve(t)
	mine := h.raw(h.token("mine", operation.Chat))
	var made struct{ Task struct{ TaskID string } }
	mine.call("tools/call", `{"name":"session_ask","arguments":{"message":"!say hold on\n!wait"},"task":{}}`, &made)
	ref := `{"taskId":"` + made.Task.TaskID + `"}`
	running := func() bool {
		return strings.Contains(mine.call("tools/call", `{"name":"session_list","arguments":{}}`, nil), `\"status\":\"running\"`)
	}
	polltest.Until(t, "the agent works", running)
	if said := mine.call("tasks/cancel", ref, nil); !strings.Contains(said, `"status":"cancelled"`) {
		t.Errorf("%s", said)
	}
	if said := mine.call("tasks/result", ref, nil); !strings.Contains(said, "the task was cancelled") {
		t.Errorf("%s", said)
	}
	polltest.Until(t, "the agent has stopped", func() bool { return !running() })
}

// raw is a client that says what the SDK does not know.
type raw struct {
	*home
	token, session string
	number         int
}

func (h *home) raw(token string) *raw {
	h.Helper()
	r := &raw{home: h, token: token}
	if said := r.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}`, nil); !strings.Contains(said, `"tasks":{"`) {
		h.Fatalf("%s", said)
	}
	return r
}

// call is one request; out is filled from its result. What was said is returned.
func (r *raw) call(method, params string, out any) string {
	r.Helper()
	r.number++
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, r.number, method, params)
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.url+"/mcp", strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if r.session != "" {
		req.Header.Set("Mcp-Session-Id", r.session)
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	if r.session == "" {
		r.session = res.Header.Get("Mcp-Session-Id")
	}
	for line := range strings.Lines(string(data)) {
		var answer struct {
			ID     int
			Result json.RawMessage
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(strings.TrimSpace(line), "data: ")), &answer) == nil && answer.ID == r.number && out != nil {
			if err := json.Unmarshal(answer.Result, out); err != nil {
				r.Errorf("%s: %v", line, err)
			}
		}
	}
	return string(data)
}
