package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// read is what a settings.json comes to, and what is wrong with it.
func read(t *testing.T, text string) (*Bot, error) {
	t.Helper()
	files, problems := ReadFiles(Options{Dir: t.TempDir(), Settings: filepath.Join(folder(t, map[string]string{"settings.json": text}), "settings.json")})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	b, problems := files.Bot(Ask{})
	return b, problems.Err()
}

func TestSettingsFile(t *testing.T) {
	t.Parallel()
	if _, problems := ReadFiles(Options{Dir: t.TempDir(), Settings: filepath.Join(t.TempDir(), "none.json")}); problems.Err() != nil {
		t.Fatalf("a missing file: %v", problems)
	}
	if _, err := read(t, "  \n"); err != nil {
		t.Fatalf("an empty file: %v", err)
	}
	b, err := read(t, "\ufeff"+`{"defaultModel":"demo/echo","compaction":{"enabled":false,"reserveTokens":100},"retry":{"maxRetries":5},"idleTimeoutMs":1000,"maxQueueDepth":2,"maxTokens":0}`)
	if err != nil || b.DefaultModel != "demo/echo" || b.CompactionEnabled || b.CompactionReserveTokens != 100 || b.LLMRetries != 5 || b.IdleTimeoutMS != 1000 || b.MaxQueuedReplies != 2 || b.MaxTokens != 0 {
		t.Fatalf("%+v %v", b, err)
	}
}

// Every mistake is named with its place and, where there is one, the key that was meant.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n  \"defaultModel\" \"x\"\n}": "settings.json:2:18: invalid character",
		`{"defaultModle":"x"}`:           `settings.json:1:2: unknown key "defaultModle"; did you mean "defaultModel"?`,
		`{"zzzzzzzzzzzz":1}`:             `unknown key "zzzzzzzzzzzz"`,
		`{"maxTokens":"many"}`:           "maxTokens must be a whole number",
		`{} {}`:                          "after top-level value",
		`{"durability":"maybe"}`:         "durability must be one of normal, full",
		`{"maxQueueDepth":-1}`:           "maxQueuedReplies must be 1 to 1000",
		`{"retry":{"maxRetries":-2}}`:    "llmRetries must be 0 to 20",
		`{`:                              "unexpected end of JSON input",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, problems := ReadFiles(Options{Dir: t.TempDir(), Settings: t.TempDir()}); problems.Err() == nil {
		t.Error("a directory was read as settings")
	}
}

// settings.json may hold every key.
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
