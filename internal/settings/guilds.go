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

// guildFile returns the path of the file in which `/settings` stores a guild's values.
func guildFile(homeDir, guild string) string {
	return filepath.Join(datadir.At(homeDir).Guilds(), guild+".json")
}

// validGuild reports whether a guild's id can name a file.
func validGuild(guild string) bool {
	return guild != "" && len(guild) <= 32 && strings.Trim(guild, "0123456789") == ""
}

// GuildValues returns what `/settings` stored for a guild; most guilds have nothing stored.
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

// SetGuild stores one value for a guild; nil removes it. The next run reads
// it; on other machines it takes effect soon after.
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

// GuildOf returns the guild that a thread is in, or "".
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

// BotIn returns the configuration of an agent in a guild; "" means no guild. Files that
// somebody else left half-finished are reported once and ignored.
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
			// Hand-written and half-finished: the row in the store holds the last good version.
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

// BotFor returns the configuration of a thread's agent in the thread's place.
func (s *Settings) BotFor(row journal.Thread) (*config.Bot, error) {
	ctx, cancel := context.WithTimeout(context.Background(), pinTime)
	defer cancel()
	bot, _, err := s.BotAt(ctx, room.Agent{Name: row.Agent}, GuildOf(row.ID), s.ChannelOf(ctx, row.ID))
	return bot, err
}

// pinTime limits reading a channel's pins from the store.
const pinTime = 10 * time.Second

// HomePlace returns the place whose rules apply in another: a private
// thread has those of the channel that it belongs to.
func HomePlace(transport, place string) string {
	guild, home, in := room.PlaceParts(place)
	if !chat.OnPlatform(transport) || in == home {
		return place
	}
	return guild + "/" + home
}
