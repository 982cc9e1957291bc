package app

import (
	"context"
	"errors"

	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/store"
	"chorus/internal/transport/discord"
)

// ClearContext implements discord.Talks.
func (h *discordHouse) ClearContext(ctx context.Context, thread chat.ThreadID, by chat.Principal) (int, error) {
	n, err := h.engine().Clear(ctx, thread, by.String())
	return n, h.orders.wrong(err)
}

// SaveContext implements discord.Talks.
func (h *discordHouse) SaveContext(ctx context.Context, rows []journal.Thread, by chat.Principal, description string) (discord.Saved, error) {
	if len(rows) == 0 {
		return discord.Saved{}, nothingSaved()
	}
	saved, err := h.app.saveContext(ctx, saving{rows: rows, by: by, description: description})
	if errors.Is(err, errNothingSaved) {
		return discord.Saved{}, nothingSaved()
	}
	return h.saved(saved), h.orders.wrong(err)
}

func nothingSaved() error {
	return command.Errorf(command.NotFound, "there is nothing to save: nothing has been said here since the last clear")
}

// saved shows a row, without secrets that somebody said.
func (h *discordHouse) saved(c store.SavedContext) discord.Saved {
	hide := h.app.Redactor()
	return discord.Saved{ID: c.ID, Agent: c.Agent, Description: hide.Text(c.Description), Summary: hide.Text(c.Summary), By: c.By, At: c.At,
		Messages: c.Messages, Quiet: !c.Quiet.IsZero()}
}

// SavedContexts implements discord.Talks.
func (h *discordHouse) SavedContexts(ctx context.Context, agent, place string) ([]discord.Saved, error) {
	found, err := h.DB.SavedContexts(ctx, store.ContextFilter{Agent: agent, Transport: room.Transport, Place: place})
	out := make([]discord.Saved, 0, len(found))
	for _, c := range found {
		out = append(out, h.saved(c))
	}
	return out, h.orders.wrong(err)
}

// RestoreContext implements discord.Talks.
func (h *discordHouse) RestoreContext(ctx context.Context, place, id string, rows []journal.Thread, by chat.Principal) (discord.Restored, error) {
	saved, err := h.app.savedNamed(ctx, store.ContextFilter{Transport: room.Transport, Place: place}, id)
	if err != nil {
		return discord.Restored{}, h.orders.wrong(err)
	}
	var own []journal.Thread
	for _, row := range rows {
		if row.Agent == saved.Agent {
			own = append(own, row)
		}
	}
	out, err := h.app.restoreContext(ctx, saved, own, by.String())
	out.Saved = h.saved(saved)
	return out, h.orders.wrong(err)
}
