package mcp

import (
	"context"
	"fmt"
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
)

// suiteClient is our client as the conformance suite starts it: with the address of a server as the last argument.
func suiteClient() error {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "suite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := Server{Name: "suite", Type: HTTP, URL: os.Args[len(os.Args)-1]}
	logins := NewLogins(dir, nil)
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/") {
		if err := logins.Login(ctx, s, "test", func(page string) {
			go func() {
				if resp, err := http.Get(page); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}()
		}); err != nil {
			return err
		}
	}
	h := New([]Server{s}, Options{Dir: dir, Version: "test", Logins: logins})
	defer h.Close()
	h.SetHost(&person{replies: []Reply{{Accept, ""}}})
	listing := h.Tools(ctx, nil)
	if len(listing.Missing) > 0 {
		return fmt.Errorf("%s", listing.Notice())
	}
	for _, t := range listing.Tools {
		if strings.HasPrefix(t.Spec().Name, "mcp__") {
			if _, err := t.Run(tool.WithCall(ctx, tool.Call{ID: "c", Key: "run/c"}), []byte(`{"a":5,"b":3}`)); err != nil {
				return err
			}
		}
	}
	return nil
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
	colours := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for _, scenario := range []string{"initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "auth/metadata-default", "auth/metadata-var1",
		"auth/metadata-var2", "auth/metadata-var3", "auth/scope-from-www-authenticate", "auth/scope-from-scopes-supported", "auth/scope-omitted-when-undefined",
		"auth/token-endpoint-auth-none", "auth/token-endpoint-auth-basic", "auth/token-endpoint-auth-post"} {
		t.Run(scenario, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node_modules", "node-"+platform, "bin", "node"),
				filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js"), "client", "--command", exe, "--scenario", scenario)
			cmd.Env = append(os.Environ(), kindVar+"=conformance")
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			text := colours.ReplaceAllString(string(out), "")
			if err != nil || !regexp.MustCompile(`Passed: [1-9][0-9]*/[1-9][0-9]*, 0 failed`).MatchString(text) {
				t.Errorf("%v\n%s", err, text[max(0, len(text)-3000):])
			}
		})
	}
}
