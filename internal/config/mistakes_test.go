package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every mistake is named with its place and what to do.
func TestMistakesInFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"maxTokns: 5":                                  `shared.yaml:1:1: unknown key "maxTokns"; did you mean "maxTokens"?`,
		"max_tokns: 5":                                 `unknown key "max_tokns"; did you mean "maxTokens"?`,
		"\n\nqqqqqqqqqqqq: 5":                          `shared.yaml:3:1: unknown key "qqqqqqqqqqqq"`,
		"recencyWindow: {mesages: 4}":                  `shared.yaml:1:17: unknown key "mesages"; did you mean "messages"?`,
		"retry: {x: 1}":                                `unknown key "x"; retry has enabled, baseDelayMs`,
		"maxTokens: 1\nmax_tokens: 2":                  `shared.yaml:2:1: "max_tokens" and "maxTokens" (line 1) are the same key; keep one`,
		"name: a\ninnerName: b":                        `"innerName" and "name" (line 1) are the same key`,
		"model: a\ncontinuation_model: b":              "are the same key",
		"recencyWindow: 4\nrecency_window_messages: 5": "are the same key",
		"retry: {maxRetries: 1}\nllmRetries: 2":        "are the same key",
		"maxTokens: 1\nmaxTokens: 2":                   `shared.yaml:2:1: mapping key "maxTokens" already defined`,
		"maxTokens: many":                              `shared.yaml:1:12: maxTokens must be a whole number, not the text "many"`,
		"maxTokens: 0":                                 "maxTokens must be 1 or more, not 0",
		"temperature: 3":                               "temperature must be 0 to 2, not 3",
		"temperature: .inf":                            "temperature must be a number",
		"topP: 1.5":                                    "topP must be 0 to 1, not 1.5",
		"rollingThreshold: 0":                          "rollingThreshold must be 1 or more, not 0",
		"recencyWindow: many":                          "recencyWindow.messages must be a whole number",
		"recencyWindow: -1":                            "recencyWindow.messages must be 0 or more, not -1",
		"mode: prefil":                                 `mode must be one of prefill, chat, not the text "prefil"; did you mean "prefill"?`,
		"includeImages: maybe":                         `includeImages must be true or false, not the text "maybe"`,
		"stopSequences: x":                             `stopSequences must be a list of texts, [a, b], not the text "x"`,
		"stopSequences: [a, 5]":                        "entry 2 is 5",
		"innerName: 42":                                "innerName must be a text, not 42; put it in quotes",
		"retry: 5":                                     "retry must be an object with keys of its own, not 5",
		"vendors: 5":                                   "vendors must be an object",
		"vendors: [5]":                                 "each entry of the list vendors must be an object with a name",
		"mcp_servers: [{command: x}]":                  "each entry of the list mcpServers must be an object with a name",
		"mcpServers: {a: {}}":                          `shared.yaml:1:14: the MCP server "a" needs a command or a url`,
		"mcpServers: {a: {command: x, url: y}}":        "has both a command and a url",
		"mcpServers: {a: {type: sse, command: x}}":     "is of type sse and needs a url",
		"mcpServers: {a: {type: stdio, url: x}}":       "is of type stdio and needs a command",
		"prices: {a: {input: 3}}":                      `shared.yaml:1:10: the price of "a" needs both input and output`,
		"prices: {a: {}}":                              `the price of "a" needs both input and output`,
		"prices: {a: {input: -1, output: 2}}":          "prices.a.input must be 0 or more, not -1",
		"secrets: {a: {hosts: [x]}}":                   `the secret "a" has no value`,
		"searchProviders: {a: {key: k}}":               `the search provider "a" needs a type: brave, tavily, exa, kagi, searxng`,
		"toolHooks: {a: {tools: bash}}":                `the tool hook "a" has no command`,
		"searchProviders: {brave: {}}":                 `the search provider "brave" has no key`,
		"searchProviders: {searxng: {key: k}}":         `the search provider "searxng" needs the url of its instance`,
		"searchProviders: {searxng: {url: localhost}}": `the url of the search provider "searxng" must begin with https:// or http://`,
		"systemPrompt: ${NOT_SET}":                     "shared.yaml:1:15: systemPrompt: the environment variable NOT_SET is not set",
		"stopSequences: ['${NOT_SET}']":                "the environment variable NOT_SET is not set",
		"systemPrompt: ${a b}":                         "${a b} does not name an environment variable",
		"systemPrompt: ${open":                         "a ${ without its }",
		"discordToken: ${NOT_SET}":                     "the environment variable NOT_SET is not set",
		"discordToken: file:none":                      "discordToken: read the secret: open ",
		"discordToken: [a]":                            "discordToken must be a text, not a list",
		"vendors: {a: {config: {api_key: {b: c}}}}":    "must be a text, not a object",
		"a: [":                            "shared.yaml:1:",
		"- a\n- b":                        "shared.yaml:1:1: want keys with values (key: value), not a list",
		"hello":                           "want keys with values",
		"maxTokens: 1\n---\nmaxTokens: 2": "a second document begins here",
		"maxTokens: *nobody":              "there is no anchor &nobody",
		"vendors: {'': {}}":               "an entry of vendors needs a name",
		"plugin_config: {}":               `unknown key "plugin_config": tools come with Chorus and from mcpServers`,
		"preserveThinkingContext: true":   "the journal keeps every answer whole already",
		strings.Repeat("[", 100):          "nested deeper than",
		strings.Repeat("- ", 100) + "x":   "nested deeper than",
		"systemPrompt: " + strings.Repeat("x", largestFile): "larger than 262144 bytes",
	} {
		_, problems := one(t, text)
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// All are told, not only the first, each with its place.
func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"shared.yaml": "temperature: 9\ntopP: 9\nunknown1: 1\n", "guilds/1.yaml": "databaseUrl: x\n", "bots/a.yaml": "maxTokens: x\n", "bots/b.yaml": "a: [\n",
		"settings.json": `{"maxTokens": -1}`,
	})
	_, problems := ReadFiles(Options{Dir: dir, Settings: filepath.Join(dir, "settings.json"), Env: env(nil)})
	if len(problems) != 7 || len(problems.Errors()) != 7 || len(problems.Warnings()) != 0 {
		t.Errorf("%d problems:\n%v", len(problems), problems)
	}
	for _, p := range problems {
		if p.Place.File == "" || p.Place.Line == 0 || p.Place.Column == 0 {
			t.Errorf("%v has no place", p)
		}
	}
	if !strings.Contains(problems.Error(), "databaseUrl belongs to the whole process: set it in shared.yaml") {
		t.Error(problems)
	}
	if b, more := Load(Options{Dir: dir, Env: env(nil)}, Ask{}); b != nil || more.Err() == nil {
		t.Error("a broken version was loaded")
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"shared.yaml": "discordToken: test-token\nrecencyWindow: {characters: 10, hardMax: 5}\ndatabaseUrl: postgres://u:test-pw@h/d\nnatsUrl: nats://h\n" +
			"vendors: {a: {config: {anthropic_api_ke: x, api_base: http://x}, headers: {Authorization: Bearer test-key}}}\n",
		"share.yaml": "", "bots/x.yml": "", "bot/y": "", "secret": "s",
	})
	b, problems := load(t, dir, nil, Ask{})
	text := problems.Error()
	for _, want := range []string{
		"shared.yaml:1:15: discordToken is a secret in plain text; write ${VARIABLE} or file:PATH instead",
		"databaseUrl is a secret in plain text",
		"vendors.a.headers.Authorization is a secret in plain text",
		"recencyWindow.hardMax (5) is below recencyWindow.characters (10)",
		`no vendor we know has a setting "anthropic_api_ke"; did you mean "anthropic_api_key"?`,
		"share.yaml: not read", "x.yml: not read", `did you mean "bots"?`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "natsUrl") || strings.Contains(text, "api_base") || strings.Contains(text, "test-") {
		t.Errorf("warned of what is no secret, or told one:\n%s", text)
	}
	if b.WindowHardMax != 10 {
		t.Error(b.WindowHardMax)
	}
}

// What agent.json or `/settings` has wrong is left out with a warning.
func TestWrongValuesFromElsewhere(t *testing.T) {
	t.Parallel()
	b, problems := load(t, t.TempDir(), nil, Ask{Bot: "x", Guild: "1", Agent: map[string]any{"temperature": 9, "vendors": map[string]any{}, "model": "m", "nonsense": 1, "systemPrompt": "${HOME}"},
		GuildSettings: map[string]any{"permissions": "locked", "databaseUrl": "x"}})
	if len(problems.Warnings()) != 4 || b.Temperature != nil || b.ContinuationModel != "m" || b.SystemPrompt != "${HOME}" || b.Permissions != "locked" {
		t.Errorf("%v\n%+v", problems, b)
	}
	if _, problems := Load(Options{Dir: t.TempDir(), Env: env(nil)}, Ask{Flags: map[string]any{"nope": 1, "maxTokens": "x"}}); len(problems.Errors()) != 2 {
		t.Errorf("wrong flags: %v", problems)
	}
}

func TestUnreadableFolder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"bots": "a file", "settings.json/x": ""})
	if err := os.MkdirAll(filepath.Join(dir, "shared.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, problems := ReadFiles(Options{Dir: dir, Settings: filepath.Join(dir, "settings.json"), Env: env(nil)}); len(problems.Errors()) != 3 {
		t.Errorf("%v", problems)
	}
}

// settings.json is JSON, with all its strictness.
func TestSettingsIsJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n  \"maxTokens\": 5,\n}":     "settings.json:3:1: invalid character",
		"maxTokens: 5":                  "settings.json:1:1: invalid character",
		`{"maxTokens": 5} {}`:           "settings.json:1:18: invalid character",
		`{`:                             "settings.json:1:1: unexpected end of JSON input",
		`[]`:                            "settings.json:1:1: want keys with values",
		`{"maxTokns": 5}`:               `settings.json:1:2: unknown key "maxTokns"; did you mean "maxTokens"?`,
		`{"maxTokens": "many"}`:         "settings.json:1:15: maxTokens must be a whole number",
		`{"maxTokens":1,"maxTokens":2}`: "already defined",
	} {
		dir := folder(t, map[string]string{"settings.json": text})
		_, problems := ReadFiles(optionsOf(dir, nil))
		if err := problems.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"", "  \n", "\ufeff{}", "{\n\t\"maxTokens\":\t5\n}"} {
		if _, problems := ReadFiles(optionsOf(folder(t, map[string]string{"settings.json": text}), nil)); problems != nil {
			t.Errorf("%q: %v", text, problems)
		}
	}
}
