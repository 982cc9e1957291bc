package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/store/storetest"
)

// endpoint is one: what is asked for, and the scope that opens it.
type endpoint struct {
	method, path string
	scope        operation.Scope
	page         bool // it is for people: they are shown the way in
}

// allEndpoints are those of the API, as its document has them, and those beside it.
func allEndpoints(t *testing.T) []endpoint {
	t.Helper()
	data, err := os.ReadFile("../../docs/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			Scope operation.Scope `json:"x-scope"`
		}
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	var routes []endpoint
	for path, operations := range document.Paths {
		for method, op := range operations {
			if op.Scope != "" {
				routes = append(routes, endpoint{method: strings.ToUpper(method), path: path, scope: op.Scope})
			}
		}
	}
	if len(routes) < 30 {
		t.Fatalf("the document has only %d routes", len(routes))
	}
	routes = append(routes, endpoint{"GET", "/openapi.json", operation.Read, false}, endpoint{"GET", "/docs", operation.Read, false}, endpoint{"GET", "/metrics", operation.Read, false})
	for _, path := range []string{"/", "/new", "/s/x", "/s/x/journal", "/s/x/requests/1", "/s/x/blob/x", "/approvals", "/agents", "/agents/chorus", "/agents/chorus/files/", "/costs", "/audit", "/settings", "/search", "/doctor"} {
		routes = append(routes, endpoint{"GET", path, operation.Read, true})
	}
	return append(routes, endpoint{"GET", "/s/x/live", operation.Read, false}, endpoint{"GET", "/processes/x/live", operation.Read, false}, endpoint{"GET", "/moves", operation.Read, false}, endpoint{"POST", "/new", operation.Chat, false}, endpoint{"POST", "/s/x/say", operation.Chat, false},
		endpoint{"POST", "/s/x/stop", operation.Chat, false}, endpoint{"POST", "/s/x/fork", operation.Chat, false}, endpoint{"POST", "/approvals/x", operation.Approve, false},
		endpoint{"POST", "/settings", operation.Admin, false}, endpoint{"POST", "/settings/tokens", operation.Admin, false}, endpoint{"POST", "/settings/tokens/revoke", operation.Admin, false})
}

// Every route is shut without a token and with a wrong one, and opens with the scope it
// names and with no other.
func TestEveryDoor(t *testing.T) {
	t.Parallel()
	a, err := Open(t.Context(), Options{Home: storetest.FreshHome(t), Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	site, err := a.openServer(t.Context(), ServeOptions{Addr: "127.0.0.1:8420"})
	if err != nil {
		t.Fatal(err)
	}
	site.ready.Store(true)
	close(site.stopping) // streams end at once
	// Whoever waits for events of work is given the newest; without any they would wait.
	if _, err := operations.CreateProject.Call(t.Context(), a.Service.Operations(), a.Service.LocalCaller(), operations.NewProject{Name: "Site"}); err != nil {
		t.Fatal(err)
	}
	tokens := map[operation.Scope]string{}
	for _, s := range operation.Scopes() {
		made, err := a.Service.Tokens().CreateToken(t.Context(), a.Service.LocalCaller(), operations.NewToken{Name: string(s), Scopes: []operation.Scope{s}})
		if err != nil {
			t.Fatal(err)
		}
		tokens[s] = made.Text
	}
	knock := func(d endpoint, token string) int {
		path := d.path
		for _, name := range []string{"{id}", "{name}", "{seq}", "{hash}", "{callId}", "{key}", "{file}"} {
			path = strings.ReplaceAll(path, name, "x")
		}
		body := ""
		r := httptest.NewRequestWithContext(t.Context(), d.method, "http://127.0.0.1:8420"+path, strings.NewReader(body))
		if d.page {
			r.Header.Set("Accept", "text/html")
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		site.handler.ServeHTTP(w, r)
		return w.Code
	}
	for _, d := range allEndpoints(t) {
		name := d.method + " " + d.path
		want := http.StatusUnauthorized
		if d.page {
			want = http.StatusSeeOther
		}
		if got := knock(d, ""); got != want {
			t.Errorf("%s without a token: %d, want %d", name, got, want)
		}
		for _, s := range operation.Scopes() {
			got := knock(d, tokens[s])
			may := (operation.Caller{Scopes: []operation.Scope{s}}).May(d.scope)
			switch {
			case got == http.StatusUnauthorized || got == http.StatusInternalServerError:
				t.Errorf("%s with scope %s: %d", name, s, got)
			case !may && got != http.StatusForbidden:
				t.Errorf("%s needs %s and has %s: %d", name, d.scope, s, got)
			case may && got == http.StatusForbidden && !slices.Contains(adminReads, d.path):
				t.Errorf("%s with scope %s: forbidden", name, s)
			}
		}
	}
	// Wrong ones come last: after a few of them everybody from here waits.
	for i, d := range allEndpoints(t) {
		want := http.StatusUnauthorized
		if i > 10 {
			want = http.StatusTooManyRequests
		}
		if got := knock(d, "chorus_wrong"); got != want {
			t.Errorf("%s %s with a wrong token, the %d. one: %d, want %d", d.method, d.path, i+1, got, want)
		}
	}
}

// adminReads are pages that everybody may open and that show an admin's things: whoever
// is none is told so there.
var adminReads = []string{"/api/audit", "/api/audit/export", "/audit", "/s/{id}/journal", "/s/x/journal"}
