package host

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/config"
	"chorus/internal/room"
)

// discordKin are the bots of this home that BOT_NAME leaves to other processes: what is for
// one of them is not ours to answer, and not ours to tell.
func (h *Host) discordKin() ([]Bot, error) {
	only := h.Env("BOT_NAME")
	if only == "" {
		return nil, nil
	}
	var out []Bot
	for _, name := range h.Settings.Live.Now().Bots() {
		bot, err := h.Settings.Bot(name)
		if err != nil {
			return nil, err
		}
		if name != only && bot.DiscordToken != "" && bot.Origin("discordToken").Layer != config.Environment {
			out = append(out, Bot{name, string(bot.DiscordToken)})
		}
	}
	return out, nil
}

// isKin reports whether an agent has a bot in another process.
func (h *Backend) isKin(agent string) bool {
	return slices.ContainsFunc(h.kin, func(b Bot) bool { return b.Name == agent })
}

// user is who a bot is before it has connected here: Discord's tokens begin with the id of
// their user. "": it cannot be read off.
func (b Bot) user() room.Author {
	head, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(b.token), "Bot "), ".")
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(head, "="))
	if err != nil {
		return room.Author{}
	}
	if _, err := strconv.ParseUint(string(raw), 10, 64); err != nil {
		return room.Author{}
	}
	return room.Author{ID: string(raw), Bot: true}
}
