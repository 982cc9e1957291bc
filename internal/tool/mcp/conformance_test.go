package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"chorus/internal/npmtest"
	"chorus/internal/tool"
	"chorus/internal/tool/mcp/serverconfig"
)

// suiteClient is our client as the conformance suite starts it: with the address of a server as the last argument. A login
// that allows too little is made again once, as its message says: a person who is asked for the same again stops.
func suiteClient() error {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "suite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := Server{Name: "suite", Type: serverconfig.HTTP, URL: os.Args[len(os.Args)-1]}
	logins := NewLogins(dir, nil)
	o := LoginOptions{Version: "test"}
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if os.Getenv("MCP_CONFORMANCE_SCENARIO") == "auth/pre-registration" {
		if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given); err != nil {
			return err
		}
		o.ClientID, o.ClientSecret = given.ClientID, given.ClientSecret
	}
	for range 2 {
		if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/") {
			if err := logins.Login(ctx, s, o, browseAlone); err != nil {
				return err
			}
		}
		said, err := suiteCalls(ctx, s, dir, logins)
		if err != nil {
			return err
		}
		_, lacks, ok := strings.Cut(said, "--scope '")
		if !ok {
			return nil
		}
		scope, _, _ := strings.Cut(lacks, "'")
		o.Scopes = strings.Fields(scope)
	}
	return nil
}

// browseAlone is a person with a browser who says yes.
func browseAlone(page string) {
	go func() {
		if resp, err := http.Get(page); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}()
}

// suiteCalls calls every tool once.
func suiteCalls(ctx context.Context, s Server, dir string, logins *Logins) (said string, _ error) {
	h := New([]Server{s}, Options{Dir: dir, Version: "test", Logins: logins})
	defer h.Close()
	h.SetHost(&person{replies: []Reply{{Accept, ""}}})
	listing := h.Tools(ctx, nil)
	if len(listing.Missing) > 0 {
		return listing.Notice(), nil
	}
	for _, t := range listing.Tools {
		if strings.HasPrefix(t.Spec().Name, "mcp__") {
			res, err := t.Run(tool.WithCall(ctx, tool.Call{ID: "c", Key: "run/c"}), []byte(`{"a":5,"b":3}`))
			if err != nil {
				return "", err
			}
			said += res.Blocks.Text() + "\n"
		}
	}
	return said, nil
}

// unfit are the scenarios that are not run, and why.
var unfit = map[string]string{
	"auth/basic-cimd": "a program on a person's machine has no address of its own where its metadata could be fetched; it registers itself instead",
	"auth/2025-03-26-oauth-metadata-backcompat": "the metadata names another issuer than the address it is fetched from, which RFC 8414 (3.3) wants refused, and it is",
	"auth/client-credentials-jwt":               "an extension for programs without a person; logins here are a person's",
	"auth/client-credentials-basic":             "the same; a secret of a program can be a header of the server's configuration",
	"auth/cross-app-access-complete-flow":       "an extension that needs a company's identity provider on both sides",
}

// Our client does what the public suite expects of clients, where Chorus has it.
func TestClientConformance(t *testing.T) {
	t.Parallel()
	if testing.Short() && os.Getenv("CI") != "true" {
		t.Skip("SKIPPED: the conformance suite is left out in short mode")
	}
	platform := runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	dir := npmtest.Install(t, "@modelcontextprotocol/conformance@0.1.16", "node-"+platform+"@22.23.3")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(dir, "node_modules", "node-"+platform, "bin", "node")
	suite := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	ran := map[string]bool{}
	colours := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for _, scenario := range []string{"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "auth/metadata-default", "auth/metadata-var1",
		"auth/metadata-var2", "auth/metadata-var3", "auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined",
		"auth/token-endpoint-auth-none", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post",
		"auth/scope-step-up", "auth/scope-retry-limit", "auth/pre-registration", "auth/2025-03-26-oauth-endpoint-fallback", "auth/resource-mismatch",
		"auth/offline-access-scope", "auth/offline-access-not-supported"} {
		ran[scenario] = true
		t.Run(scenario, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), node, suite, "client", "--command", exe, "--scenario", scenario)
			cmd.Env = append(os.Environ(), kindVar+"=conformance")
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			text := colours.ReplaceAllString(string(out), "")
			if err != nil || !regexp.MustCompile(`Passed: [1-9][0-9]*/[1-9][0-9]*, 0 failed`).MatchString(text) {
				t.Errorf("%v\n%s", err, text[max(0, len(text)-3000):])
			}
		})
	} // Every scenario of the suite is run, or is not for a reason.
	listed, err := exec.CommandContext(t.Context(), node, suite, "list").CombinedOutput()
	_, clients, ok := strings.Cut(string(listed), "Client scenarios")
	if err != nil || !ok {
		t.Fatalf("%v %s", err, listed)
	}
	for _, found := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(clients, -1) {
		if name := found[1]; ran[name] == (unfit[name] != "") {
			t.Errorf("%s must be run, or named with the reason why not", name)
		}
	}
}
