package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/connector/commands"
	"chorus/internal/connector/slash"
	"chorus/internal/lockfile"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/provider"
	"chorus/internal/room"
	"chorus/internal/transport/discord"
)

// Bot is a bot that is to be connected.
type Bot struct {
	Name  string // of its file, and of its own agent
	token string
}

// Bots are those that have a token: every file in bots/ with one, and the one of
// the environment. BOT_NAME leaves only that bot.
func (h *Host) Bots() ([]Bot, error) {
	only := h.Env("BOT_NAME")
	token, err := h.secretEnv("DISCORD_BOT_TOKEN", "DISCORD_TOKEN")
	if err != nil {
		return nil, err
	}
	var out []Bot
	var bare []string // files without a token
	for _, name := range h.Settings.Live.Now().Bots() {
		bot, err := h.Settings.Bot(name)
		if err != nil {
			return nil, err
		}
		switch {
		case only != "" && name != only:
		case bot.DiscordToken != "" && bot.Origin("discordToken").Layer != config.Environment:
			out = append(out, Bot{name, string(bot.DiscordToken)})
		default:
			bare = append(bare, name)
		}
	}
	if token == "" {
		if only != "" && len(out) == 0 {
			return nil, fmt.Errorf("BOT_NAME is %s, but there is no token for it: set DISCORD_BOT_TOKEN, or discordToken in bots/%s.yaml", only, only)
		}
		return out, nil
	}
	if slices.ContainsFunc(out, func(b Bot) bool { return b.token == token }) {
		return out, nil
	}
	name := chat.DefaultAgent
	switch {
	case only != "" && len(out) == 0:
		name = only
	case only != "":
		return out, nil // its file says which
	case len(bare) == 1:
		name = bare[0]
	}
	return append([]Bot{{name, token}}, out...), nil
}

// secretEnv is the first of the variables that is set, itself or by a file.
func (h *Host) secretEnv(names ...string) (string, error) {
	for _, name := range names {
		if v := strings.TrimSpace(h.Env(name)); v != "" {
			return v, nil
		}
		if file := h.Env(name + "_FILE"); file != "" {
			data, err := os.ReadFile(file)
			if err != nil {
				return "", fmt.Errorf("read %s_FILE: %w", name, err)
			}
			return strings.TrimSpace(string(data)), nil
		}
	}
	return "", nil
}

// Connect connects every bot that has a token. stop ends the connections and waits
// for them. One that cannot be made is told of and costs nobody else anything.
func (host *Host) Connect() (stop func(), err error) {
	bots, err := host.Bots()
	if err != nil {
		return nil, fmt.Errorf("connect to Discord: %w", err)
	}
	kin, err := host.discordKin()
	if err != nil {
		return nil, fmt.Errorf("connect to Discord: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	stop = func() { cancel(); work.Wait(); host.Connected.Store(nil) }
	h := &Backend{DB: host.DB, App: host, orders: host.Service.Handler(), Bots: bots, kin: kin, selves: map[string]room.Author{}, live: map[string]*connector.Bot{}}
	host.mu.Lock()
	host.backend = h
	host.mu.Unlock()
	host.Connected.Store(h)
	for _, b := range bots {
		if err := host.connectBot(ctx, &work, h, b); err != nil {
			stop()
			return nil, fmt.Errorf("connect bot %s to Discord: %w", b.Name, err)
		}
	}
	if len(bots) > 0 {
		work.Go(func() { h.watchQuiet(ctx) })
	}
	return stop, nil
}

// derivedCommands are the commands of operations that have none written by hand. People of a platform may read and
// talk: what needs more is among those written by hand, which ask the platform and our own rights.
func (host *Host) derivedCommands() (*slash.Set, error) {
	return slash.New(slash.Options{Executor: host.Service.Operations(), Operations: operations.All(), Scopes: []operation.Scope{operation.Read, operation.Chat}})
}

func (host *Host) connectBot(ctx context.Context, work *sync.WaitGroup, h *Backend, b Bot) error {
	if !chat.ValidAgentName(b.Name) {
		return fmt.Errorf("%q cannot be an agent's name: 2 to 32 of a–z, 0–9 and hyphens", b.Name)
	}
	settings, err := host.Settings.Bot(b.Name)
	if err != nil {
		return err
	}
	derived, err := host.derivedCommands()
	if err != nil {
		return err
	}
	o := BotOptions{Options: connector.Options{Name: b.Name, BackoffMax: provider.Milliseconds(settings.DiscordBackoffMaxMS), Backend: h.backend(), Log: host.Log,
		Commands: func(b *connector.Bot) []connector.Commands {
			return []connector.Commands{commands.New(b), derived.As(b.Principal)}
		}}}
	if host.Tune != nil {
		host.Tune(&o)
	}
	client, err := discord.New(discord.Options{Bot: b.Name, Token: b.token, API: host.Env("DISCORD_API_URL"), Guild: host.Env("DISCORD_GUILD_ID"), HTTP: o.HTTP,
		Log: host.Log.With("component", discord.Name, "bot", b.Name), Version: host.Version, FirstBackoff: o.FirstBackoff, BackoffMax: o.BackoffMax, Patience: o.Patience, Nonce: o.Nonce})
	if err != nil {
		return err
	}
	o.Platform = client
	bot, err := connector.New(o.Options)
	if err != nil {
		return err
	}
	lock, err := host.lockBot(b.Name)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.live[b.Name] = bot
	h.mu.Unlock()
	work.Go(func() {
		defer lock.Release()
		if err := bot.Run(ctx); err != nil {
			host.Log.Error("bot "+b.Name+" is not on Discord: "+err.Error(), "component", "discord", "event", "bot_failed", "bot", b.Name)
			host.Warn("bot " + b.Name + " is not on Discord: " + err.Error())
		}
	})
	return nil
}

// BotOptions are those of a bot and of its connection, for tests to change.
type BotOptions struct {
	connector.Options
	HTTP  *http.Client
	Nonce time.Duration
}

// lockBot takes a bot for this process: two that answer for it would answer twice.
func (h *Host) lockBot(name string) (*lockfile.Lock, error) {
	dir, err := h.Home.Ensure(h.Home.Locks())
	if err != nil {
		return nil, err
	}
	l, err := lockfile.Try(filepath.Join(dir, "discord-"+name+".lock"), nil)
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, errors.New("another process on this home runs it already; stop that one first")
	}
	return l, err
}
