package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// installation is a Chapter3 folder with everything that needs a decision.
func installation(t *testing.T) string {
	t.Helper()
	return folder(t, map[string]string{
		"discord_token": "test-discord\n",
		"config/shared.yaml": `# all bots
vendors:
  anthropic:
    config:
      anthropic_api_key: test-key-1
    provides: ["claude-3-opus", 'claude.*']
  openai:
    config: {openai_api_key: test-key-2, api_base: "https://api.test/v1"}
    provides: ["gpt-4o*", "(a|b)"]
recency_window_messages: 400
recency_window_characters: 90000
hard_max_characters: 400000
rolling_threshold: 0
tool_plugins: [notes]
made_up_key: 1
stop_sequences: ["<|x|>", "${notAVariable}"]
`,
		"config/guilds/123.yaml": "temperature: 0.7\nsystem_prompt_file: prompts/g.md\n",
		"config/bots/claude.yaml": `name: Claude
continuation_model: claude-3-opus
max_tokens: 4096
prefill_thinking: true
temperature: null
system_prompt_file: prompts/claude.md
system_prompt: ""
mcp_servers:
  - name: files
    command: npx
    args: [-y, server]
    env: {GITHUB_TOKEN: test-token, MODE: x}
context_prefix_file: missing.md
`,
		"config/bots/prompts/claude.md":              "You are Claude.\nBe kind.\n",
		"config/bots/prompts/g.md":                   "guild ${x}",
		"config/bots/claude-123456789012345678.yaml": "reply_on_random: 0\n",
	})
}

func TestImportChapter3(t *testing.T) {
	t.Parallel()
	from, to := installation(t), filepath.Join(t.TempDir(), "config")
	taken, err := ImportChapter3(from, ImportOptions{To: to, DryRun: true})
	if err != nil || len(taken) == 0 {
		t.Fatal(taken, err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Fatal("a dry run wrote something")
	}
	if taken, err = ImportChapter3(from, ImportOptions{To: to}); err != nil {
		t.Fatal(err)
	}
	b, problems := Load(Options{Dir: to, Env: env(nil)}, Ask{Bot: "claude", Guild: "123456789012345678"})
	if len(problems) > 0 {
		t.Fatalf("what was written has problems: %v", problems)
	}
	if b.InnerName != "Claude" || b.ContinuationModel != "claude-3-opus" || b.WindowMessages != 400 || b.WindowCharacters != 90000 || b.WindowHardMax != 400000 ||
		b.RollingThreshold != 50 || b.MaxTokens != 4096 || !b.PrefillThinking || b.ReplyOnRandom != 0 || b.Routing != "room" || b.Temperature != nil {
		t.Errorf("%+v", b)
	}
	if string(b.DiscordToken) != "test-discord" || b.Vendors[0].Name != "anthropic" || b.Vendors[0].Config["anthropic_api_key"] != "test-key-1" ||
		b.Vendors[1].Config["openai_api_key"] != "test-key-2" || b.MCPServers[0].Env["GITHUB_TOKEN"] != "test-token" || b.MCPServers[0].Env["MODE"] != "x" {
		t.Errorf("secrets: %q %q %q", string(b.DiscordToken), map[string]string(b.Vendors[0].Config), map[string]string(b.MCPServers[0].Env))
	}
	if b.StopSequences[1] != "${notAVariable}" {
		t.Errorf("stop sequences: %q", b.StopSequences)
	}
	g, problems := Load(Options{Dir: to, Env: env(nil)}, Ask{Guild: "123"})
	if problems.Err() != nil || g.SystemPrompt != "guild ${x}" || *g.Temperature != 0.7 || g.ReplyOnRandom != 500 {
		t.Errorf("guild: %v %+v", problems, g)
	}
	for _, want := range []string{"tool_plugins", "made_up_key", "rollingThreshold must be 1 or more", "missing.md", "matches the whole name now", "is a glob now", "was a regular expression"} {
		if !strings.Contains(told(taken), want) {
			t.Errorf("nobody says %q:\n%s", want, told(taken))
		}
	}
	if strings.Contains(told(taken), "test-") {
		t.Errorf("a secret is told:\n%s", told(taken))
	}
	holds(t, to)
}

// holds looks at the files themselves: no secret in the open, secrets for the owner alone.
func holds(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inSecrets := strings.Contains(path, "/secrets/")
		if strings.Contains(string(data), "test-") != inSecrets || info.Mode().Perm() != 0o600 {
			t.Errorf("%s (%v):\n%s", path, info.Mode(), data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	shared, err := os.ReadFile(filepath.Join(to, "shared.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`# left out (line 14): unknown key "tool_plugins": tools come with Chorus`, "# added: routing: room", "recencyWindow:\n  messages: 400\n"} {
		if !strings.Contains(string(shared), want) {
			t.Errorf("want %q in\n%s", want, shared)
		}
	}
}

func told(taken []Taken) string {
	var b strings.Builder
	for _, t := range taken {
		b.WriteString(t.From + " > " + t.To + " " + t.Action + " " + t.Detail + "\n")
	}
	return b.String()
}

func TestImportTwiceAndOver(t *testing.T) {
	t.Parallel()
	from, to := installation(t), t.TempDir()
	if _, err := ImportChapter3(filepath.Join(from, "config"), ImportOptions{To: to}); err != nil {
		t.Fatal(err)
	}
	taken, err := ImportChapter3(filepath.Join(from, "config"), ImportOptions{To: to})
	if err != nil || strings.Contains(told(taken), " written ") || !strings.Contains(told(taken), " same ") {
		t.Errorf("a second time: %v\n%s", err, told(taken))
	}
	write(t, to, map[string]string{"shared.yaml": "mine: kept\n"})
	if err := os.Remove(filepath.Join(to, "bots/claude.yaml")); err != nil {
		t.Fatal(err)
	}
	_, err = ImportChapter3(filepath.Join(from, "config"), ImportOptions{To: to})
	if err == nil || !strings.Contains(err.Error(), "shared.yaml") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("over a file that differs: %v", err)
	}
	if _, err := os.Stat(filepath.Join(to, "bots/claude.yaml")); err == nil {
		t.Error("half of it was written")
	}
	if _, err := ImportChapter3(filepath.Join(from, "config"), ImportOptions{To: to, Force: true}); err != nil {
		t.Error(err)
	}
	if data, _ := os.ReadFile(filepath.Join(to, "shared.yaml")); strings.Contains(string(data), "mine") {
		t.Error("--force did not overwrite")
	}
}

func TestImportNothing(t *testing.T) {
	t.Parallel()
	if _, err := ImportChapter3(t.TempDir(), ImportOptions{To: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no Chapter3 configuration") {
		t.Error(err)
	}
	dir := folder(t, map[string]string{"config/bots/a.yaml": "a: [", "config/bots/b.yaml": "name: B", "discord_token": "test-token"})
	to := t.TempDir()
	taken, err := ImportChapter3(dir, ImportOptions{To: to})
	if err != nil || !strings.Contains(told(taken), "bots/a.yaml >  left out") {
		t.Errorf("%v %s", err, told(taken))
	}
	if data, _ := os.ReadFile(filepath.Join(to, "bots/b.yaml")); !strings.Contains(string(data), "discord_token was one file for 2 bots") {
		t.Errorf("%s", data)
	}
}
