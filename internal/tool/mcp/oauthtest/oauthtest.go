// Package oauthtest has an MCP server that requires a login, for tests. Opening
// the page of its authorization server counts as agreeing.
package oauthtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server is an authorization server and an MCP server at one address. The fields below Mutex are for tests.
type Server struct {
	*httptest.Server
	sync.Mutex
	Access  string // the token that is valid now
	Refresh string
	Issued  int  // number of tokens issued
	Short   bool // tokens expire at once
	Refuse  bool // nobody is let in

	challenge map[string]string // of a code
	clients   map[string]string
	stop      func()
}

// New starts a server; Stop ends it.
func New(server *sdk.Server) *Server {
	a := &Server{challenge: map[string]string{}, clients: map[string]string{}}
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
		a.Lock()
		good := a.Access != "" && r.Header.Get("Authorization") == "Bearer "+a.Access
		a.Unlock()
		if !good {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+a.URL+`/.well-known/oauth-protected-resource/mcp"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	a.Server = httptest.NewServer(mux)
	a.stop = func() {
		a.CloseClientConnections()
		a.Close()
		for session := range server.Sessions() {
			_ = session.Close()
		}
	}
	return a
}

// Stop ends the server and everything that is connected to it.
func (a *Server) Stop() { a.stop() }

func (a *Server) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Redirects []string `json:"redirect_uris"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	if len(in.Redirects) != 1 || !strings.HasPrefix(in.Redirects[0], "http://127.") {
		http.Error(w, `{"error":"invalid_redirect_uri"}`, http.StatusBadRequest)
		return
	}
	a.Lock()
	id := fmt.Sprintf("client-%d", len(a.clients)+1)
	a.clients[id] = in.Redirects[0]
	a.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"client_id":%q,"redirect_uris":[%q],"token_endpoint_auth_method":"none"}`, id, in.Redirects[0])
}

func (a *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.Lock()
	defer a.Unlock()
	if q.Get("code_challenge_method") != "S256" || a.clients[q.Get("client_id")] != q.Get("redirect_uri") || q.Get("resource") != a.URL+"/mcp" {
		http.Error(w, "bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	if a.Refuse {
		back.Set("error", "access_denied")
	} else {
		code := fmt.Sprintf("code-%d", len(a.challenge)+1)
		a.challenge[code] = q.Get("code_challenge")
		back.Set("code", code)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *Server) token(w http.ResponseWriter, r *http.Request) {
	a.Lock()
	defer a.Unlock()
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
		if r.FormValue("refresh_token") != a.Refresh {
			refuse()
			return
		}
	}
	a.Issued++
	a.Access, a.Refresh = fmt.Sprintf("test-access-%d", a.Issued), fmt.Sprintf("test-refresh-%d", a.Issued)
	seconds := 3600
	if a.Short {
		seconds = 1
	}
	fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"token_type":"Bearer","expires_in":%d}`, a.Access, a.Refresh, seconds)
}
