package modelrouter

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/model/catalog"
)

// vendors is a set of vendors with everything: two of a file, one of them without a
// key, and the built-in ones with keys for anthropic and openrouter.
func vendors(t *testing.T) []Vendor {
	t.Helper()
	return Merge([]Vendor{
		declare(t, "empty", map[string]string{"openai_api_key": "${NOT_SET}"}, "gpt-*"),
		declare(t, "groq", map[string]string{"openai_api_key": "test-key", "api_base": "http://x"}, "llama-*", "gpt-oss*", `qwen-\d+b`),
		declare(t, "own-google", map[string]string{"google_api_key": "test-key"}, "gemini-*"),
	}, BuiltIn(env("ANTHROPIC_API_KEY", "test-key", "OPENROUTER_API_KEY", "test-key")))
}

var offered = Available{Providers: map[string]Offered{
	"openrouter": {Valid: true, Models: []string{"meta-llama/llama-3.3-70b", "deepseek/deepseek-chat:free"}},
	"anthropic":  {Valid: true, Models: []string{"claude-experimental", "secret-claude"}},
	"groq":       {Valid: true, Models: []string{"whisper-x"}},
}}

func TestResolve(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, want string }{
		// vendor/model and kind/model
		{"anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"},
		{"groq/anything at all", "groq/anything at all"},
		{"empty/gpt-4o", "empty/gpt-4o"}, // named: its error says which key is missing
		{"google/gemini-2.5-pro", "own-google/gemini-2.5-pro"},
		{"google/palm", "google/palm"},     // own-google has rules, and they say no
		{"openai/gpt-4o", "openai/gpt-4o"}, // groq and empty do not want it; no key for the built-in one
		{"openai/llama-3", "groq/llama-3"}, // of that kind, and with a key
		{"openai/gpt-oss", "groq/gpt-oss"}, //
		{"demo/echo", "demo/echo"},         //
		{"ollama/llama3:8b", "ollama/llama3:8b"},
		{"openrouter/anthropic/claude-sonnet-4.5", "openrouter/anthropic/claude-sonnet-4.5"},
		{"bedrock/anthropic.claude-3-haiku-20240307-v1:0", "bedrock/anthropic.claude-3-haiku-20240307-v1:0"},
		{"bedrock/arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-x", "bedrock/arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-x"},
		// the rules, in the order of the file
		{"llama-3.1-8b", "groq/llama-3.1-8b"},
		{"qwen-7b", "groq/qwen-7b"},
		{"gpt-oss-120b", "groq/gpt-oss-120b"}, // empty's rule fits too, but it has no key
		{"gemini-2.5-pro", "own-google/gemini-2.5-pro"},
		// the lists
		{"meta-llama/llama-3.3-70b", "openrouter/meta-llama/llama-3.3-70b"},
		{"deepseek/deepseek-chat:free", "openrouter/deepseek/deepseek-chat:free"},
		{"secret-claude", "anthropic/secret-claude"},
		// the catalog, and beginnings
		{"claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"},
		{"claude-unheard-of", "anthropic/claude-unheard-of"},
		{"gpt-9", "openai/gpt-9"},
		{"o3", "openai/o3"},
		{"o4-mini-2025-04-16", "openai/o4-mini-2025-04-16"},
		{"guide", "demo/guide"},
	} {
		got, err := Resolve(c.name, vendors(t), offered, catalog.All())
		if err != nil || got.String() != c.want {
			t.Errorf("%s: %v %v, want %s", c.name, got, err, c.want)
			continue
		}
		again, err := Resolve(got.String(), vendors(t), offered, catalog.All())
		if err != nil || again != got {
			t.Errorf("%s: the full name %s resolves to %v, %v", c.name, got, again, err)
		}
	}
}

func TestResolveSaysWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		want []string
	}{
		{"whisper-x", []string{`unknown model "whisper-x"`, "groq provides only llama-*, gpt-oss*", "empty provides only gpt-*", "anthropic does not list it", "no key for openai, google"}},
		{"sonnet", []string{"did you mean anthropic/claude-sonnet-4-5?"}},
		{"gpt4o", []string{"did you mean openai/gpt-4o"}},
		{"sonet-4-5", []string{"did you mean anthropic/claude-sonnet-4-5?"}},
		{"antropic/claude-x", []string{"did you mean anthropic/claude-x?"}},
		{"deepsek-chat", []string{"did you mean openrouter/deepseek/deepseek-chat:free?"}},
		{"nobody/best", []string{"providers: anthropic, bedrock, completions, demo, empty, google, groq, ollama, openai, openrouter, own-google", "chorus models"}},
		{"demo/", []string{"unknown model"}},
		{"/x", []string{"unknown model"}},
		{"", []string{"unknown model"}},
		{"olmo", []string{"unknown model"}},
		{"o1x", []string{"unknown model"}},
	} {
		got, err := Resolve(c.name, vendors(t), offered, catalog.All())
		var unknown *Unknown
		if !errors.As(err, &unknown) {
			t.Errorf("%s: %v, %v", c.name, got, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v lacks %q", c.name, err, want)
			}
		}
		if strings.Contains(err.Error(), "test-key") {
			t.Errorf("%v", err)
		}
	}
}

// TestResolveHolds: whatever resolves, resolves again to itself, and an explicit
// vendor is never left.
func TestResolveHolds(t *testing.T) {
	t.Parallel()
	vendors := vendors(t)
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.OneOf(
			rapid.StringMatching(`[a-z0-9/:.-]{0,20}`),
			rapid.SampledFrom([]string{"gpt-4o", "claude-3-opus", "llama-3", "gemini-1.5", "o1", "qwen-3b"}),
		).Draw(r, "name")
		if i := rapid.IntRange(-1, len(vendors)-1).Draw(r, "vendor"); i >= 0 {
			name = vendors[i].Name + "/" + name
		}
		got, err := Resolve(name, vendors, offered, catalog.All())
		if err != nil {
			return
		}
		again, err := Resolve(got.String(), vendors, offered, catalog.All())
		if err != nil || again != got {
			r.Fatalf("%q: %v, then %v %v", name, got, again, err)
		}
		i := slices.IndexFunc(vendors, func(v Vendor) bool { return v.Name == got.Vendor })
		if i < 0 || vendors[i].Kind != got.Kind || got.Model == "" {
			r.Fatalf("%q: %+v", name, got)
		}
		if first, rest, _ := strings.Cut(name, "/"); vendors[i].Declared && first == got.Vendor && rest != got.Model {
			r.Fatalf("%q: %+v", name, got)
		}
	})
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"", "/", "a/", "claude", "openrouter/a/b/c", "bedrock/arn:aws:x/y", "o1", "\xff/\xfe", "gpt-4o*"} {
		f.Add(seed)
	}
	built := BuiltIn(env("OPENAI_API_KEY", "test-key"))
	f.Fuzz(func(t *testing.T, name string) {
		got, err := Resolve(name, built, offered, catalog.All())
		if (err == nil) != (got.Model != "" && got.Vendor != "") {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	})
}
