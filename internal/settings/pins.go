package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/participants"
	"chorus/internal/room"
	"chorus/internal/room/pins"
	"chorus/internal/room/route"
	"chorus/internal/store"
)

// keptPins is the kind of the memos that hold a copy of what is pinned in channels. The name dates from
// when there was only one platform; the ids of channels differ between platforms.
const keptPins = "discord-pins"

// PinBoard holds the pinned configuration of channels: as a connector of this
// process read it, or else as a connector of any process last did.
type PinBoard struct {
	mu    sync.Mutex
	known map[string]PinnedHere
}

// PinnedHere is what is pinned in one channel.
type PinnedHere struct {
	Parent string         `json:"parent,omitempty"` // the parent channel
	Pins   []room.Message `json:"pins,omitempty"`
}

func (p *PinBoard) of(ctx context.Context, db *store.DB, channel string) (PinnedHere, error) {
	p.mu.Lock()
	b, ok := p.known[channel]
	p.mu.Unlock()
	if ok || channel == "" {
		return b, nil
	}
	data, err := db.Recall(ctx, keptPins, channel)
	if err != nil || data == nil {
		return PinnedHere{}, err
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return PinnedHere{}, fmt.Errorf("read the copy of the pins of channel %s: %w", channel, err)
	}
	return b, nil
}

// Keep stores what is pinned in a channel, in memory and in the database.
func (p *PinBoard) Keep(ctx context.Context, db *store.DB, channel string, b PinnedHere) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := db.Remember(ctx, keptPins, channel, data); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]PinnedHere{}
	}
	p.known[channel] = b
	return nil
}

// pinned returns the configuration that is pinned in a channel and above it: what applies to
// an agent, and what does not and why. Without pins it costs nothing.
func (s *Settings) pinned(ctx context.Context, who pins.Who, channel string) ([]config.Pin, []pins.Refused, error) {
	here, err := s.Pins.of(ctx, s.DB, channel)
	if err != nil {
		return nil, nil, err
	}
	above, err := s.Pins.of(ctx, s.DB, here.Parent)
	if err != nil {
		return nil, nil, err
	}
	var all []pins.Pin
	add := func(list []room.Message, above int) {
		for _, m := range list {
			// This agent has no say in what is for others.
			if pin := (config.Pin{Text: m.Text}); pin.For(who.Agent.Name, who.Agent.InnerName) {
				all = append(all, pins.Pin{Message: m, Above: above})
			}
		}
	}
	add(here.Pins, 0)
	add(above.Pins, 1)
	count, refused := pins.Counting(all, who)
	var out []config.Pin
	for _, p := range count {
		out = append(out, config.Pin{ID: p.Message.ID, Text: p.Message.Text, Parent: p.Above > 0})
	}
	return out, refused, nil
}

// BotAt returns the configuration of an agent in a channel of a chat
// platform, including its pins, and what is wrong with those.
func (s *Settings) BotAt(ctx context.Context, agent room.Agent, guild, channel string) (*config.Bot, []pins.Trouble, error) {
	bot, err := s.BotIn(agent.Name, guild)
	if err != nil || channel == "" {
		return bot, nil, err
	}
	agent.InnerName = cmp.Or(agent.InnerName, bot.InnerName)
	list, refused, err := s.pinned(ctx, pins.Who{Roles: bot.AuthorizedRoles, Agent: agent}, channel)
	if err != nil {
		return nil, nil, err
	}
	var wrong []pins.Trouble
	for _, r := range refused {
		wrong = append(wrong, pins.Trouble{Message: r.Pin.Message.ID, Text: r.Why})
	}
	ask := s.askIn(agent.Name, guild, list)
	if len(list) > 0 {
		var problems config.Problems
		if bot, problems = s.Live.Now().Bot(ask); problems.Err() != nil {
			return nil, nil, problems.Err()
		}
		wrong = append(wrong, pinTroubles(problems)...)
	}
	if bot.Routing == string(route.Room) && !bot.IsSet("mode") && bot.SpeakerPrefix == "" {
		// Among several people a model must know who says what.
		ask.Assumed = map[string]any{"mode": string(participants.Chat)}
		var problems config.Problems
		if bot, problems = s.Live.Now().Bot(ask); problems.Err() != nil {
			return nil, nil, problems.Err()
		}
	}
	return bot, wrong, nil
}

// pinTroubles returns the problems that are in pins.
func pinTroubles(problems config.Problems) (out []pins.Trouble) {
	for _, p := range problems.Warnings() {
		if p.Place.Layer != config.ParentPin && p.Place.Layer != config.ChannelPin {
			continue
		}
		text := p.Text
		if p.Place.Line > 0 {
			text = fmt.Sprintf("line %d: %s", p.Place.Line, text)
		}
		out = append(out, pins.Trouble{Message: strings.TrimPrefix(p.Place.File, "pinned message "), Text: text})
	}
	return out
}

// ChannelOf returns the channel that a thread of a chat platform is in: the platform thread that it is, if
// it has known pins, or else its place. It returns "" for threads that are elsewhere.
func (s *Settings) ChannelOf(ctx context.Context, thread chat.ThreadID) string {
	if !thread.OnPlatform() {
		return ""
	}
	_, home, in := room.PlaceParts(thread.Place())
	if in == home {
		in = thread.Thread()
	}
	if own, err := s.Pins.of(ctx, s.DB, in); err == nil && own.Parent == home {
		return in
	}
	return home
}

// StoredPins is the copy of what is pinned in a channel, for people to look at.
type StoredPins struct {
	Known bool         // somebody has read them
	Pins  []config.Pin // all that apply to an agent
	Notes []string     // about those that do not
}

// PinsAt returns the copy of what is pinned in a channel.
func PinsAt(ctx context.Context, a *Settings, bot, guild, channel string) (StoredPins, error) {
	var out StoredPins
	data, err := a.DB.Recall(ctx, keptPins, channel)
	if err != nil || data == nil {
		return out, err
	}
	out.Known = true
	settings, err := a.BotIn(bot, guild)
	if err != nil {
		return out, err
	}
	var refused []pins.Refused
	out.Pins, refused, err = a.pinned(ctx, pins.Who{Roles: settings.AuthorizedRoles, Agent: room.Agent{Name: bot, InnerName: settings.InnerName}}, channel)
	for _, r := range refused {
		out.Notes = append(out.Notes, "the pinned message "+r.Pin.Message.ID+" does not count: "+r.Why)
	}
	return out, err
}

// HomeDir returns where the home is, whether it exists or not.
func HomeDir(env func(string) string, dir string) (string, error) { return HomeFolder(env, dir) }
