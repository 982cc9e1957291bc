package mcpserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/npmtest"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/guard"
)

// Conformance runs the public suite, with a Node that it runs on: the machine's own may be too old. It fails the test
// unless everything passed.
func Conformance(t *testing.T) func(t *testing.T, args ...string) {
	t.Helper()
	if testing.Short() && os.Getenv("CI") != "true" {
		t.Skip("SKIPPED: the conformance suite is left out in short mode")
	}
	platform := runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	dir := npmtest.Install(t, "@modelcontextprotocol/conformance@0.1.16", "node-"+platform+"@22.23.3")
	node := filepath.Join(dir, "node_modules", "node-"+platform, "bin", "node")
	suite := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	colours := regexp.MustCompile("\x1b\\[[0-9;]*m")
	passed := regexp.MustCompile(`[1-9][0-9]* passed, 0 failed|Passed: ([1-9][0-9]*)/([1-9][0-9]*), 0 failed, 0 warnings`)
	return func(t *testing.T, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, append([]string{suite}, args...)...)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if text := colours.ReplaceAllString(string(out), ""); err != nil || !passed.MatchString(text) || strings.Contains(text, "WARNING") {
			t.Errorf("%v: %v\n%s", args, err, text)
		}
	}
}

// oneToken is a store with a single token.
type oneToken struct{ token operations.Token }

func (o oneToken) TokenByText(_ context.Context, text string) (operations.Token, error) {
	if text != o.token.Text {
		return operations.Token{}, operation.Errorf(operation.NotFound, "there is no such token")
	}
	return o.token, nil
}

func (o oneToken) TokenByID(context.Context, string) (operations.Token, error) { return o.token, nil }

func (o oneToken) EndSignIn(context.Context, string, time.Duration) (bool, error) { return true, nil }

func (o oneToken) SignInEnded(context.Context, string) (bool, error) { return false, nil }

// guarded is the transport as the server mounts it, behind the guard. The suite sends no token: it is added on the way.
func guarded(t *testing.T, server func(*http.Request) *sdk.Server) string {
	t.Helper()
	token := operations.Token{ID: "t1", Name: "suite", Scopes: operation.Scopes(), Text: "chorus_test_token"}
	g, err := guard.New(guard.Options{Tokens: oneToken{token}, Key: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	stopping := make(chan struct{})
	inner := g.Wrap(streamable(server, stopping))
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token.Text)
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(stopping)
		at.Close()
	})
	return at.URL + "/mcp"
}

// Everything that the public suite checks of servers holds for a server on our transport, behind our guard.
func TestServerConformance(t *testing.T) {
	t.Parallel()
	run := Conformance(t)
	one := fixture()
	t.Cleanup(func() {
		for session := range one.Sessions() {
			_ = session.Close()
		}
	})
	url := guarded(t, func(*http.Request) *sdk.Server { return one })
	run(t, "server", "--url", url, "--suite", "all")
}
