package engine

import (
	"cmp"
	"errors"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
)

// payerOf returns who a run is charged to: the person behind it, so that what a schedule spends
// counts against its owner's limits. Without such a person it is whoever acts, which may be the
// system on behalf of the agent. This gives no rights: the system principal has none.
func payerOf(p chat.Principal, agent string) chat.Principal {
	if p.String() == "" {
		return chat.Principal{Kind: chat.TheSystem, ID: agent}
	}
	return p.Person()
}

// worst returns the most that a request can cost. Summaries have limits of their own.
func (h *host) worst(asked chat.Asked, model string) (ledger.Price, ledger.Nanos) {
	price, out := h.setup.Price(model)
	if h.maxOutput > 0 && asked.Purpose == chat.ForTurn && (out == 0 || h.maxOutput < out) {
		out = h.maxOutput
	}
	return price, price.Worst(asked.Tokens, out)
}

// reserve adds the maximum cost of a request to the commit that records it, with the ceilings it
// must keep to. A request whose end is in the same commit was never sent.
func (h *host) reserve(c *journal.Commit, asked chat.Asked) error {
	price, worst := h.worst(asked, asked.Model)
	e := h.entry(asked, worst)
	c.Money = append(c.Money, e)
	ended := slices.ContainsFunc(c.Events, func(ev chat.Event) bool {
		said, ok := ev.Body.(chat.Said)
		return ok && said.Step == asked.Step && said.Attempt == asked.Attempt
	})
	if ended {
		return nil
	}
	under, err := h.setup.Budget.Under(e, h.within, price)
	c.Ceilings = under
	return err
}

// settled returns the ledger entry of an attempt that has ended.
func (h *host) settled(said chat.Said) ledger.Entry {
	asked := h.asked
	asked.Step, asked.Attempt, asked.Model = said.Step, said.Attempt, cmp.Or(asked.Model, h.model)
	price, worst := h.worst(asked, asked.Model)
	return h.entry(asked, worst).Settle(price, asked.Tokens, said)
}

func (h *host) entry(asked chat.Asked, reserved ledger.Nanos) ledger.Entry {
	return ledger.Entry{Run: h.runID(), Root: h.row.Parent.Root, Step: asked.Step, Attempt: asked.Attempt, Thread: h.a.thread, Agent: h.agent,
		Payer: payerOf(h.payer, h.agent), Model: asked.Model, Reserved: reserved}
}

// refused remembers the soft limit about which the room will be asked.
func (h *host) refused(err error) {
	if r, ok := errors.AsType[*ledger.Refusal](err); ok && r.Soft {
		h.warned = r
	}
}
