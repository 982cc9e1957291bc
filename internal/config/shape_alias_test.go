package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/config"
)

// A profile says whether commands need a sandbox; older files call it walls.
func TestOldSpellingInsideAProfile(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"sandbox", "walls"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "shared.yaml"), []byte("profiles:\n  loose:\n    allow: ['.*']\n    "+key+": preferred\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		bot, problems := config.Load(config.Options{Dir: dir, Env: func(string) string { return "" }}, config.Ask{})
		if err := problems.Err(); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if got := bot.Profiles["loose"].Sandbox; got != "preferred" {
			t.Errorf("%s: preferred is read as %q", key, got)
		}
	}
}
