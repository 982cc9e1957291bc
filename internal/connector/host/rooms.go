package host

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/connector/publish"
	"chorus/internal/journal"
	"chorus/internal/room/route"
)

// historyOf is how many messages of a room an agent sees when it joins. If only
// characters are limited it is a number that they will hardly reach.
func historyOf(settings *config.Bot) int {
	if settings.WindowMessages > 0 {
		return settings.WindowMessages
	}
	return 200
}

// Display implements connector.Agents. Without readable settings it uses the defaults.
func (h *Backend) Display(thread chat.ThreadID) publish.Display {
	settings, err := h.App.Settings.BotFor(journal.Thread{ID: thread, Agent: thread.Agent(), Place: thread.Place()})
	if err != nil {
		h.App.Logs.LogOnce(err.Error(), "config")
		return publish.Display{Name: thread.Agent()}
	}
	m := publish.Display{Room: route.Routing(settings.Routing) == route.Room, ToolOutput: settings.ToolOutputVisible,
		Thinking: settings.DebugThinking, NotifyPeople: settings.NotifyPeople, KeepDeleted: settings.Retention == "keep", Name: settings.InnerName, Footer: settings.Footer, Price: h.pricing(settings)}
	if m.Room && !settings.IsSet("footer") {
		m.Footer = "off" // others in a room read messages as they are
	}
	return m
}

// Trigger brings something that no platform reports to a room, through the bot
// of its agent, and waits until it is in the journal.
func (h *Host) Trigger(ctx context.Context, t connector.Trigger) error {
	h.mu.Lock()
	backends := slices.Collect(maps.Values(h.backends))
	h.mu.Unlock()
	for _, b := range backends {
		if bot := b.botOf(t.Agent); bot != nil {
			return bot.Trigger(ctx, t)
		}
	}
	return fmt.Errorf("no connected bot speaks for the agent %s", t.Agent)
}

// botOf is the connected bot that posts for an agent; nil: none does.
func (h *Backend) botOf(agent string) *connector.Bot {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.Bots {
		if h.speaksFor(b.Name, agent) {
			return h.live[b.Name]
		}
	}
	return nil
}
