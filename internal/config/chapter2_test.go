package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// There was no way to take over chapter2, which Chapter3 replaced.
func TestImportChapter2(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "config")
	for name, text := range map[string]string{
		"config.yaml":         "vendors:\n  anthropic:\n    config: {anthropic_api_key: test-key}\n    provides: ['claude-.*']\ncontinuation_max_tokens: 900\nsplit_message: true\n",
		"Aria/config.yaml":    "name: Aria\ncontinuation_model: claude-3-opus\nrecency_window: 80\nmax_tokens: 70\ncontinuation_max_tokens: 5\nsystem_prompt_file: prompt.md\n",
		"Aria/prompt.md":      "You are Aria.\n",
		"Aria/discord_token":  "test-aria\n",
		"Aria/history.db":     "x",
		"Aria/guilds/77.yaml": "temperature: 0.5\n",
		"Bell/discord_token":  "test-bell\n",
		"Bell/prompt.md":      "unused",
		"notes/readme.txt":    "x",
	} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := ImportChapter2(from, ImportOptions{To: to, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Fatal("a dry run wrote something")
	}
	plan := told(taken)
	if taken, err = ImportChapter2(from, ImportOptions{To: to}); err != nil || told(taken) != plan {
		t.Fatalf("%v\nplanned\n%s\ndone\n%s", err, plan, told(taken))
	}
	for _, want := range []string{
		"config.yaml >  left out line 6: unknown key \"split_message\"", "Aria/history.db >  left out", "Bell/prompt.md >  left out", "notes >  left out",
		"Aria/config.yaml > bots/Aria.yaml written", "Aria/guilds/77.yaml > bots/Aria-77.yaml written", "Aria/prompt.md > bots/Aria/prompt.md written", "Bell/discord_token > secrets/Bell-discord_token written",
		`continuation_max_tokens`,
	} {
		if !strings.Contains(plan, want) {
			t.Errorf("nobody says %q:\n%s", want, plan)
		}
	}
	if strings.Contains(plan, "test-") {
		t.Errorf("a secret is told:\n%s", plan)
	}
	b, problems := Load(Options{Dir: to, Env: env(nil)}, Ask{Bot: "Aria", Guild: "77"})
	if len(problems) > 0 {
		t.Fatalf("what was written has problems: %v", problems)
	}
	if b.InnerName != "Aria" || b.ContinuationModel != "claude-3-opus" || b.WindowMessages != 80 || b.MaxTokens != 70 || b.SystemPrompt != "You are Aria.\n" ||
		string(b.DiscordToken) != "test-aria" || b.Routing != "room" || *b.Temperature != 0.5 || b.Vendors[0].Config["anthropic_api_key"] != "test-key" {
		t.Errorf("%+v", b)
	}
	bell, problems := Load(Options{Dir: to, Env: env(nil)}, Ask{Bot: "Bell"})
	if len(problems) > 0 || string(bell.DiscordToken) != "test-bell" || bell.MaxTokens != 900 || bell.ReplyOnRandom != 0 {
		t.Errorf("%v %+v", problems, bell)
	}
	again, err := ImportChapter2(from, ImportOptions{To: to})
	if err != nil || strings.Contains(told(again), " written") {
		t.Errorf("twice: %v\n%s", err, told(again))
	}
	if err := os.WriteFile(filepath.Join(to, "shared.yaml"), []byte("temperature: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ImportChapter2(from, ImportOptions{To: to}); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("over a file that differs: %v", err)
	}
	if _, err := ImportChapter2(t.TempDir(), ImportOptions{To: to}); err == nil || !strings.Contains(err.Error(), "no chapter2 configuration") {
		t.Errorf("an empty folder: %v", err)
	}
}
