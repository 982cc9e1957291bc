package catalog

import (
	"strings"
	"testing"

	"chorus/internal/chat"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	cases := []struct {
		provider, model string
		want            string
		known           bool
	}{
		{"anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5", true},
		{"anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5", true},
		{"anthropic", "claude-sonnet-4-5@20250929", "claude-sonnet-4-5", true},
		{"anthropic", "claude-sonnet-4-20250514", "claude-sonnet-4", true},
		{"anthropic", "claude-3-5-haiku-latest", "claude-3-5-haiku", true},
		{"anthropic", "claude-opus-4-9", "claude-opus-4-9", false}, // a version of its own, not a dated claude-opus-4
		{"anthropic", "claude-opus-4-", "claude-opus-4-", false},
		{"anthropic", "gpt-4o", "gpt-4o", false},
		{"openai", "gpt-4o-2024-08-06", "gpt-4o", true},
		{"openai", "gpt-4o-mini-2024-07-18", "gpt-4o-mini", true},
		{"openai", "gpt-5", "gpt-5", true},
		{"openai", "gpt-5.9", "gpt-5.9", false},
		{"openai", "gpt-5-mini", "gpt-5-mini", true},
		{"openai", "o3", "o3", true},
		{"openai", "o3-pro-2025-06-10", "o3-pro", true},
		{"openai", "gpt-5.1-codex-max", "gpt-5.1-codex-max", true},
		{"completions", "davinci-002", "davinci-002", true},
		{"openai", "o3-mini-2025-01-31", "o3-mini", true},
		{"openai", "llama3.2:3b", "llama3.2:3b", false},
		{"demo", "guide", "guide", true},
		{"google", "gemini-2.5-pro", "gemini-2.5-pro", true},
		{"google", "gemini-2.5-flash-lite", "gemini-2.5-flash-lite", true},
		{"google", "gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash", true},
		{"google", "gemini-4-pro", "gemini-4-pro", false},
		{"ollama", "llama3.2:3b", "llama3.2:3b", false},
		{"", "", "", false},
	}
	for _, c := range cases {
		got, known := Lookup(c.provider, c.model)
		if got.Model != c.want || known != c.known {
			t.Errorf("Lookup(%q, %q) = %q, %v; want %q, %v", c.provider, c.model, got.Model, known, c.want, c.known)
		}
	}
}

func TestUnknownIsUsable(t *testing.T) {
	t.Parallel()
	e, known := Lookup("openai", "my-own-model")
	if known || e.ContextWindow != 128_000 || e.MaxOutput != 8_192 || e.Price.Known() || !e.Tools {
		t.Fatalf("unknown model: %+v, known %v", e, known)
	}
}

func TestLocalModelsAreFree(t *testing.T) {
	t.Parallel()
	e, known := Lookup("ollama", "qwen3:8b")
	if known || !e.Free || e.Price.Known() || e.ContextWindow < e.MaxOutput || e.ContextWindow > 64_000 || !e.Tools || !e.Prefill {
		t.Fatalf("local model: %+v, known %v", e, known)
	}
}

func TestPricesAreWhatTheySay(t *testing.T) {
	t.Parallel()
	// One million tokens of each kind: $3 + $15 + $0.30 + $3.75 = $22.05.
	e, _ := Lookup("anthropic", "claude-sonnet-4-5")
	u := chat.Usage{Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000, CacheWrite: 1_000_000}
	if got, want := e.Price.Cost(u), int64(22_050_000_000); got != want {
		t.Errorf("cost = %d nanos, want %d", got, want)
	}
}

func TestCatalogIsSane(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range All() {
		name := e.Provider + "/" + e.Model
		if seen[name] {
			t.Errorf("%s: twice in the catalog", name)
		}
		seen[name] = true
		if e.ContextWindow < e.MaxOutput || e.MaxOutput <= 0 {
			t.Errorf("%s: window %d, output %d", name, e.ContextWindow, e.MaxOutput)
		}
		if e.Free == e.Price.Known() {
			t.Errorf("%s: must be either free or priced", name)
		}
		p := e.Price
		if p.Known() && (p.CacheRead > p.Input || p.CacheWrite < p.Input || p.Output < p.Input) {
			t.Errorf("%s: odd prices %+v", name, p)
		}
		if e.Prefill && e.Adaptive {
			t.Errorf("%s: no adaptive model takes a prefill", name)
		}
		if e.Provider == "openai" && e.Prefill {
			t.Errorf("%s: OpenAI's models take no prefill", name)
		}
		if (e.Responses || e.LeastEffort != "") && (e.Provider != "openai" || !e.Thinking) {
			t.Errorf("%s: only OpenAI's reasoning models are asked through Responses", name)
		}
		if strings.ToLower(e.Model) != e.Model {
			t.Errorf("%s: not lower case", name)
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d models", len(seen))
	}
}
