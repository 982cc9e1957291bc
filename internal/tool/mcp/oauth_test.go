package mcp

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// authorization is an authorization server and the MCP server behind it, on one address.
type authorization struct {
	*httptest.Server
	mu        sync.Mutex
	challenge map[string]string // of a code
	access    string            // that is good now
	refresh   string
	issued    int
	short     bool // tokens are over at once
	refuse    bool // nobody is let in
	clients   map[string]string
}

func newAuthorization(t *testing.T) *authorization {
	t.Helper()
	a := &authorization{challenge: map[string]string{}, clients: map[string]string{}}
	server := fake(nil)
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, a.URL+"/mcp", a.URL)
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"registration_endpoint":%q,"response_types_supported":["code"],`+
			`"code_challenge_methods_supported":["S256"]}`, a.URL, a.URL+"/authorize", a.URL+"/token", a.URL+"/register")
	})
	mux.HandleFunc("POST /register", a.register)
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		good := a.access != "" && r.Header.Get("Authorization") == "Bearer "+a.access
		a.mu.Unlock()
		if !good {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.URL+`/.well-known/oauth-protected-resource/mcp"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
		for session := range server.Sessions() {
			_ = session.Close()
		}
	})
	return a
}

func (a *authorization) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Redirects []string `json:"redirect_uris"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	if len(in.Redirects) != 1 || !strings.HasPrefix(in.Redirects[0], "http://127.0.0.1:") {
		http.Error(w, `{"error":"invalid_redirect_uri"}`, http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	id := fmt.Sprintf("client-%d", len(a.clients)+1)
	a.clients[id] = in.Redirects[0]
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":[%q],"token_endpoint_auth_method":"none"}`, id, in.Redirects[0])
}

func (a *authorization) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.mu.Lock()
	defer a.mu.Unlock()
	if q.Get("code_challenge_method") != "S256" || a.clients[q.Get("client_id")] != q.Get("redirect_uri") || q.Get("resource") != a.URL+"/mcp" {
		http.Error(w, "bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if a.refuse {
		back.Set("error", "access_denied")
	} else {
		code := fmt.Sprintf("code-%d", len(a.challenge)+1)
		a.challenge[code] = q.Get("code_challenge")
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *authorization) token(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	refuse := func() {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
	}
	switch r.FormValue("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if a.challenge[r.FormValue("code")] != base64.RawURLEncoding.EncodeToString(sum[:]) {
			refuse()
			return
		}
		delete(a.challenge, r.FormValue("code"))
	case "refresh_token":
		if r.FormValue("refresh_token") != a.refresh {
			refuse()
			return
		}
	}
	a.issued++
	a.access, a.refresh = fmt.Sprintf("test-access-%d", a.issued), fmt.Sprintf("test-refresh-%d", a.issued)
	seconds := 3600
	if a.short {
		seconds = 1
	}
	fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"token_type":"Bearer","expires_in":%d}`, a.access, a.refresh, seconds)
}

// browse is a person who says yes: what the page leads to is opened.
func browse(t *testing.T) func(string) {
	return func(page string) {
		go func() {
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(page)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			_, _ = io.Copy(io.Discard, resp.Body)
		}()
	}
}

func TestLoginToAServer(t *testing.T) {
	t.Parallel()
	a := newAuthorization(t)
	s := Server{Name: "far", URL: a.URL + "/mcp"}
	var heard []string
	var mu sync.Mutex
	dir := filepath.Join(t.TempDir(), "logins")
	logins := NewLogins(dir, func(text string) { mu.Lock(); defer mu.Unlock(); heard = append(heard, text) })
	connect := func() *Hub {
		h := New([]Server{s}, Options{Dir: t.TempDir(), Version: "test", Logins: logins})
		t.Cleanup(h.Close)
		return h
	}
	if missing := connect().Tools(t.Context(), nil).Missing; len(missing) != 1 || !strings.Contains(missing[0].Why, "chorus mcp login far") {
		t.Fatalf("%+v", missing)
	}
	if err := logins.Login(t.Context(), s, LoginOptions{Version: "test"}, browse(t)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(logins.file(s))
	if err != nil || info.Mode().Perm() != 0o600 || !logins.Has(s) {
		t.Errorf("%v %v", info, err)
	}
	if set := toolsOf(t, connect()); !strings.Contains(run(t, set, "mcp__far__echo", `{"text":"hello"}`).Blocks.Text(), "hello") {
		t.Error("no answer")
	}
	// The server forgets the token: it is renewed, and the renewed one is kept.
	a.mu.Lock()
	a.access = "another"
	a.mu.Unlock()
	if set := toolsOf(t, connect()); !strings.Contains(run(t, set, "mcp__far__echo", `{"text":"again"}`).Blocks.Text(), "again") {
		t.Error("no answer with a renewed token")
	}
	if kept, err := logins.read(s); err != nil || kept.Access != "test-access-2" || kept.Refresh != "test-refresh-2" {
		t.Errorf("%+v %v", kept, err)
	}
	mu.Lock()
	for _, secret := range []string{"test-access-1", "test-access-2", "test-refresh-1", "test-refresh-2"} {
		if !strings.Contains(strings.Join(heard, " "), secret) {
			t.Errorf("nobody was told to hide %s", secret)
		}
	}
	mu.Unlock()
	// Neither can be renewed any more: it is said what to do.
	a.mu.Lock()
	a.access, a.refresh = "another", "another"
	a.mu.Unlock()
	if missing := connect().Tools(t.Context(), nil).Missing; len(missing) != 1 || !strings.Contains(missing[0].Why, "chorus mcp login far") {
		t.Errorf("%+v", missing)
	}
	// A server of another address gets nothing of it, and a login that is forgotten is gone.
	if logins.Has(Server{Name: "far", URL: "http://127.0.0.1:1/mcp"}) {
		t.Error("another server has the login")
	}
	if err := logins.Remove(s); err != nil || logins.Has(s) {
		t.Error(err)
	}
}

func TestLoginsThatFail(t *testing.T) {
	t.Parallel()
	a := newAuthorization(t)
	a.refuse = true
	logins := NewLogins(t.TempDir(), nil)
	if err := logins.Login(t.Context(), Server{Name: "far", URL: a.URL + "/mcp"}, LoginOptions{Version: "test"}, browse(t)); err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("%v", err)
	}
	open := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return fake(nil) }, &sdk.StreamableHTTPOptions{Stateless: true}))
	defer open.Close()
	if err := logins.Login(t.Context(), Server{Name: "open", URL: open.URL}, LoginOptions{Version: "test"}, browse(t)); err != ErrNoLogin {
		t.Errorf("%v", err)
	}
}

// A token that is over is renewed before it is sent, by one of many at once.
func TestOneRenewsForAll(t *testing.T) {
	t.Parallel()
	a := newAuthorization(t)
	a.short = true
	s := Server{Name: "far", URL: a.URL + "/mcp"}
	dir := t.TempDir()
	if err := NewLogins(dir, nil).Login(t.Context(), s, LoginOptions{Version: "test"}, browse(t)); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.short = false
	a.mu.Unlock()
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			if token, err := NewLogins(dir, nil).token(t.Context(), s, ""); err != nil || token != "test-access-2" {
				t.Errorf("%s %v", token, err)
			}
		})
	}
	work.Wait()
	if a.issued != 2 {
		t.Errorf("%d tokens were issued", a.issued)
	}
}
