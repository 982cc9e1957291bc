package client_test

import (
	"context"
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
	"chorus/internal/client"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/operations/operationstest"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/store/storetest"
	"chorus/internal/transport/http/api"
	"chorus/internal/transport/http/guard"
)

func TestMain(m *testing.M) {
	isolate.InsideSandbox(os.Args[1:]) // a sandbox may start us as its process 1
	goleak.VerifyTestMain(m)
}

// served is a home behind its real HTTP server, on a socket.
type served struct {
	*testing.T
	app    *app.App
	server *httptest.Server
}

func openServer(t *testing.T) *served {
	t.Helper()
	dir := storetest.FreshHome(t)
	env := map[string]string{"USER": "ada", "HOME": dir}
	a, err := app.Open(t.Context(), app.Options{Env: func(key string) string { return env[key] }, Environ: []string{"PATH=/usr/bin:/bin"},
		Home: dir, Version: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server, err := api.New(api.Options{Executor: a.Service.Operations(), Memory: a.DB, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	key, err := a.Service.Tokens().SessionKey()
	if err != nil {
		t.Fatal(err)
	}
	at, err := guard.New(guard.Options{Tokens: a.Service.Tokens(), Key: key, Public: api.Open})
	if err != nil {
		t.Fatal(err)
	}
	h := &served{t, a, httptest.NewServer(at.Wrap(server))}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Drain(ctx); err != nil {
			t.Error(err)
		}
		h.server.Close()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// token makes a token and gives it with its holder.
func (h *served) token(name string, scopes ...operation.Scope) (string, operation.Caller) {
	h.Helper()
	in := operations.NewToken{Name: name, Scopes: scopes}
	if scopes[0] == operation.Admin {
		in.Roles = []string{chat.OwnerRole}
	}
	made, err := h.app.Service.Tokens().CreateToken(h.Context(), h.app.Service.LocalCaller(), in)
	if err != nil {
		h.Fatal(err)
	}
	return made.Text, operation.Caller{Principal: made.Holder(), Scopes: scopes}
}

func (h *served) client(url, token string) operation.Executor {
	h.Helper()
	c, err := client.New(client.Options{URL: url, Token: token, FirstWait: time.Millisecond})
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(c.Close)
	return c
}

// TestTheWire runs the suite of every executor through a socket, with tokens.
func TestTheWire(t *testing.T) {
	t.Parallel()
	operationstest.Run(t, func(t *testing.T) operationstest.World {
		h := openServer(t)
		clients := map[string]operation.Executor{}
		holder := func(name string, scopes ...operation.Scope) operation.Caller {
			text, caller := h.token(name, scopes...)
			clients[caller.Principal.ID] = h.client(h.server.URL, text)
			return caller
		}
		return operationstest.World{
			Admin: holder("root", operation.Admin), Ada: holder("ada", operation.Chat, operation.Approve), Bo: holder("bo", operation.Chat, operation.Approve),
			Reader: holder("reader", operation.Read), Dir: t.TempDir(),
			As: func(by operation.Caller) operation.Executor { return clients[by.Principal.ID] },
		}
	})
}

func TestWrongTokens(t *testing.T) {
	t.Parallel()
	h := openServer(t)
	for _, token := range []string{"", "chorus_wrong"} {
		_, err := operations.ListSessions.Call(t.Context(), h.client(h.server.URL, token), operation.Caller{}, operations.SessionQuery{})
		if operation.KindOf(err) != operation.Unsigned {
			t.Errorf("%q: %v", token, err)
		}
		for _, err := range operations.Watch.Follow(t.Context(), h.client(h.server.URL, token), operation.Caller{}, operations.WatchRequest{ID: "x", After: 0}) {
			if operation.KindOf(err) != operation.Unsigned {
				t.Errorf("watch with %q: %v", token, err)
			}
		}
	}
	if _, err := client.New(client.Options{URL: h.server.URL, Token: "two words"}); err == nil {
		t.Error("a token with a blank was taken")
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	seen := false
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = seen || r.Header.Get("Authorization") != "" }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	h := &served{T: t}
	_, err := operations.ListModels.Call(t.Context(), h.client(server.URL, "test-key"), operation.Caller{}, operation.None{})
	if operation.KindOf(err) != operation.Unavailable || seen {
		t.Errorf("%v; the token was sent on: %v", err, seen)
	}
}

// A token that may talk is no key to other people's folders.
func TestSomebodysHomeIsForbidden(t *testing.T) {
	t.Parallel()
	h := openServer(t)
	home := t.TempDir()
	post := func(scope operation.Scope) (int, string) {
		text, _ := h.token("holder of "+string(scope), scope)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.server.URL+"/api/sessions", strings.NewReader(`{"workspacePath":"`+home+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+text)
		req.Header.Set("Content-Type", "application/json")
		resp, err := h.server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if status, body := post(operation.Chat); status != http.StatusForbidden || !strings.Contains(body, "workspaces") || !strings.Contains(body, "folders that Chorus makes itself") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := post(operation.Admin); status != http.StatusCreated {
		t.Errorf("%d %s", status, body)
	}
}
