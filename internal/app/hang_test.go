package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/overrides"
	"chorus/internal/runsetup"
	"chorus/internal/sim/llmsim"
	"chorus/internal/store/storetest"
	"chorus/internal/transport/repl/local"
)

// hungHome opens a home with settings, in which a model server may be asked.
func hungHome(t *testing.T, settings, server string) *App {
	t.Helper()
	dir := storetest.FreshHome(t)
	file := filepath.Join(dir, "config", "shared.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(context.Background(), Options{Home: dir, Environ: []string{"PATH=" + os.Getenv("PATH")},
		Env: apptest.Env("OPENAI_API_KEY", "test-key", "OPENAI_BASE_URL", server, "USER", "ada")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// talk sends a prompt and gives all that was said and done until its run ended.
func talk(t *testing.T, s *local.Session, text string) (end chat.RunEnded, all string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := s.Send(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	for item, err := range s.Watch(ctx, got.Seq) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			continue
		}
		switch b := item.Event.Body.(type) {
		case chat.Said:
			all += b.Blocks.Text() + "\n"
		case chat.Noted:
			all += b.Text + "\n"
		case chat.ToolRan:
			all += b.Blocks.Text() + "\n"
		case chat.RunEnded:
			return b, all + b.Text
		}
	}
	t.Fatalf("%q was never answered:\n%s", text, all)
	return end, all
}

// What hangs outside of the process, for real: whoever is waited for in vain is named,
// and the next message is answered.
func TestNothingOutsideHoldsAConversation(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts by its backlog, never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	stalled := llmsim.New(llmsim.Options{Keys: []string{"test-key"}})
	stalled.Push(llmsim.Text("one two three").With(llmsim.Stall, 2))
	url, stop, err := stalled.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	// A server that reads and never answers; with its child it ignores being told to end.
	const deaf = "trap '' TERM INT HUP; sleep 600 & while :; do read line || sleep 600; done"
	for name, c := range map[string]struct {
		settings, server, model string
		prompt                  string
		want                    string
		failed                  bool
	}{
		"a model server that never begins": {
			settings: "retry: {enabled: false}\ntimeouts: {firstByteMs: 200}\n", server: fmt.Sprintf("http://%s/v1", silent.Addr()),
			model: "openai/gpt-4.1-mini", prompt: "hello", want: "no answer began in time (200ms)", failed: true,
		},
		"a model that stops in mid-sentence": {
			settings: "retry: {enabled: false}\ntimeouts: {idleMs: 300}\n", server: url + "/v1",
			model: "openai/gpt-4.1-mini", prompt: "hello", want: "the answer stopped coming (nothing for 300ms)", failed: true,
		},
		"a command that cannot be told to end": {
			settings: "timeouts: {toolMs: 300}\n", model: "demo/script",
			prompt: `!call bash {"command":"` + strings.ReplaceAll(deaf, `"`, `\"`) + `"}` + "\n!---\n!say {{last}}", want: "bash was told to end after 300ms",
		},
		"an MCP server that never answers": {
			settings: "mcpServers:\n  mute:\n    command: sh\n    args: [-c, \"" + deaf + "\"]\n    startTimeout: 1\n", model: "demo/script",
			prompt: "!say still here", want: "mute",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := hungHome(t, c.settings, c.server)
			s, err := a.Sessions.OpenSession(t.Context(), runsetup.SessionOptions{Dir: t.TempDir(), Model: c.model, Profile: "open", Yes: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			end, all := talk(t, s, c.prompt)
			if failed := end.Reason == chat.EndFailed; failed != c.failed || !strings.Contains(all, c.want) {
				t.Errorf("ended %q:\n%s", end.Reason, all)
			}
			// The next message is for a model that answers.
			s.Choice.Set(func(now *overrides.Values) { now.Model = "demo/echo" })
			if _, all := talk(t, s, "and now"); !strings.Contains(all, "and now") {
				t.Errorf("the next message: %s", all)
			}
		})
	}
}
