package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder writes files below a fresh folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	return dir
}

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// env is an environment of its own.
func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// load reads the folder for a bot and fails the test when there is an error.
func load(t testing.TB, dir string, vars map[string]string, ask Ask) (*Bot, Problems) {
	t.Helper()
	b, problems := Load(Options{Dir: dir, Settings: filepath.Join(dir, "settings.json"), Env: env(vars)}, ask)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return b, problems
}

// one reads a single shared.yaml.
func one(t testing.TB, text string) (*Bot, Problems) {
	t.Helper()
	return Load(Options{Dir: folder(t, map[string]string{"shared.yaml": text}), Env: env(nil)}, Ask{})
}

func TestLayersInOrder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"settings.json":        `{"maxTokens": 1, "thinkingBudget": 1, "compaction": {"reserveTokens": 1}}`,
		"shared.yaml":          "maxTokens: 2\nmaxImages: 2\nretry: {enabled: false, baseDelayMs: 2}\nstopSequences: [a, b]\n",
		"guilds/77.yaml":       "max_images: 3\nrollingThreshold: 3\nretry: {baseDelayMs: 3}\n",
		"bots/claude.yaml":     "rollingThreshold: 5\nmaxToolDepth: 5\nstopSequences: [c]\n",
		"bots/claude-77.yaml":  "maxToolDepth: 6\nreplyOnRandom: 6\n",
		"bots/other-77.yaml":   "maxToolDepth: 99\n",
		"guilds/78.yaml":       "maxToolDepth: 99\n",
		"bots/claude-779.yaml": "maxToolDepth: 99\n",
	})
	ask := Ask{
		Bot: "claude", Guild: "77",
		GuildSettings: map[string]any{"maxQueuedReplies": 4.0, "rollingThreshold": 4.0},
		Agent:         map[string]any{"model": "demo/agent", "replyOnRandom": 7, "permissions": "locked"}, AgentFile: "agents/claude/agent.json",
		Pins: []Pin{
			{ID: "9", Text: ".config\n---\nrecentParticipantCount: 9\nmaxMessageChars: 9"},
			{ID: "8", Text: ".config\n---\nmodel: demo/parent\nrecentParticipantCount: 8\nmaxTextAttachmentKb: 8", Parent: true},
		},
		Flags: map[string]any{"llmRetries": "11"},
	}
	b, problems := load(t, dir, map[string]string{"CHORUS_MAX_MESSAGE_CHARS": "10", "CHORUS_LLM_RETRIES": "10"}, ask)
	for _, c := range []struct {
		key       string
		got, want any
		from      string
	}{
		{"thinkingBudget", b.ThinkingBudget, 1, "settings.json:1"},
		{"compaction.reserveTokens", b.CompactionReserveTokens, 1, "settings.json:1"},
		{"maxTokens", b.MaxTokens, 2, "shared.yaml:1"},
		{"retry.enabled", b.RetryEnabled, false, "shared.yaml:3"},
		{"retry.baseDelayMs", b.RetryBaseDelayMS, 3, "guilds/77.yaml:3"},
		{"maxImages", b.MaxImages, 3, "guilds/77.yaml:1"},
		{"maxQueuedReplies", b.MaxQueuedReplies, 4, "settings of guild 77"},
		{"rollingThreshold", b.RollingThreshold, 5, "bots/claude.yaml:1"},
		{"stopSequences", strings.Join(b.StopSequences, ","), "c", "bots/claude.yaml:3"},
		{"maxToolDepth", b.MaxToolDepth, 6, "bots/claude-77.yaml:1"},
		{"replyOnRandom", b.ReplyOnRandom, 7, "agents/claude/agent.json"},
		{"permissions", b.Permissions, "locked", "agents/claude/agent.json"},
		{"continuationModel", b.ContinuationModel, "demo/parent", "pinned message 8:3"},
		{"maxTextAttachmentKb", b.MaxTextAttachmentKB, 8, "pinned message 8:5"},
		{"recentParticipantCount", b.RecentParticipantCount, 9, "pinned message 9:3"},
		{"maxMessageChars", b.MaxMessageChars, 10, "CHORUS_MAX_MESSAGE_CHARS"},
		{"llmRetries", b.LLMRetries, 11, "flag llmRetries"},
		{"topP", b.TopP == nil, true, "built in"},
		{"mode", b.Mode, "prefill", "built in"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %v, want %v", c.key, c.got, c.want)
		}
		if from := strings.TrimPrefix(b.Origin(c.key).String(), dir+"/"); !strings.HasPrefix(from, c.from) {
			t.Errorf("%s came from %s, want %s", c.key, from, c.from)
		}
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Text, "maxTokens is set here and in") || !problems[0].Warning {
		t.Errorf("want one warning about settings.json and shared.yaml, got %v", problems)
	}
	if b.IsSet("topP") || !b.IsSet("maxTokens") || b.InnerName != "claude" {
		t.Errorf("IsSet or the name is wrong: %q", b.InnerName)
	}
}

// An explicit 0, false or "" is a value; null gives the built-in default back, whatever
// the layers below say.
func TestZeroAndNull(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"shared.yaml": "maxImages: 7\nincludeImages: true\nprefillOpening: x\nrollingThreshold: 7\ntemperature: 1\nretry: {enabled: false, baseDelayMs: 7}\n" +
			"vendors: {a: {config: {api_base: http://a}}, b: {}}\nrecencyWindow: {messages: 7, characters: 7}\n",
		"bots/zero.yaml": "maxImages: 0\nincludeImages: false\nprefillOpening: ''\nreplyOnRandom: 0\ntemperature: 0\n",
		"bots/null.yaml": "maxImages: null\nincludeImages: ~\nprefillOpening:\nrollingThreshold: null\ntemperature: null\nretry: null\nvendors: {a: null}\nrecencyWindow: {messages: null}\n",
	})
	z, _ := load(t, dir, nil, Ask{Bot: "zero"})
	if z.MaxImages != 0 || z.IncludeImages || z.PrefillOpening != "" || z.ReplyOnRandom != 0 || z.Temperature == nil || *z.Temperature != 0 || z.RollingThreshold != 7 {
		t.Errorf("zeroes: %+v", z)
	}
	n, _ := load(t, dir, nil, Ask{Bot: "null"})
	if n.MaxImages != 5 || !n.IncludeImages || n.PrefillOpening != "<cmd>cat untitled.txt</cmd>" || n.RollingThreshold != 50 || n.Temperature != nil ||
		!n.RetryEnabled || n.RetryBaseDelayMS != 1000 || n.WindowMessages != 0 || n.WindowCharacters != 7 {
		t.Errorf("nulls: %+v", n)
	}
	if len(n.Vendors) != 1 || n.Vendors[0].Name != "b" {
		t.Errorf("a null takes an entry of a map away: %v", n.Vendors)
	}
	if at := n.Origin("rollingThreshold"); at.Layer != BuiltIn {
		t.Errorf("an unset key came from %s", at)
	}
}

func TestVendors(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"shared.yaml": `
vendors:
  zeta:
    config: {openaiApiKey: ["${K1}", "file:keys/two"], api_base: "https://${HOST}/v1"}
    provides: ["gpt-*", 'o\d']
    headers: {X-Team: chorus}
    extra: {provider: {order: [a, b], n: 1}, top_k: 40}
  alpha:
    provides: [llama3]
`,
		"keys/two":       "k2\n",
		"bots/b.yaml":    "vendors: {zeta: {extra: {provider: {n: 2}}, headers: {X-More: '1'}}, v1.5: {provides: [x]}}\n",
		"bots/list.yaml": "vendors:\n  - {name: alpha, provides: [other]}\n",
	})
	vars := map[string]string{"K1": "k1", "HOST": "h.test", "CHORUS_VENDORS_ZETA_CONFIG_API_BASE": "https://twin.test"}
	b, _ := load(t, dir, vars, Ask{Bot: "b"})
	if len(b.Vendors) != 3 || b.Vendors[0].Name != "zeta" || b.Vendors[1].Name != "alpha" || b.Vendors[2].Name != "v1.5" {
		t.Fatalf("vendors in file order, new ones last: %v", b.Vendors)
	}
	z := b.Vendors[0]
	if z.Config["openai_api_key"] != "k1\nk2" || z.Config["api_base"] != "https://twin.test" || z.Headers["X-Team"] != "chorus" || z.Headers["X-More"] != "1" {
		t.Errorf("config %q headers %q", map[string]string(z.Config), map[string]string(z.Headers))
	}
	provider, _ := z.Extra["provider"].(map[string]any)
	if provider["n"] != 2 || z.Extra["top_k"] != 40 || len(provider["order"].([]any)) != 2 {
		t.Errorf("extra %v", z.Extra)
	}
	write(t, dir, map[string]string{"keys/two": "changed"})
	vars["K1"] = "k9"
	if key, err := z.Get("openai_api_key"); err != nil || key != "k9\nchanged" {
		t.Errorf("a key that changed is read again: %q %v", key, err)
	}
	if err := os.Remove(filepath.Join(dir, "keys/two")); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Get("openai_api_key"); err == nil || !strings.Contains(err.Error(), "keys/two") {
		t.Errorf("a key whose file is gone: %v", err)
	}
	write(t, dir, map[string]string{"keys/two": "k2"})
	l, _ := load(t, dir, vars, Ask{Bot: "list"})
	if l.Vendors[1].Name != "alpha" || l.Vendors[1].Provides[0] != "other" {
		t.Errorf("Chapter3's list form: %v", l.Vendors)
	}
}

func TestServersSecretsProfilesBudgets(t *testing.T) {
	t.Parallel()
	b, problems := one(t, `
mcpServers:
  files: {command: npx, args: [-y, server], env: {MODE: x}, cwd: /srv, callTimeout: 1.5}
  net: {url: "https://mcp.test", headers: {X-A: b}}
  old: {type: sse, url: "https://old.test"}
  off: {command: x, disabled: true}
profiles:
  mine: {allow: ["tool:read:*"], deny: ["tool:bash:*"]}
secrets:
  github: {value: "$${literal}", hosts: [api.github.com]}
  short: test-value
budgets:
  soft: 0.5
  task: 2
  person: 10
  agent: {day: 1, month: 5}
  role: {Member: {day: 0}}
prices:
  x/new-1.5: {input: 3, output: 15, cacheRead: 0.3}
  home: {input: 0, output: 0}
`)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if len(b.MCPServers) != 3 || b.MCPServers[0].Type != "stdio" || b.MCPServers[1].Type != "http" || b.MCPServers[2].Type != "sse" {
		t.Fatalf("servers: %+v", b.MCPServers)
	}
	if s := b.MCPServers[0]; s.Command != "npx" || len(s.Args) != 2 || s.Env["MODE"] != "x" || s.Dir != "/srv" || s.StartTimeout.Seconds() != 30 || s.CallTimeout.Seconds() != 1.5 {
		t.Errorf("%+v", s)
	}
	if p := b.Profiles["mine"]; len(p.Allow) != 1 || len(p.Deny) != 1 || p.Ask != nil {
		t.Errorf("%+v", p)
	}
	if len(b.Secrets) != 2 || string(b.Secrets[0].Value) != "${literal}" || b.Secrets[0].Hosts[0] != "api.github.com" || string(b.Secrets[1].Value) != "test-value" {
		t.Errorf("secrets: %v", b.Secrets)
	}
	if len(b.Prices) != 2 || b.Prices["x/new-1.5"] != (Price{3, 15, 0.3, 3}) || b.Prices["home"] != (Price{}) {
		t.Errorf("prices: %v", b.Prices)
	}
	want := []Budget{{"agent", "", "day", 1}, {"agent", "", "month", 5}, {"person", "", "month", 10}, {"role", "Member", "day", 0}}
	if len(b.Budgets) != len(want) || b.BudgetSoft != 0.5 || *b.BudgetTask != 2 {
		t.Fatalf("budgets: %v", b.Budgets)
	}
	for i, got := range b.Budgets {
		if got != want[i] {
			t.Errorf("budget %d is %v, want %v", i, got, want[i])
		}
	}
}

func TestPromptFiles(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"shared.yaml":       "systemPrompt: from shared\ncontextPrefix: inline\n",
		"bots/file.yaml":    "systemPromptFile: prompts/a.md\n",
		"bots/prompts/a.md": "from a file",
		"bots/both.yaml":    "systemPromptFile: prompts/a.md\nsystemPrompt: inline holds\n",
		"bots/escape.yaml":  "systemPromptFile: ../shared.yaml\n",
		"bots/link.yaml":    "systemPromptFile: link\n",
		"bots/none.yaml":    "contextPrefixFile: nothing.md\n",
	})
	if err := os.Symlink("../shared.yaml", filepath.Join(dir, "bots/link")); err != nil {
		t.Fatal(err)
	}
	for bot, want := range map[string]string{"file": "from a file", "both": "inline holds", "": "from shared"} {
		if b, _ := load(t, dir, nil, Ask{Bot: bot}); b.SystemPrompt != want {
			t.Errorf("%s: %q, want %q", bot, b.SystemPrompt, want)
		}
	}
	if b, _ := load(t, dir, map[string]string{"CHORUS_SYSTEM_PROMPT_FILE": filepath.Join(dir, "bots/prompts/a.md")}, Ask{Bot: "both"}); b.SystemPrompt != "from a file" {
		t.Errorf("a file named in the environment: %q", b.SystemPrompt)
	}
	files, _ := ReadFiles(Options{Dir: dir, Env: env(nil)})
	for bot, want := range map[string]string{"escape": "must stand below", "link": "escapes", "none": "nothing.md"} {
		if _, problems := files.Bot(Ask{Bot: bot}); problems.Err() == nil || !strings.Contains(problems.Err().Error(), want) ||
			!strings.Contains(problems.Err().Error(), "bots/"+bot+".yaml:1:") {
			t.Errorf("%s: %v, want %q", bot, problems.Err(), want)
		}
	}
}

func TestBotsAndGuilds(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"bots/a.yaml": "", "bots/a-12.yaml": "", "bots/gpt-4.yaml": "", "bots/b-123456789012345678.yaml": "", "guilds/5.yaml": "",
		"bots/.hidden.yaml": "x: 1", "bots/prompt.md": "hello",
	})
	f, problems := ReadFiles(Options{Dir: dir, Env: env(nil)})
	if got := strings.Join(f.Bots(), " "); got != "a gpt-4" || problems != nil {
		t.Errorf("bots %q %v", got, problems)
	}
	if got := strings.Join(f.Guilds(), " "); got != "12 123456789012345678 5" {
		t.Errorf("guilds %q", got)
	}
	if !f.Has("a") || f.Has("b") {
		t.Error("Has")
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	vars := map[string]string{}
	for _, c := range []struct{ name, value, want string }{
		{"", "", "/home/config"}, {"CONFIG_PATH", "/c3", "/c3"}, {"CHORUS_CONFIG", "/ours", "/ours"},
	} {
		vars[c.name] = c.value
		if got := Folder("", "/home", env(vars)); got != c.want {
			t.Errorf("%v: %s, want %s", vars, got, c.want)
		}
	}
	if got := Folder("/flag", "/home", env(vars)); got != "/flag" {
		t.Error(got)
	}
}

func optionsOf(dir string, vars map[string]string) Options {
	return Options{Dir: dir, Settings: filepath.Join(dir, "settings.json"), Env: env(vars)}
}

func splitPath(path string) []string { return strings.Split(path, ".") }

// A pattern that cannot be used is found where it stands, when the file is read.
func TestProfilePatternsAreRead(t *testing.T) {
	t.Parallel()
	_, problems := one(t, `
profiles:
  mine:
    allow:
      - tool:read:.*
      - tool:bash:(?!rm).*
`)
	if err := problems.Err(); err == nil || !strings.Contains(err.Error(), "shared.yaml:6:9: profiles.mine.allow: invalid allow pattern 2") || !strings.Contains(err.Error(), "lookaround") {
		t.Errorf("%v", err)
	}
	if _, problems := one(t, `profiles: {mine: {deny: ['{"rule":"tool:bash:.*","roles":[]}']}}`); problems.Err() == nil {
		t.Error("a restriction of nobody is no rule")
	}
}
