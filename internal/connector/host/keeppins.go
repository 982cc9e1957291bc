package host

import (
	"context"
	"slices"

	"chorus/internal/room"
	"chorus/internal/room/pins"
	"chorus/internal/settings"
)

// KeepPins implements connector.Pins. The first connected bot reports the problems.
func (h *Backend) KeepPins(ctx context.Context, bot string, in room.Channel, list []room.Message) ([]pins.Trouble, error) {
	if err := h.App.Settings.Pins.Keep(ctx, h.App.DB, in.ID, settings.PinnedHere{Parent: in.Parent, Pins: list}); err != nil || len(list) == 0 {
		return nil, err
	}
	h.mu.Lock()
	first := slices.IndexFunc(h.Bots, func(b Account) bool { _, ok := h.selves[b.Name]; return ok })
	h.mu.Unlock()
	if first >= 0 && h.Bots[first].Name != bot {
		return nil, nil
	}
	var wrong []pins.Trouble
	for _, b := range h.Bots {
		h.mu.Lock()
		self := h.selves[b.Name]
		h.mu.Unlock()
		_, found, err := h.App.Settings.BotAt(ctx, room.Agent{Name: h.answering(ctx, b.Name, in), User: self.ID, Username: self.Name}, in.Guild, in.ID)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			if !slices.Contains(wrong, t) {
				wrong = append(wrong, t)
			}
		}
	}
	return wrong, nil
}
