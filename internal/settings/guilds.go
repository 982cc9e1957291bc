package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"chorus/internal/agents/builtin"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/journal"
	"chorus/internal/room"
)

// guildFile is where `/settings` keeps what it was told for a guild.
func guildFile(homeDir, guild string) string {
	return filepath.Join(datadir.At(homeDir).Guilds(), guild+".json")
}

// validGuild reports whether a guild's id can name a file.
func validGuild(guild string) bool {
	return guild != "" && len(guild) <= 32 && strings.Trim(guild, "0123456789") == ""
}

// GuildValues are what `/settings` stored for a guild; nothing is there for most.
func GuildValues(homeDir, guild string) (map[string]any, error) {
	if !validGuild(guild) {
		return nil, nil
	}
	path := guildFile(homeDir, guild)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the guild's settings: %w", err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("%s: %w; fix the file, or remove it and say `/settings` again", path, err)
	}
	return out, nil
}

// SetGuild keeps one value for a guild; nil takes it away. The next run reads it, on other machines soon after.
func (s *Settings) SetGuild(guild, path string, value any) error {
	if !validGuild(guild) {
		return errors.New("settings are of a server; there are none for direct messages")
	}
	ctx, cancel := context.WithTimeout(context.Background(), changeTime)
	defer cancel()
	return s.Copies().Change(ctx, "guilds/"+guild+".json", func(text []byte) ([]byte, error) {
		next := map[string]any{}
		if text != nil {
			if err := json.Unmarshal(text, &next); err != nil {
				return nil, fmt.Errorf("%s: %w; fix the file, or remove it and say `/settings` again", guildFile(s.Home.Dir(), guild), err)
			}
		}
		if next == nil {
			next = map[string]any{}
		}
		if next[path] = value; value == nil {
			delete(next, path)
		}
		data, err := json.MarshalIndent(next, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("write the guild's settings: %w", err)
		}
		return append(data, '\n'), nil
	})
}

// GuildOf is the guild that a thread is in; "": none.
func GuildOf(thread chat.ThreadID) string {
	if !thread.OnPlatform() {
		return ""
	}
	guild, _, _ := strings.Cut(thread.Place(), "/")
	if !validGuild(guild) {
		return ""
	}
	return guild
}

// BotIn is what holds for an agent in a guild; "" is none. Files that somebody else left
// half done are told of once, and count as not there.
func (s *Settings) BotIn(name, guild string) (*config.Bot, error) {
	bot, problems := s.Live.Now().Bot(s.askIn(name, guild, nil))
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return bot, nil
}

func (s *Settings) askIn(name, guild string, pins []config.Pin) config.Ask {
	ask := config.Ask{Bot: name, Pins: pins}
	var err error
	_, ask.Definition, _ = builtin.Define(s.Home, name)
	if name != "" {
		if ask.Agent, ask.AgentFile, err = AgentValues(s.Home.Dir(), name); err != nil {
			// Hand-written and half done: the row in the store holds the last good version.
			s.Logs.LogOnce(err.Error(), "config")
			ask.Agent = nil
		}
	}
	if validGuild(guild) {
		ask.Guild = guild
		if ask.GuildSettings, err = GuildValues(s.Home.Dir(), guild); err != nil {
			s.Logs.LogOnce(err.Error(), "config")
		}
	}
	return ask
}

// BotFor is what holds for a thread's agent where the thread is.
func (s *Settings) BotFor(row journal.Thread) (*config.Bot, error) {
	ctx, cancel := context.WithTimeout(context.Background(), pinTime)
	defer cancel()
	bot, _, err := s.BotAt(ctx, room.Agent{Name: row.Agent}, GuildOf(row.ID), s.ChannelOf(ctx, row.ID))
	return bot, err
}

// pinTime bounds the reading of a channel's pins from the store.
const pinTime = 10 * time.Second

// HomePlace is the place whose rules hold in another: a private thread has those of the
// channel that it hangs under.
func HomePlace(transport, place string) string {
	guild, home, in := room.PlaceParts(place)
	if !chat.OnPlatform(transport) || in == home {
		return place
	}
	return guild + "/" + home
}
