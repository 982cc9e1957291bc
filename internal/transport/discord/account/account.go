// Package account finds the configured bot accounts on Discord and opens their
// connections.
//
// It promises that a token is read from the configuration or the environment, and is only
// passed to the connection.
package account

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/connector/host"
	"chorus/internal/platform"
	"chorus/internal/provider"
	"chorus/internal/room"
	"chorus/internal/settings"
	"chorus/internal/transport/discord"
)

// Source is where accounts are found.
type Source struct {
	Env      func(string) string
	Settings *settings.Settings
	Log      *slog.Logger
	Version  string
}

// Platform is Discord with its accounts.
func (s *Source) Platform() host.Platform {
	return host.Platform{Name: discord.Name, Label: "Discord", Accounts: s.Accounts}
}

// bot is a configuration file, or the environment, with a token.
type bot struct{ name, token string }

// Accounts returns the accounts that have a token: every file in bots/ with one, and the one in the
// environment. BOT_NAME limits this process to that account.
func (s *Source) Accounts() ([]host.Account, error) {
	only := s.Env("BOT_NAME")
	here, others, bare, err := s.files(only)
	if err != nil {
		return nil, err
	}
	token, err := s.secret("DISCORD_BOT_TOKEN", "DISCORD_TOKEN")
	if err != nil {
		return nil, err
	}
	switch {
	case token == "" && only != "" && len(here) == 0:
		return nil, fmt.Errorf("BOT_NAME is %s, but there is no token for it: set DISCORD_BOT_TOKEN, or discordToken in bots/%s.yaml", only, only)
	case token == "" || slices.ContainsFunc(here, func(b bot) bool { return b.token == token }):
	case only != "" && len(here) > 0: // its file says which
	default:
		name := chat.DefaultAgent
		if only != "" {
			name = only
		} else if len(bare) == 1 {
			name = bare[0]
		}
		here = append([]bot{{name, token}}, here...)
	}
	var out []host.Account
	for _, b := range here {
		a, err := s.account(b)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	for _, b := range others {
		out = append(out, host.Account{Name: b.name, User: userOf(b.token), Elsewhere: true})
	}
	return out, nil
}

// files returns the bots with a token in their file, those among them that other processes
// run, and the names of files without one.
func (s *Source) files(only string) (here, others []bot, bare []string, err error) {
	for _, name := range s.Settings.Live.Now().Bots() {
		settings, err := s.Settings.Bot(name)
		if err != nil {
			return nil, nil, nil, err
		}
		b := bot{name, settings.FileToken()}
		switch {
		case only != "" && name != only && b.token != "":
			others = append(others, b)
		case only != "" && name != only:
		case b.token != "":
			here = append(here, b)
		default:
			bare = append(bare, name)
		}
	}
	return here, others, bare, nil
}

func (s *Source) account(b bot) (host.Account, error) {
	settings, err := s.Settings.Bot(b.name)
	if err != nil {
		return host.Account{}, err
	}
	return host.Account{Name: b.name, User: userOf(b.token), BackoffMax: provider.Milliseconds(settings.DiscordBackoffMaxMS),
		Open: func(o host.BotOptions) (platform.Platform, error) {
			return discord.New(discord.Options{Bot: b.name, Token: b.token, API: s.Env("DISCORD_API_URL"), Guild: s.Env("DISCORD_GUILD_ID"), HTTP: o.HTTP,
				Log: s.Log.With("component", discord.Name, "bot", b.name), Version: s.Version,
				FirstBackoff: o.FirstBackoff, BackoffMax: o.BackoffMax, CallWait: o.CallWait, Nonce: o.Nonce})
		}}, nil
}

// secret is the first of the variables that is set, directly or through a file.
func (s *Source) secret(names ...string) (string, error) {
	for _, name := range names {
		if v := strings.TrimSpace(s.Env(name)); v != "" {
			return v, nil
		}
		if file := s.Env(name + "_FILE"); file != "" {
			data, err := os.ReadFile(file)
			if err != nil {
				return "", fmt.Errorf("read %s_FILE: %w", name, err)
			}
			return strings.TrimSpace(string(data)), nil
		}
	}
	return "", nil
}

// userOf returns a bot's identity before it has connected: Discord's tokens start with the id of
// their user. It is empty if the token has no id.
func userOf(token string) room.Author {
	head, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(token), "Bot "), ".")
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(head, "="))
	if err != nil {
		return room.Author{}
	}
	if _, err := strconv.ParseUint(string(raw), 10, 64); err != nil {
		return room.Author{}
	}
	return room.Author{ID: string(raw), Bot: true}
}
