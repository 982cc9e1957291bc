package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, text string) (Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

func TestRead(t *testing.T) {
	t.Parallel()
	if s, err := Read(filepath.Join(t.TempDir(), "none.json")); err != nil || s.MaxTokens != 0 {
		t.Fatalf("a missing file: %+v %v", s, err)
	}
	if _, err := read(t, "  \n"); err != nil {
		t.Fatalf("an empty file: %v", err)
	}
	s, err := read(t, "\ufeff"+`{"defaultModel":"demo/echo","compaction":{"enabled":false,"reserveTokens":100},"retry":{"maxRetries":5},"idleTimeoutMs":1000,"maxQueueDepth":2}`)
	if err != nil || s.DefaultModel != "demo/echo" || *s.Compaction.Enabled || s.Retry.MaxRetries != 5 || s.IdleTimeoutMS != 1000 || s.MaxQueueDepth != 2 {
		t.Fatalf("%+v %v", s, err)
	}
}

// Every mistake is named with its place and, where there is one, the key that was meant.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n  \"defaultModel\" \"x\"\n}": "settings.json:2:18: invalid character",
		`{"defaultModle":"x"}`:           `settings.json:1:2: unknown key "defaultModle"; did you mean "defaultModel"?`,
		`{"zzzzzzzzzzzz":1}`:             `unknown key "zzzzzzzzzzzz"`,
		`{"maxTokens":"many"}`:           "maxTokens must be a int, not a string",
		`{} {}`:                          "something behind the closing brace",
		`{"durability":"maybe"}`:         `durability must be "normal" or "full"`,
		`{"maxQueueDepth":-1}`:           "maxQueueDepth must be 1 or more",
		`{"retry":{"maxRetries":-2}}`:    "retry must be 0 or more",
		`{`:                              "unexpected EOF",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a directory was read as settings")
	}
}

// settings.json may hold every key; those that Settings does not know are for the layers.
func TestSettingsWithOtherKeys(t *testing.T) {
	t.Parallel()
	s, err := read(t, "{\n\t\"defaultModel\": \"demo/echo\",\n\t\"temperature\": 0.5\n}")
	if err != nil || s.DefaultModel != "demo/echo" {
		t.Errorf("%+v %v", s, err)
	}
	if _, err := read(t, `{"temperature": 9}`); err == nil || !strings.Contains(err.Error(), "settings.json:1:17: temperature must be 0 to 2") {
		t.Error(err)
	}
	if _, err := read(t, "{\"temperature\": 1,\n \"maxTokns\": 2}"); err == nil || !strings.Contains(err.Error(), `settings.json:2:2: unknown key "maxTokns"; did you mean "maxTokens"?`) {
		t.Error(err)
	}
}

// The layers give the same values as the file alone did.
func TestSettingsFromLayers(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"settings.json": `{"defaultModel":"demo/echo","compaction":{"enabled":false,"reserveTokens":100},"retry":{"maxRetries":5},"idleTimeoutMs":1000,"maxQueueDepth":2,"maxTokens":0}`,
		"shared.yaml":   "thinkingBudget: 9\npermissions: locked\n",
	})
	b, _ := load(t, dir, nil, Ask{})
	s := b.Settings()
	if s.DefaultModel != "demo/echo" || *s.Compaction.Enabled || s.Compaction.ReserveTokens != 100 || s.Compaction.KeepRecentTokens != 20_000 || !*s.Retry.Enabled ||
		s.Retry.MaxRetries != 5 || s.IdleTimeoutMS != 1000 || s.MaxQueueDepth != 2 || s.ThinkingBudget != 9 || s.Permissions != "locked" || s.MaxTokens != 0 {
		t.Errorf("%+v", s)
	}
	b, _ = load(t, dir, map[string]string{"CHORUS_LLM_RETRIES": "0"}, Ask{})
	if s := b.Settings(); *s.Retry.Enabled {
		t.Error("no retries, and still enabled")
	}
}
