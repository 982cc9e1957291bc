package catalog

import "chorus/internal/ledger"

// gemini is a row of Google's table. It has one window for all, caches by itself,
// and asks nothing for writing to the cache.
func gemini(model string, in, out, read ledger.Nanos) Entry {
	return Entry{
		Provider: "google", Model: model, ContextWindow: 1_048_576, MaxOutput: 65_536,
		Price:  ledger.Price{Input: in, Output: out, CacheRead: read, CacheWrite: in},
		Images: true, Tools: true, Thinking: true, ThinksAlone: true,
	}
}

// levelled is a Gemini that thinks by level instead of budget.
func levelled(e Entry) Entry { e.Adaptive = true; return e }

// unasked is a model that thinks only when it is asked to.
func unasked(e Entry) Entry { e.ThinksAlone = false; return e }

// unsampled is a model without temperature and top-p.
func unsampled(e Entry) Entry { e.NoSampling = true; return e }

// local is any model that runs at home. What it can do its server knows; the
// window is one that a long conversation needs and a home machine can hold.
func local(model string) Entry {
	return Entry{
		Provider: "ollama", Model: model, ContextWindow: 32_768, MaxOutput: 8_192, Free: true,
		Prefill: true, Thinking: true, Images: true, Tools: true,
	}
}
