package config

import (
	"os"
	"path/filepath"
	"testing"
)

// folder writes files below a fresh folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// env is an environment of its own.
func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestTry(t *testing.T) {
	dir := folder(t, map[string]string{"shared.yaml": `
temperature: 0.5
vendors:
  anthropic:
    config:
      anthropic_api_key: ${KEY}
      api_base: http://x
    provides: [claude-*]
  ollama: {}
recencyWindow: 400
`, "bots/claude.yaml": "name: Claude\nmax_tokens: 5\n"})
	b, ps := Load(Options{Dir: dir, Env: env(map[string]string{"KEY": "test-key"})}, Ask{Bot: "claude"})
	t.Logf("%+v %v", b, ps)
}
