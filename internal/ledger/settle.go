package ledger

import "chorus/internal/chat"

// leastThinking is what providers raise a smaller budget for thinking to.
const leastThinking = 1024

// MaxOutput is what answers under these settings are limited to, with what providers may
// add for thinking; 0: the settings say nothing.
func MaxOutput(s chat.Settings) int {
	if s.MaxTokens <= 0 || s.ThinkingBudget <= 0 {
		return max(0, s.MaxTokens)
	}
	return s.MaxTokens + max(s.ThinkingBudget, leastThinking)
}

// Settle is the entry of an attempt that is over; input is the estimate of what was sent.
// Where the provider counted, its count is taken; where it refused before it began, nothing
// was spent; else what was seen of the answer is counted.
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
