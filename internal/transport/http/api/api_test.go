package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/operation"
	"chorus/internal/transport/http/api"
	"chorus/internal/transport/http/rest"
)

var update = flag.Bool("update", false, "rewrite docs/openapi.json")

func TestDocumentIsCheckedIn(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "..", "..", "..", "docs", "openapi.json")
	now, err := newAPI(t, &fake{}).DocumentJSON()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; `make openapi` writes it", err)
	}
	if !bytes.Equal(have, now) {
		t.Errorf("docs/openapi.json is not what the code says any more; `make openapi` writes it anew, then look at the difference")
	}
}

// each order as a request, and what the service hears of it.
func TestOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, target, body string
		status               int
		ordered, said        string
	}{
		{"POST", "/api/sessions", `{"workspacePath":"/w","agent":"helper","title":"T"}`, 201, "session.create{WorkspacePath:/w Agent:helper", `"sessionId":"s1"`},
		{"POST", "/api/sessions", ``, 201, "session.create{WorkspacePath: ", `"sessionId":"s1"`},
		{"GET", "/api/sessions?status=running&limit=5", ``, 200, "session.list{Status:running Agent: Search: Listing: Kind: Parent: Cursor: Limit:5}", `"next":"YzEyMDI2fHg"`},
		{"GET", "/api/sessions?cursor=YzEyMDI2fHg", ``, 200, "Cursor:2026|x", `"items":[{"id":"s1"`},
		{"GET", "/api/sessions/s1", ``, 200, "session.get{ID:s1}", `"cost":1.5`},
		{"POST", "/api/sessions/s1/chat", `{"message":"hi","attachments":["a1"]}`, 202, "session.say{ID:s1 Message:hi Attachments:[a1] Key:}", `{"seq":8}`},
		{"POST", "/api/sessions/s1/steer", `{"message":"no","mode":"interrupt"}`, 202, "session.steer{ID:s1 Message:no Attachments:[] Mode:interrupt", `{"seq":9}`},
		{"POST", "/api/sessions/s1/abort", ``, 202, "session.abort{ID:s1 All:false}", `{"aborted":true}`},
		{"POST", "/api/sessions/s1/abort", `{"all":true}`, 202, "session.abort{ID:s1 All:true}", ``},
		{"POST", "/api/sessions/s1/resume", `{"workspacePath":"/w","mode":"last-5"}`, 200, "session.resume{ID:s1 WorkspacePath:/w Provider: Model: Mode:last-5}", `"sessionId":"s1"`},
		{"POST", "/api/sessions/s1/fork", `{"atSeq":4}`, 201, "session.fork{ID:s1 AtSeq:4 Message: Key:}", `"sessionId":"s2"`},
		{"GET", "/api/sessions/s1/messages?after=3", ``, 200, "session.messages{ID:s1 After:3 Before:0 Limit:0}", `"type":"completed"`},
		{"GET", "/api/sessions/s1/events?before=9&limit=2", ``, 200, "session.events{ID:s1 After:0 Before:9 Limit:2 Kind: Run:}", `"next":"2026|x"`},
		{"GET", "/api/sessions/s1/requests", ``, 200, "session.requests{ID:s1", `"items"`},
		{"GET", "/api/search?q=word", ``, 200, "session.search{Text:word", `"items"`},
		{"GET", "/api/approvals?state=all&session=s1", ``, 200, "approval.list{Session:s1 State:all", `"items"`},
		{"POST", "/api/approvals/p1", `{"approved":true,"note":"ok"}`, 200, "approval.answer{ID:p1 Approved:true Note:ok Always:[]}", `"id":"p1"`},
		{"GET", "/api/sessions/s1/approvals", ``, 200, "approval.list{Session:s1 State: ", `"items"`},
		{"POST", "/api/sessions/s1/approvals/c1", `{"approved":false}`, 200, "approval.answer_call{ID:s1 CallID:c1 Approved:false Note:}", ``},
		{"GET", "/api/agents", ``, 200, "agent.list", `"helper"`},
		{"POST", "/api/agents", `{"name":"helper"}`, 201, "agent.create{Name:helper", ``},
		{"GET", "/api/agents/helper", ``, 200, "agent.get{Name:helper}", `"tools":[]`},
		{"PATCH", "/api/agents/helper", `{"key":"model","value":"x"}`, 200, "agent.config{Name:helper Key:model Value:x}", ``},
		{"DELETE", "/api/agents/helper?keepFiles=true", ``, 204, "agent.destroy{Name:helper KeepFiles:true}", ``},
		{"GET", "/api/agents/helper/files?path=a/b", ``, 200, "agent.file{Name:helper Path:a/b}", `"entries"`},
		{"GET", "/api/costs?by=day&since=7d", ``, 200, "cost.sum{By:day Since:7d Under:}", `"rows":[]`},
		{"GET", "/api/audit?who=local:ada", ``, 200, "Who:local:ada", ``},
		{"GET", "/api/audit?since=2026-01-02T03:04:05Z&before=7", ``, 200, "Since:2026-01-02 03:04:05", ``},
		{"GET", "/api/audit?until=yesterday", ``, 400, "", `until: it must be a time like`},
		{"GET", "/api/audit/verify?since=ab", ``, 200, "audit.verify{Since:ab}", `"ok":true`},
		{"GET", "/api/tokens", ``, 200, "token.list", ``},
		{"POST", "/api/tokens", `{"name":"n","scopes":["read"],"expiresIn":"30d"}`, 201, "ExpiresIn:30d", `"token":"shown-once"`},
		{"POST", "/api/tokens", `{"name":"n","scopes":["write"]}`, 400, "", `scopes[0]: it must be one of read, chat, approve, admin`},
		{"DELETE", "/api/tokens/t1", ``, 204, "token.revoke{ID:t1}", ``},
		{"GET", "/api/models", ``, 200, "model.list", `demo/guide`},
		{"GET", "/api/settings", ``, 200, "setting.list", ``},
		{"PUT", "/api/settings/model", `{"value":"x"}`, 200, "setting.set{Key:model Value:x}", ``},
		{"GET", "/api/overview", ``, 200, "system.overview", `"waiting":[]`},
		{"GET", "/api/health", ``, 200, "system.health", ``},
		{"GET", "/openapi.json", ``, 200, "", `"openapi": "3.1.0"`},
		{"GET", "/docs", ``, 200, "", `chorus test`},
		{"GET", "/docs.css", ``, 200, "", `body`},
		{"GET", "/healthz", ``, 200, "", `{"status":"ok"}`},
		{"GET", "/readyz", ``, 200, "", `{"status":"ok"}`},
		{"GET", "/api/sessions?cursor=mine", ``, 400, "", `it is not a valid cursor`},
		{"GET", "/api/nothing", ``, 404, "", `there is no /api/nothing`},
	} {
		t.Run(c.method+c.target, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			w := ask(newAPI(t, f), admin, c.method, c.target, c.body)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.said) {
				t.Errorf("answered %d %s", w.Code, w.Body)
			}
			if !strings.Contains(f.last(), c.ordered) {
				t.Errorf("ordered %s\nwant %s", f.last(), c.ordered)
			}
		})
	}
}

func TestKindsBecomeStatuses(t *testing.T) {
	t.Parallel()
	f := &fake{}
	a := newAPI(t, f)
	for kind, want := range api.Statuses() {
		e := operation.Errorf(kind, "so it is")
		e.Field, e.About = "message", map[string]bool{"approved": true}
		f.fail(e)
		w := ask(a, admin, "POST", "/api/sessions/s1/chat", `{"message":"a"}`)
		var p rest.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if w.Code != want || p.Detail != "so it is" || p.Message != "so it is" || p.Type != "/docs#problem-"+string(kind) ||
			p.About == nil || len(p.Fields) != 1 || p.Fields[0].Field != "message" {
			t.Errorf("%s: %d %s", kind, w.Code, w.Body)
		}
	}
	f.fail(errors.New("secret"))
	if w := ask(a, admin, "GET", "/api/models", ""); w.Code != 500 || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("an error of nobody's: %d %s", w.Code, w.Body)
	}
}

func TestProblemTypesAreDocumented(t *testing.T) {
	t.Parallel()
	page := ask(newAPI(t, &fake{}), admin, "GET", "/docs", "").Body.String()
	for _, kind := range api.ProblemKinds() {
		if !strings.Contains(page, `id="problem-`+kind[0]+`"`) {
			t.Errorf("no %s on the page", kind[0])
		}
	}
}

func TestCommandsByName(t *testing.T) {
	t.Parallel()
	f := &fake{}
	a := newAPI(t, f)
	for _, call := range []struct {
		scopes       []operation.Scope
		name, body   string
		status       int
		says, reason string
	}{
		{admin, "list_tasks", `{"project_id":"site","limit":3}`, 200, "task.list", "tool names and tool arguments"},
		{admin, "get_status", "", 200, "work.status", "no body where there are no arguments"},
		{admin, "agent_list", "{}", 200, "agent.list", "a former name"},
		{admin, "nope", "{}", 404, "unknown command", "case 1"},
		{admin, "get_task", "{}", 400, "task_id: it is required", "the error names the argument"},
		{admin, "get_task", `{"id":"x"}`, 400, "task_id: it is required", "the names are the tool's"},
		{admin, "get_task", `{"task_id":"x","colour":1}`, 400, "there is no argument colour", ""},
		{admin, "get_task", `[]`, 400, "", "it is no object"},
		{nil, "list_tasks", "{}", 401, "", "nobody"},
	} {
		w := ask(a, call.scopes, "POST", "/api/commands/"+call.name, call.body)
		asked := strings.Join(f.asked, "\n")
		if w.Code != call.status || call.status == 200 && !strings.Contains(asked, call.says) || call.status != 200 && !strings.Contains(w.Body.String(), call.says) {
			t.Errorf("%s %s: %d %s; asked %s (%s)", call.name, call.body, w.Code, w.Body, asked, call.reason)
		}
	}
	// The operation's own scope holds: the executor checks it like everywhere.
	f.fail(operation.Errorf(operation.Forbidden, "this needs a token with the scope admin"))
	if w := ask(a, []operation.Scope{operation.Read}, "POST", "/api/commands/set_task_status", `{"task_id":"x","status":"READY"}`); w.Code != 403 || !strings.Contains(w.Body.String(), "scope admin") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Every route, without anybody, and with each scope alone.
func TestScopes(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fake{})
	public := map[string]bool{"/healthz": true, "/readyz": true}
	for _, route := range a.Operations() {
		target := strings.NewReplacer("{id}", "s1", "{callId}", "c1", "{name}", "helper", "{hash}", "ab", "{key}", "model", "{session}", "s1", "{noun}", "agent", "{channelId}", "c1", "{projectId}", "site", "{dependsOn}", "t2", "{title}", "plan", "{share}", "l1", "{context}", "c1").Replace(route.Path)
		if strings.Contains(target, "{") {
			t.Fatalf("%s has a part that the test does not know", route.Path)
		}
		if (route.Scope == "") != public[route.Path] {
			t.Errorf("%s %s has the scope %q", route.Method, route.Path, route.Scope)
		}
		if route.Scope == "" {
			continue
		}
		if w := ask(a, nil, route.Method, target, ""); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s without anybody: %d", route.Method, target, w.Code)
		}
		for _, scope := range operation.Scopes() {
			has := []operation.Scope{scope}
			w := ask(a, has, route.Method, target, "")
			may := operation.Caller{Scopes: has}.May(operation.Scope(route.Scope))
			if may == (w.Code == http.StatusForbidden) || w.Code == http.StatusUnauthorized {
				t.Errorf("%s %s with %s: %d", route.Method, target, scope, w.Code)
			}
		}
		byName := route.ID == "callCommand" // each command needs its own scope
		if changes := route.Method != http.MethodGet; changes && !byName && route.Scope == string(operation.Read) {
			t.Errorf("%s %s changes something and needs only read", route.Method, route.Path)
		}
	}
}

func TestEveryCreationTakesAKey(t *testing.T) {
	t.Parallel()
	for _, route := range newAPI(t, &fake{}).Operations() {
		if route.Status == http.StatusCreated && !route.Creates {
			t.Errorf("%s %s makes something and takes no key", route.Method, route.Path)
		}
	}
}

func TestKeyIsPassedOn(t *testing.T) {
	t.Parallel()
	f := &fake{}
	a := newAPI(t, f)
	for target, body := range map[string]string{"/api/sessions": `{}`, "/api/sessions/s1/chat": `{"message":"a"}`, "/api/sessions/s1/steer": `{"message":"a"}`,
		"/api/agents": `{"name":"helper"}`} {
		first := ask(a, admin, "POST", target, body, "Idempotency-Key", "k-7")
		if !strings.Contains(f.last(), "Key:k-7") {
			t.Errorf("%s: ordered %s", target, f.last())
		}
		f.fail(errors.New("it must not be asked again"))
		again := ask(a, admin, "POST", target, body, "Idempotency-Key", "k-7")
		f.fail(nil)
		if again.Code != first.Code || again.Body.String() != first.Body.String() || again.Header().Get("Location") != first.Header().Get("Location") {
			t.Errorf("%s: again %d %s", target, again.Code, again.Body)
		}
	}
}

func TestTokenTextIsNotKept(t *testing.T) {
	t.Parallel()
	memory := &memoryFake{}
	a, err := api.New(api.Options{Executor: &fake{}, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"name":"n","scopes":["read"]}`
	if w := ask(a, admin, "POST", "/api/tokens", body, "Idempotency-Key", "k"); w.Code != 201 {
		t.Fatal(w.Body)
	}
	for _, k := range memory.kept {
		if bytes.Contains(k.body, []byte("shown-once")) {
			t.Error("the token's text was kept")
		}
	}
	if w := ask(a, admin, "POST", "/api/tokens", body, "Idempotency-Key", "k"); w.Code != 409 {
		t.Errorf("again: %d %s", w.Code, w.Body)
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	f := &fake{}
	a := newAPI(t, f)
	for name, c := range map[string]struct {
		target string
		lastID string
		status int
		from   string
	}{
		"all":           {"/api/sessions/s1/stream", "", 200, "session.watch{ID:s1 After:0}"},
		"after":         {"/api/sessions/s1/stream?after=4", "", 200, "session.watch{ID:s1 After:4}"},
		"last":          {"/api/sessions/s1/stream?after=4", "6", 200, "session.watch{ID:s1 After:6}"},
		"of the future": {"/api/sessions/s1/stream?after=99", "", 200, "session.watch{ID:s1 After:7}"},
		"no number":     {"/api/sessions/s1/stream", "x", 400, ""},
		"below":         {"/api/sessions/s1/stream?after=-1", "", 400, ""},
	} {
		header := []string{}
		if c.lastID != "" {
			header = []string{"Last-Event-ID", c.lastID}
		}
		w := ask(a, admin, "GET", c.target, "", header...)
		if w.Code != c.status || c.from != "" && f.last() != c.from {
			t.Errorf("%s: %d, %s: %s", name, w.Code, f.last(), w.Body)
		}
		if c.status == 200 && (!strings.Contains(w.Body.String(), "event: completed\nid: 9\ndata: {") || !strings.HasSuffix(w.Body.String(), ": bye\n\n")) {
			t.Errorf("%s: %s", name, w.Body)
		}
	}
	f.fail(operation.Errorf(operation.NotFound, "there is no session"))
	if w := ask(a, admin, "GET", "/api/sessions/s1/stream", ""); w.Code != 404 {
		t.Errorf("unknown: %d", w.Code)
	}
	f.fail(nil)
	if err := a.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := ask(a, admin, "GET", "/api/sessions/s1/stream", ""); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("while closing: %d", w.Code)
	}
}

func TestBlobsAreNoPages(t *testing.T) {
	t.Parallel()
	a := newAPI(t, &fake{})
	for hash, want := range map[string]string{"page": "attachment", "picture": ""} {
		w := ask(a, admin, "GET", "/api/sessions/s1/blobs/"+hash, "")
		h := w.Header()
		if w.Body.String() != "bytes" || h.Get("Content-Disposition") != want || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v", hash, h)
		}
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	f := &fake{}
	w := ask(newAPI(t, f), admin, "POST", "/api/sessions/s1/attachments?name=a.txt", "hello", "Content-Type", "text/plain")
	if w.Code != 201 || !strings.HasPrefix(f.last(), "session.attach{ID:s1 Name:a.txt hello ") {
		t.Errorf("%d %s %s", w.Code, w.Body, f.last())
	}
}

func TestNotReady(t *testing.T) {
	t.Parallel()
	a, err := api.New(api.Options{Executor: &fake{}, Ready: func(context.Context) error { return errors.New("the store is being moved") }})
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(a, nil, "GET", "/readyz", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "being moved") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
