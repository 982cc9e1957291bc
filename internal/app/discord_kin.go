package app

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
func (a *App) discordKin() ([]discordBot, error) {
	only := a.Env("BOT_NAME")
	if only == "" {
		return nil, nil
	}
	var out []discordBot
	for _, name := range a.conduct.now().Bots() {
		bot, err := a.bot(name)
		if err != nil {
			return nil, err
		}
		if name != only && bot.DiscordToken != "" && bot.Origin("discordToken").Layer != config.Environment {
			out = append(out, discordBot{name, string(bot.DiscordToken)})
		}
	}
	return out, nil
}

// isKin reports whether an agent has a bot in another process.
func (h *discordHouse) isKin(agent string) bool {
	return slices.ContainsFunc(h.kin, func(b discordBot) bool { return b.name == agent })
}

// user is who a bot is before it has connected here: Discord's tokens begin with the id of
// their user. "": it cannot be read off.
func (b discordBot) user() room.Author {
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
