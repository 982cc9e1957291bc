package app

import (
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/room/route"
	"chorus/internal/transport/discord"
)

// pastOf is how many messages of a room an agent knows when it comes there. Where only
// characters are limited it is a number that those will hardly reach.
func pastOf(settings *config.Bot) int {
	if settings.WindowMessages > 0 {
		return settings.WindowMessages
	}
	return 200
}

// Manner implements discord.Agents. What cannot be read leaves a conversation as it is shown by default.
func (h *discordHouse) Manner(thread chat.ThreadID) discord.Manner {
	settings, err := h.app.botFor(journal.Thread{ID: thread, Agent: thread.Agent(), Place: thread.Place()})
	if err != nil {
		h.app.logOnce(err.Error(), "config")
		return discord.Manner{Name: thread.Agent()}
	}
	m := discord.Manner{Room: route.Routing(settings.Routing) == route.Room, ToolOutput: settings.ToolOutputVisible,
		Thinking: settings.DebugThinking, Name: settings.InnerName, Footer: settings.Footer, Price: h.pricing(settings)}
	if m.Room && !settings.IsSet("footer") {
		m.Footer = "off" // what is said in a room is read by others as it stands
	}
	return m
}
