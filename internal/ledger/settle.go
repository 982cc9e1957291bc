package ledger

import "chorus/internal/chat"

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

// Settle returns the entry of an attempt that is over. input is the estimate of what was sent.
// If the provider counted, its count is used. If it refused before it began, nothing was
// spent. Otherwise the received part of the answer is counted.
func (e Entry) Settle(price Price, input int, said chat.Said) Entry {
	e.How, e.Usage = ByUsage, said.Usage
	if said.Usage.Total() == 0 && (said.Error == nil || said.Error.Kind == "network" || said.Error.Kind == "stopped") {
		out := 0
		for _, block := range said.Blocks {
			if t, ok := block.(chat.Text); ok {
				out += (len(t.Text) + 3) / 4
			}
		}
		e.How, e.Usage = Estimate, chat.Usage{Input: input, Output: out}
	}
	if e.Settled = price.Cost(e.Usage); said.Cost > 0 && !price.Known() {
		e.Settled = said.Cost
	}
	return e
}
