package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTypedValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, text, path string
		value           any
	}{
		{"temperature", "0.5", "temperature", 0.5},
		{"max_tokens", "400", "maxTokens", 400},
		{"model", "demo/echo", "continuationModel", "demo/echo"},
		{"replyOnName", "yes", "replyOnName", true},
		{"stopSequences", "a, b", "stopSequences", []any{"a", "b"}},
		{"recencyWindow.messages", "20", "recencyWindow.messages", 20},
		{"recencyWindow", "20", "recencyWindow.messages", 20},
		{"permissions", "locked", "permissions", "locked"},
		{"systemPrompt", "${HOME}", "systemPrompt", "${HOME}"},
	} {
		got, err := AgentFile.Read(c.key, c.text)
		if err != nil || got.Path != c.path || !reflect.DeepEqual(got.Value, c.value) {
			t.Errorf("%s=%s: %+v, %v", c.key, c.text, got, err)
		}
	}
	for _, c := range []struct{ key, text, wrong string }{
		{"temprature", "1", `unknown key "temprature"; did you mean "temperature"?`},
		{"temperature", "9", "temperature must be 0 to 2, not 9"},
		{"routing", "rooms", `did you mean "room"?`},
		{"maxTokens", "many", "maxTokens must be a whole number"},
		{"vendors", "x", "vendors cannot be set in agent.json"},
		{"discordToken", "x", "discordToken cannot be set in agent.json"},
		{"durability", "full", "durability cannot be set in agent.json"},
		{"timeouts.toolMs", "3", "cannot be set"},
		{"", "x", "unknown key"},
		{"retry", "x", "retry has keys of its own: enabled, baseDelayMs"},
	} {
		if got, err := AgentFile.Read(c.key, c.text); err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "left out") {
			t.Errorf("%s=%s: %+v, %v", c.key, c.text, got, err)
		}
	}
	if _, err := ChannelPin.Key("sandbox"); err == nil {
		t.Error("a pin may set the sandbox")
	}
}

// What may be typed may also be read: each key that a layer offers is one that it takes.
func TestKeysOfALayer(t *testing.T) {
	t.Parallel()
	keys := AgentFile.Keys()
	if len(keys) < 30 {
		t.Fatalf("%d keys", len(keys))
	}
	for _, k := range keys {
		if got, err := AgentFile.Key(k.Path); err != nil || got.Path != k.Path {
			t.Errorf("%s: %v, %v", k.Path, got.Path, err)
		}
		root, _, _ := strings.Cut(k.Path, ".")
		if !AgentFile.Knows(root) {
			t.Errorf("agent.json does not know %s", root)
		}
	}
	if AgentFile.Knows("vendors") || AgentFile.Knows("channelId") || !AgentFile.Knows("max_tokens") {
		t.Error("agent.json knows the wrong names")
	}
}

// Whatever is typed, what comes of it is taken by the merge without a word.
func TestTypedValuesMerge(t *testing.T) {
	t.Parallel()
	files, _ := ReadFiles(Options{Dir: t.TempDir(), Env: env(nil)})
	keys := AgentFile.Keys()
	rapid.Check(t, func(t *rapid.T) {
		key := keys[rapid.IntRange(0, len(keys)-1).Draw(t, "key")]
		text := rapid.OneOf(rapid.SampledFrom(slices.Concat(key.Choices, []string{"1", "0", "true", "0.5", "a,b"})), rapid.String()).Draw(t, "text")
		got, err := AgentFile.Read(key.Path, text)
		if err != nil {
			return
		}
		given := map[string]any{}
		put(given, strings.Split(got.Path, "."), got.Value)
		b, problems := files.Bot(Ask{Bot: "x", Agent: given})
		for _, p := range problems {
			if !strings.Contains(p.Text, "hardMax") { // two keys that speak of each other
				t.Fatal(problems)
			}
		}
		if b == nil || !b.IsSet(got.Path) || b.Origin(got.Path).Layer != AgentFile {
			t.Fatalf("%s=%q is not set", key.Path, text)
		}
	})
}
