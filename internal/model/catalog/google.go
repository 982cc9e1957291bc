package catalog

import "chorus/internal/ledger"

// gemini returns a row of Google's table. Gemini has the same window for all models,
// caches by itself, and charges nothing for writing to the cache.
func gemini(model string, in, out, read ledger.Nanos) Entry {
	return Entry{
		Provider: "google", Model: model, ContextWindow: 1_048_576, MaxOutput: 65_536,
		Price:  ledger.Price{Input: in, Output: out, CacheRead: read, CacheWrite: in},
		Images: true, Tools: true, Thinking: true, ThinksAlone: true,
	}
}

// levelled marks a Gemini that thinks by level instead of budget.
func levelled(e Entry) Entry { e.Adaptive = true; return e }

// unasked marks a model that thinks only if asked to.
func unasked(e Entry) Entry { e.ThinksAlone = false; return e }

// unsampled marks a model without temperature and top-p.
func unsampled(e Entry) Entry { e.NoSampling = true; return e }

// local returns an entry for any model that runs on the user's own machine. Its server knows what it can do.
// The window is large enough for a long conversation and small enough for such a machine.
func local(model string) Entry {
	return Entry{
		Provider: "ollama", Model: model, ContextWindow: 32_768, MaxOutput: 8_192, Free: true,
		Prefill: true, Thinking: true, Images: true, Tools: true,
	}
}
