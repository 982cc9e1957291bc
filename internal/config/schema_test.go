package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "rewrite the reference in the guide")

// The schema takes what the reader takes and refuses what it refuses.
func TestSchema(t *testing.T) {
	t.Parallel()
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		r := &report{}
		root := parse(r, "f", Shared, []byte(text))
		if r.found != nil {
			t.Fatalf("%s: %v", text, r.found)
		}
		data, err := json.Marshal(root.plain())
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(v)
	}
	for _, k := range Keys() {
		good, _, _ := sample(k)
		for _, name := range append([]string{k.Path, snake(k.Path)}, k.Aliases...) {
			if err := valid(nested(name, good)); err != nil {
				t.Errorf("%s: %v", nested(name, good), err)
			}
		}
		if err := valid(nested(k.Path, "{a: {b: c}}")); err == nil && k.Kind != Free {
			t.Errorf("%s may be an object", k.Path)
		}
		if k.Least != nil && valid(nested(k.Path, plainNumber(*k.Least-1))) == nil {
			t.Errorf("%s may be below %v", k.Path, *k.Least)
		}
	}
	for _, good := range []string{
		"recencyWindow: 400", "idleSummary: true", "secrets: {a: file:x}", "mcp_servers: [{name: a, command: b}]", "vendors: [{name: a}]", "maxTokens: ${N}", "maxTokens: null", "vendors: {a: null}",
	} {
		if err := valid(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"maxTokns: 1", "recencyWindow: {x: 1}", "mode: x", "mcp_servers: [{command: b}]", "maxTokens: text", "stopSequences: x"} {
		if valid(bad) == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if s.Schema != "https://json-schema.org/draft/2020-12/schema" || s.Properties["temperature"].Description == "" {
		t.Error("no draft, or no hover texts")
	}
}

// The guide's reference is the table. `go test ./internal/config -run Guide -update` rewrites it.
func TestGuideHasTheTable(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "guides", "configuration.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- keys: written by go test ./internal/config -run Guide -update -->\n", "<!-- end of keys -->\n"
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost its marks", path)
	}
	want := "\n" + referencePage()
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the table of keys: run go test ./internal/config -run Guide -update", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRowsHideSecrets(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"shared.yaml": `
discordToken: test-token
databaseUrl: postgres://u:test-pw@${K2}/d
natsUrl: nats://h
systemPrompt: "a\nb"
vendors:
  a: {config: {api_key: test-key, api_base: "http://x", openai_api_key: "${K}"}}
mcpServers:
  m: {command: x, env: {GITHUB_TOKEN: test-token, MODE: y}}
secrets: {s: test-secret}
`})
	b, _ := load(t, dir, map[string]string{"K": "test-key-2", "K2": "h"}, Ask{})
	var all strings.Builder
	for _, r := range b.Rows() {
		all.WriteString(r.Key + " = " + r.Shown() + " from " + r.From() + "\n")
	}
	text := all.String()
	if strings.Contains(text, "test-") {
		t.Errorf("a secret is shown:\n%s", text)
	}
	for _, want := range []string{"api_base = http://x", "openai_api_key = ${K}", "natsUrl = nats://h", "env.MODE = y", "GITHUB_TOKEN = ••••", `systemPrompt = "a\nb"`, "shared.yaml:2\n", "temperature = – from built in"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	data, err := json.Marshal(struct {
		B       *Bot
		Secret  Secret
		Vendors []Vendor
	}{nil, b.DiscordToken, b.Vendors})
	if err != nil || strings.Contains(string(data), "test-") {
		t.Errorf("%s %v", data, err)
	}
	if strings.Contains(b.DiscordToken.String()+b.DiscordToken.GoString()+b.Vendors[0].Config.String()+b.Vendors[0].Config.GoString(), "test-") {
		t.Error("a secret prints itself")
	}
}
