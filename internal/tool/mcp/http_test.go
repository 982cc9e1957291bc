package mcp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/tool"
	"chorus/internal/tool/mcp/serverconfig"
)

// listen serves a handler until the test and its hub are over.
func listen(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

func streamable(t *testing.T, s *sdk.Server) http.Handler {
	hangUp(t, s)
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

// hangUp ends with the test what nobody said goodbye to.
func hangUp(t *testing.T, s *sdk.Server) {
	t.Cleanup(func() {
		for session := range s.Sessions() {
			_ = session.Close()
		}
	})
}

func sse(t *testing.T, s *sdk.Server) http.Handler {
	hangUp(t, s)
	return sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

func TestOverHTTP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind string
		serve      func(*testing.T, *sdk.Server) http.Handler
	}{
		{"streamable", serverconfig.HTTP, streamable},
		{"streamable, not said", "", streamable},
		{"old", serverconfig.SSE, sse},
		{"old, not said", "", sse},
		{"answers in JSON", serverconfig.HTTP, func(t *testing.T, s *sdk.Server) http.Handler {
			hangUp(t, s)
			return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cancelled := make(chan struct{})
			srv := listen(t, c.serve(t, fake(sync.OnceFunc(func() { close(cancelled) }))))
			h := open(t, Server{Name: "web", Type: c.kind, URL: srv.URL, StartTimeout: time.Minute})
			set := toolsOf(t, h)
			if text := run(t, set, "mcp__web__echo", `{"text":"x"}`).Blocks.Text(); text != `{"text":"x"}` {
				t.Errorf("%s", text)
			}
			if res := run(t, set, "mcp__web__picture", `{}`); len(res.Blobs) != 1 {
				t.Errorf("%v", res.Blocks)
			}
			if text := run(t, set, "mcp_read", `{"server":"web","uri":"doc://one"}`).Blocks.Text(); !strings.Contains(text, "the text of doc://one") {
				t.Errorf("%s", text)
			}
			if strings.HasPrefix(c.name, "answers") {
				return // no stream: no news and no cancelling
			}
			ctx, cancel := context.WithCancel(t.Context())
			one, _, err := set.Resolve("mcp__web__slow", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := one.Run(tool.WithCall(ctx, tool.Call{Progress: func(string) { cancel() }}), []byte(`{}`)); err == nil {
				t.Error("it was not cancelled here")
			}
			select {
			case <-cancelled:
			case <-time.After(time.Minute):
				t.Error("it was not cancelled there")
			}
			run(t, set, "mcp__web__change", `{}`)
			until(t, h, "the new tool", func() bool {
				return slices.Contains(names(toolsOf(t, h)), "mcp__web__brand_new")
			})
		})
	}
}

func TestHeadersGoToTheirHostOnly(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string][]string{}
	note := func(who string, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen[who] = append(seen[who], r.Header.Get("X-Key"))
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	}
	other := listen(t, note("other", streamable(t, fake(nil))))
	home := listen(t, note("home", http.RedirectHandler(other.URL, http.StatusTemporaryRedirect)))
	h := open(t, Server{Name: "web", Type: serverconfig.HTTP, URL: home.URL, Headers: map[string]string{"X-Key": "test-key-head"}, StartTimeout: time.Minute})
	run(t, toolsOf(t, h), "mcp__web__echo", `{"text":"x"}`)
	h.Close()
	mu.Lock()
	defer mu.Unlock()
	if len(seen["home"]) == 0 || seen["home"][0] != "test-key-head" {
		t.Errorf("home saw %q", seen["home"])
	}
	if len(seen["other"]) == 0 || slices.ContainsFunc(seen["other"], func(s string) bool { return s != "" }) {
		t.Errorf("the other host saw %q", seen["other"])
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	answer := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "key "+r.Header.Get("X-Key")+" is not good", status)
		})
	}
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that its client went away
		<-r.Context().Done()
	})
	closed := httptest.NewServer(answer(200))
	closed.Close()
	for _, c := range []struct {
		name  string
		url   string
		want  string
		state State
	}{
		{"unauthorized", listen(t, answer(401)).URL, "it refuses the credentials (HTTP 401): check the headers", Failed},
		{"forbidden", listen(t, answer(403)).URL, "HTTP 403", Failed},
		{"not there", listen(t, answer(404)).URL, "HTTP 404", Restarting},
		{"broken", listen(t, answer(500)).URL, "HTTP 500", Restarting},
		{"closed", closed.URL, "connection refused", Restarting},
		{"web page", listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })).URL, "content type", Restarting},
		{"endless", listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"a":"`)
			for line := strings.Repeat("x", 1<<16); ; {
				if _, err := fmt.Fprint(w, line); err != nil {
					return
				}
			}
		})).URL, "larger than 10 MB", Restarting},
		{"hangs", listen(t, hang).URL, "it did not answer within 500ms", Restarting},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := Server{Name: "web", URL: c.url + "/mcp?api_key=test-key-url", Headers: map[string]string{"X-Key": "test-key-head"}, StartTimeout: time.Minute}
			if c.name == "hangs" {
				s.StartTimeout = 500 * time.Millisecond
			}
			h := open(t, s)
			h.pause = func(int) time.Duration { return time.Hour }
			h.Start()
			until(t, h, "it is given up", func() bool { return h.Status()[0].State != Starting })
			list := h.Tools(t.Context(), nil)
			if len(list.Missing) != 1 || list.Missing[0].State != c.state || !strings.Contains(list.Missing[0].Why, c.want) {
				t.Errorf("%v", list.Missing)
			}
			if text := list.Notice(); strings.Contains(text, "test-key") {
				t.Errorf("a secret: %s", text)
			}
		})
	}
}

func TestServerForgetsTheSession(t *testing.T) {
	t.Parallel()
	s := fake(nil)
	var mu sync.Mutex
	handler := streamable(t, s)
	srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	h := open(t, Server{Name: "web", Type: serverconfig.HTTP, URL: srv.URL, StartTimeout: time.Minute})
	set := toolsOf(t, h)
	mu.Lock()
	handler = streamable(t, fake(nil)) // as after a restart: it knows no session of before
	mu.Unlock()
	until(t, h, "it is back", func() bool { return !run(t, set, "mcp__web__echo", `{"text":"x"}`).Failed })
}
