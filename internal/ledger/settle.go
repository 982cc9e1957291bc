package ledger

import (
	"slices"

	"chorus/internal/chat"
)

// leastThinking is the value to which providers raise a smaller thinking budget.
const leastThinking = 1024

// MaxOutput returns the output limit under these settings, including what
// providers may add for thinking; 0 if the settings set none.
func MaxOutput(s chat.Settings) int {
	if s.MaxTokens <= 0 || s.ThinkingBudget <= 0 {
		return max(0, s.MaxTokens)
	}
	return s.MaxTokens + max(s.ThinkingBudget, leastThinking)
}

// Settle returns the entry of an attempt that is over. input is the estimate of what was sent. If the provider counted, its count is used.
// If it refused before it began, nothing was spent. Otherwise what was sent and what arrived is counted.
func (e Entry) Settle(price Price, input int, said chat.Said) Entry {
	e.How, e.Usage = ByUsage, said.Usage
	if out := max(written(said.Blocks), said.Received); said.Usage.Total() == 0 && (out > 0 || began(said.Error)) {
		e.How, e.Usage = Estimate, chat.Usage{Input: input, Output: (out + 3) / 4}
	}
	if e.Settled = price.Cost(e.Usage); said.Cost > 0 && !price.Known() {
		e.Settled = said.Cost
	}
	return e
}

// written is how many bytes a model wrote.
func written(blocks chat.Blocks) (n int) {
	for _, block := range blocks {
		switch b := block.(type) {
		case chat.Text:
			n += len(b.Text)
		case chat.Thinking:
			n += len(b.Text)
		case chat.ToolUse:
			n += len(b.Args)
		}
	}
	return n
}

// began reports whether a provider may have begun to work, as far as the failure says. Calls that somebody aborted have none.
func began(f *chat.Failure) bool {
	return f == nil || slices.Contains([]string{"network", "stopped", "stuck"}, f.Kind)
}
