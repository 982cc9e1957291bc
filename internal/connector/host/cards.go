package host

import (
	"context"

	"chorus/internal/approval"
	"chorus/internal/connector"
	"chorus/internal/store"
)

// OpenCards implements connector.Approver: a bot's open approvals.
func (h *Backend) OpenCards(ctx context.Context, bot string) ([]connector.Card, error) {
	open, err := h.Approvals(ctx, store.ApprovalFilter{State: approval.Open})
	if err != nil {
		return nil, err
	}
	var out []connector.Card
	for _, a := range open {
		if a.Thread.Transport() != h.Platform.Name || !h.Serves(bot, a.Thread) {
			continue
		}
		rows, err := h.OutgoingFor(ctx, store.OutFilter{Platform: h.Platform.Name, Bot: bot, Thread: a.Thread})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Key == "ask/"+a.ID && r.ID != "" {
				out = append(out, connector.Card{Channel: r.Lane.Channel, Message: r.ID})
			}
		}
	}
	return out, nil
}
