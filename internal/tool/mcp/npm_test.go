package mcp

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/npmtest"
	"chorus/internal/polltest"
	"chorus/internal/tool"
)

// fetched is the directory with the real servers' programs.
func fetched(t *testing.T) string {
	t.Helper()
	if testing.Short() && os.Getenv("CI") != "true" {
		t.Skip("SKIPPED: servers from npm are left out in short mode")
	}
	dir := npmtest.Install(t, "@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31")
	return filepath.Dir(npmtest.Bin(dir, "any"))
}

func TestRealFilesystem(t *testing.T) {
	t.Parallel()
	bin := fetched(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(file, []byte("the real thing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := open(t, Server{Name: "files", Command: filepath.Join(bin, "mcp-server-filesystem"), Args: []string{dir}})
	set := toolsOf(t, h)
	if text := run(t, set, "mcp__files__read_text_file", `{"path":"`+file+`"}`).Blocks.Text(); !strings.Contains(text, "the real thing") {
		t.Errorf("%s", text)
	}
	if res := run(t, set, "mcp__files__write_file", `{"path":"`+file+`","content":"changed"}`); res.Failed {
		t.Errorf("%s", res.Blocks.Text())
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "changed" {
		t.Errorf("%s %v", data, err)
	}
	if res := run(t, set, "mcp__files__read_text_file", `{"path":"/etc/passwd"}`); !res.Failed || !strings.Contains(res.Blocks.Text(), "denied") {
		t.Errorf("%s", res.Blocks.Text())
	}
	one, args, err := set.Resolve("mcp__files__read_text_file", []byte(`{}`))
	if err != nil || set.Validate(one, args) == nil {
		t.Errorf("a missing path is not seen here: %v", err)
	}
}

func TestRealEverything(t *testing.T) {
	t.Parallel()
	bin := fetched(t)
	h := open(t, Server{Name: "every", Command: filepath.Join(bin, "mcp-server-everything"), Args: []string{"stdio"}})
	set := toolsOf(t, h)
	all := names(set)
	for _, want := range []string{"mcp__every__echo", "mcp__every__get-tiny-image", "mcp__every__trigger-long-running-operation", "mcp_resources", "mcp_read"} {
		if !slices.Contains(all, want) {
			t.Fatalf("no %s in %v", want, all)
		}
	}
	if text := run(t, set, "mcp__every__echo", `{"message":"hello"}`).Blocks.Text(); !strings.Contains(text, "hello") {
		t.Errorf("%s", text)
	}
	if res := run(t, set, "mcp__every__get-tiny-image", `{}`); len(res.Blobs) != 1 || res.Failed {
		t.Errorf("%v", res.Blocks)
	}
	if res := run(t, set, "mcp__every__get-structured-content", `{"location":"Chicago"}`); res.Failed || !strings.Contains(res.Blocks.Text(), "temperature") {
		t.Errorf("%v", res.Blocks)
	}
	one, _, err := set.Resolve("mcp__every__trigger-long-running-operation", nil)
	if err != nil {
		t.Fatal(err)
	}
	progress := make(chan string, 100)
	ctx := tool.WithCall(t.Context(), tool.Call{Progress: func(text string) {
		select {
		case progress <- text:
		default:
		}
	}})
	if res, err := one.Run(ctx, []byte(`{"duration":0.2,"steps":2}`)); err != nil || res.Failed || len(progress) == 0 {
		t.Errorf("%v %v, %d times progress", res.Blocks, err, len(progress))
	}
	listed := run(t, set, "mcp_resources", `{}`).Blocks.Text()
	_, rest, _ := strings.Cut(listed, "\n")
	uri, _, _ := strings.Cut(rest, " ")
	if res := run(t, set, "mcp_read", `{"server":"every","uri":"`+uri+`"}`); res.Failed || len(res.Blocks.Text()) < 20 {
		t.Errorf("%s: %s\nof %s", uri, res.Blocks.Text(), listed)
	}
}

func TestRealEverythingOverHTTP(t *testing.T) {
	t.Parallel()
	bin := fetched(t)
	for _, way := range []string{"streamableHttp", "sse"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := free.Addr().String()
			_, port, _ := net.SplitHostPort(addr)
			_ = free.Close()
			cmd := exec.Command(filepath.Join(bin, "mcp-server-everything"), way)
			cmd.Env = append(os.Environ(), "PORT="+port)
			cmd.SysProcAttr = ownGroup()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				kill(cmd.Process.Pid)
				_ = cmd.Wait()
			})
			polltest.Until(t, "the server listens", func() bool {
				conn, err := net.Dial("tcp", addr)
				if err == nil {
					_ = conn.Close()
				}
				return err == nil
			})
			path := map[string]string{"streamableHttp": "/mcp", "sse": "/sse"}[way]
			set := toolsOf(t, open(t, Server{Name: "every", URL: "http://" + addr + path}))
			if text := run(t, set, "mcp__every__echo", `{"message":"hello"}`).Blocks.Text(); !strings.Contains(text, "hello") {
				t.Errorf("%s", text)
			}
			if res := run(t, set, "mcp__every__get-tiny-image", `{}`); len(res.Blobs) != 1 {
				t.Errorf("%v", res.Blocks)
			}
			if res := run(t, set, "mcp__every__simulate-research-query", `{"topic":"cups"}`); way != "sse" && (res.Failed || !strings.Contains(res.Blocks.Text(), "Research Report: cups")) {
				t.Errorf("as a task: %v", res.Blocks)
			}
		})
	}
}
