package workertest_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/host"
	"chorus/internal/sim/llmsim"
	"chorus/internal/worker"
	"chorus/internal/worker/claude"
	"chorus/internal/worker/codex"
	"chorus/internal/worker/workertest"
)

// The command lines of others, as they are installed by `make workers`, against models that follow a script: what they print, and what they
// ask, is what is read here.
func TestRealPrograms(t *testing.T) {
	t.Parallel()
	bin := os.Getenv("CHORUS_REAL_WORKERS")
	if bin == "" {
		t.Skip("make workers installs claude and codex, which are hundreds of megabytes, and runs this")
	}
	const command = "echo hello-from-a-tool | tee made.txt"
	call := map[llmsim.API]llmsim.Call{
		llmsim.Anthropic: {Name: "Bash", Args: map[string]string{"command": command, "description": "write a file"}},
		llmsim.Responses: {Name: "exec_command", Args: map[string]string{"cmd": command}},
	}
	sim := llmsim.New(llmsim.Options{Respond: func(r llmsim.Request) llmsim.Turn {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case slices.ContainsFunc(last.Results, func(res llmsim.Result) bool { return strings.Contains(res.Text, "hello-from-a-tool") }):
			return llmsim.Turn{Text: "The file is written."}
		case len(last.Results) > 0:
			return llmsim.Turn{Text: "It did not work."}
		case strings.Contains(r.LastUser(), "write a file"):
			return llmsim.Turn{Text: "I will.", Calls: []llmsim.Call{call[r.API]}}
		default:
			return llmsim.Turn{Text: "Hello again."}
		}
	}})
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)

	for name, make := range map[string]func(worker.Program, string) worker.Worker{
		"claude": func(p worker.Program, path string) worker.Worker {
			return &claude.Claude{Program: p, Command: []string{path}}
		},
		"codex": func(p worker.Program, path string) worker.Worker {
			return &codex.Codex{Program: p, Command: []string{path}, Model: "gpt-5", Args: []string{"--sandbox", "danger-full-access", "-c", "model_provider=sim",
				"-c", "model_providers.sim.name=sim", "-c", "model_providers.sim.base_url=" + server.URL + "/v1", "-c", "model_providers.sim.env_key=OPENAI_API_KEY"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, dir := t.TempDir(), t.TempDir()
			env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ANTHROPIC_BASE_URL=" + server.URL, "ANTHROPIC_API_KEY=key", "OPENAI_API_KEY=key", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
			keeper := host.New(nil)
			w := make(worker.Program{Prepare: func(_ context.Context, argv []string, key string) (*sandbox.Prepared, error) {
				return keeper.Keep(sandbox.Command{Argv: argv, Dir: dir, Call: key, Env: env})
			}}, filepath.Join(bin, name))
			asked := 0
			work := func(prompt, session string, allow bool) (*workertest.Host, worker.Outcome) {
				t.Helper()
				h := &workertest.Host{Decide: func(c worker.Call) (worker.Decision, error) {
					asked++
					if c.Like == nil || !strings.Contains(string(c.Args), "hello-from-a-tool") {
						t.Errorf("it asks for %+v", c)
					}
					return worker.Decision{Allow: allow, Why: "not today"}, nil
				}}
				out, err := w.Work(t.Context(), worker.Job{Prompt: prompt, Dir: dir, Key: "run/worker", Session: session}, h)
				if err != nil {
					t.Fatalf("%v\n%s", err, h.Text.String())
				}
				if len(h.Sessions) == 0 || h.Usage.Total() == 0 {
					t.Errorf("sessions %v, tokens %+v", h.Sessions, h.Usage)
				}
				return h, out
			}
			h, out := work("please write a file", "", true)
			if out.Summary != "The file is written." || !strings.Contains(h.Text.String(), "I will.") {
				t.Errorf("it said %q, and in the end %q", h.Text.String(), out.Summary)
			}
			if len(h.Calls) != 1 || len(h.Results) != 1 || h.Results[0].Failed || !strings.Contains(h.Results[0].Text, "hello-from-a-tool") {
				t.Errorf("calls %+v, results %+v", h.Calls, h.Results)
			}
			if made, err := os.ReadFile(filepath.Join(dir, "made.txt")); err != nil || !strings.Contains(string(made), "hello") {
				t.Errorf("the file: %q, %v", made, err)
			}
			if again, out := work("and now?", h.Sessions[0], true); out.Summary != "Hello again." {
				t.Errorf("its session was not taken up: %q %v", out.Summary, again.Sessions)
			}
			if name != "claude" {
				return // codex asks nobody
			}
			if out.Cost == 0 || asked != 1 {
				t.Errorf("it cost %d and asked %d times", out.Cost, asked)
			}
			if err := os.Remove(filepath.Join(dir, "made.txt")); err != nil {
				t.Fatal(err)
			}
			if h, out := work("please write a file once more", "", false); out.Summary != "It did not work." || len(h.Results) != 1 || !h.Results[0].Failed {
				t.Errorf("a refusal: %q %+v", out.Summary, h.Results)
			}
			if _, err := os.Stat(filepath.Join(dir, "made.txt")); err == nil {
				t.Error("what was refused was done")
			}
		})
	}
}
