package engine

import (
	"cmp"
	"errors"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// payed is who a run is charged to: always somebody, be it the system on behalf of
// the agent. Rights are another matter: nobody has none.
func payed(p chat.Principal, agent string) chat.Principal {
	if p.String() == "" {
		return chat.Principal{Kind: chat.TheSystem, ID: agent}
	}
	return p
}

// leastThinking is what providers raise a smaller budget for thinking to.
const leastThinking = 1024

// mostOutput is what the answers of a run are limited to, with what providers may add
// for thinking; 0: nothing was said.
func mostOutput(s chat.Settings) int {
	if s.MaxTokens <= 0 || s.ThinkingBudget <= 0 {
		return max(0, s.MaxTokens)
	}
	return s.MaxTokens + max(s.ThinkingBudget, leastThinking)
}

// worst is the most that a request can cost. Summaries have limits of their own.
func (h *host) worst(asked chat.Asked, model string) (ledger.Price, ledger.Nanos) {
	price, out := h.setup.Price(model)
	if h.most > 0 && asked.Purpose == chat.ForTurn && (out == 0 || h.most < out) {
		out = h.most
	}
	return price, price.Worst(asked.Tokens, out)
}

// reserve adds the worst case of a request to the commit that asks for it, with the
// ceilings it must keep to. A request whose end is written with it was never sent.
func (h *host) reserve(c *journal.Commit, asked chat.Asked) error {
	price, worst := h.worst(asked, asked.Model)
	e := h.entry(asked, ledger.Entry{Reserved: worst})
	c.Money = append(c.Money, e)
	ended := slices.ContainsFunc(c.Events, func(ev chat.Event) bool {
		said, ok := ev.Body.(chat.Said)
		return ok && said.Step == asked.Step && said.Attempt == asked.Attempt
	})
	if ended {
		return nil
	}
	c.Ceilings = h.setup.Budget.For(e.Thread, e.Agent, e.Payer, e.Run)
	if c.Ceilings != nil && !price.Known() {
		return &ledger.Refusal{Stand: ledger.Stand{Limit: c.Ceilings.Limits[0]}, Unpriced: asked.Model}
	}
	return nil
}

// refused remembers at which soft limit the room is about to be asked.
func (h *host) refused(err error) {
	var r *ledger.Refusal
	if errors.As(err, &r) && r.Soft {
		h.warned = r
	}
}

func (h *host) entry(asked chat.Asked, e ledger.Entry) ledger.Entry {
	e.Run, e.Step, e.Attempt = h.runID(), asked.Step, asked.Attempt
	e.Thread, e.Agent, e.Payer, e.Model = h.a.thread, h.agent, payed(h.payer, h.agent), asked.Model
	return e
}

// settled is what an attempt came to. Where the provider counted, it counts;
// where it refused before it began, nothing was spent; else we count what we saw.
func (h *host) settled(b chat.Said) ledger.Entry {
	asked := h.asked
	asked.Step, asked.Attempt, asked.Model = b.Step, b.Attempt, cmp.Or(asked.Model, h.model)
	price, worst := h.worst(h.asked, asked.Model)
	e := h.entry(asked, ledger.Entry{Reserved: worst, How: ledger.ByUsage, Usage: b.Usage})
	if b.Usage.Total() == 0 && (b.Error == nil || b.Error.Kind == "network" || b.Error.Kind == "stopped") {
		out := 0
		for _, block := range b.Blocks {
			if t, ok := block.(chat.Text); ok {
				out += (len(t.Text) + 3) / 4
			}
		}
		e.How, e.Usage = ledger.Estimate, chat.Usage{Input: h.asked.Tokens, Output: out}
	}
	e.Settled = price.Cost(e.Usage)
	return e
}
