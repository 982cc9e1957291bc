package host

import (
	"errors"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/room/route"
)

// pastOf is how many messages of a room an agent knows when it comes there. Where only
// characters are limited it is a number that those will hardly reach.
func pastOf(settings *config.Bot) int {
	if settings.WindowMessages > 0 {
		return settings.WindowMessages
	}
	return 200
}

// Manner implements connector.Agents. What cannot be read leaves a conversation as it is shown by default.
func (h *Backend) Display(thread chat.ThreadID) connector.Display {
	settings, err := h.App.Settings.BotFor(journal.Thread{ID: thread, Agent: thread.Agent(), Place: thread.Place()})
	if err != nil {
		h.App.Logs.LogOnce(err.Error(), "config")
		return connector.Display{Name: thread.Agent()}
	}
	m := connector.Display{Room: route.Routing(settings.Routing) == route.Room, ToolOutput: settings.ToolOutputVisible,
		Thinking: settings.DebugThinking, Name: settings.InnerName, Footer: settings.Footer, Price: h.pricing(settings)}
	if m.Room && !settings.IsSet("footer") {
		m.Footer = "off" // what is said in a room is read by others as it stands
	}
	return m
}

// Happen brings something to a room that no platform tells of, through the bot that speaks
// for its agent.
func (host *Host) Trigger(e connector.Trigger) error {
	host.mu.Lock()
	h := host.backend
	host.mu.Unlock()
	if h == nil {
		return errors.New("no bot is connected to Discord here")
	}
	for _, b := range h.Bots {
		h.mu.Lock()
		bot := h.live[b.Name]
		h.mu.Unlock()
		if bot != nil && h.Serves(b.Name, chat.ThreadID("discord:x:x@"+e.Agent)) {
			return bot.Trigger(e)
		}
	}
	return fmt.Errorf("no bot on Discord speaks for the agent %s", e.Agent)
}
