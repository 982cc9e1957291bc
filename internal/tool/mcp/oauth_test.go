package mcp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/tool/mcp/oauthtest"
)

func newAuthorization(t *testing.T) *oauthtest.Server {
	t.Helper()
	a := oauthtest.New(fake(nil))
	t.Cleanup(a.Stop)
	return a
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
	a.Lock()
	a.Access = "another"
	a.Unlock()
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
	a.Lock()
	a.Access, a.Refresh = "another", "another"
	a.Unlock()
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
	a.Refuse = true
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
	a.Short = true
	s := Server{Name: "far", URL: a.URL + "/mcp"}
	dir := t.TempDir()
	if err := NewLogins(dir, nil).Login(t.Context(), s, LoginOptions{Version: "test"}, browse(t)); err != nil {
		t.Fatal(err)
	}
	a.Lock()
	a.Short = false
	a.Unlock()
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			if token, err := NewLogins(dir, nil).token(t.Context(), s, ""); err != nil || token != "test-access-2" {
				t.Errorf("%s %v", token, err)
			}
		})
	}
	work.Wait()
	if a.Issued != 2 {
		t.Errorf("%d tokens were issued", a.Issued)
	}
}
