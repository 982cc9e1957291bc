package discord

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/pins"
)

// The bounds of reading pins.
const (
	pinPage  = 50 // what Discord gives at most
	pinPages = 5
	pinTime  = 10 * time.Second
	pinAgain = 30 * time.Second // when they could not be read
)

// pinboard is what the connector remembers of pins.
type pinboard struct {
	next map[string]time.Time // when to read a channel's again; zero: not before it changes
	ids  map[string][]string  // of the pins that are configuration
}

// pinned sees to it that the pins of a channel, and of the one above it, are known. What
// cannot be read now keeps nothing back: the copy of last time holds.
func (b *Bot) pinned(ctx context.Context, in room.Channel) {
	if in.Parent != "" {
		if above, err := b.channelOf(ctx, in.Parent); err == nil {
			b.pinned(ctx, above)
		}
	}
	b.mu.Lock()
	next, known := b.pins.next[in.ID]
	b.mu.Unlock()
	if known && (next.IsZero() || time.Now().Before(next)) {
		return
	}
	next = time.Time{}
	if err := b.readPins(ctx, in); err != nil {
		if status(err) == 0 || passing(err) {
			next = time.Now().Add(pinAgain)
		}
		b.Log.Warn("the pins of a channel could not be read", "event", "pins_failed", "channel", in.ID, "error", err)
	}
	b.mu.Lock()
	b.pins.next[in.ID] = next
	b.mu.Unlock()
}

// unpinned forgets that the pins of a channel, or of all, are known.
func (b *Bot) unpinned(channels ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(channels) == 0 {
		clear(b.pins.next)
	}
	for _, id := range channels {
		delete(b.pins.next, id)
	}
}

// repinned reads the pins of a channel anew.
func (b *Bot) repinned(ctx context.Context, channel string) error {
	in, err := b.channelOf(ctx, channel)
	if err != nil {
		return err
	}
	b.unpinned(in.ID)
	b.pinned(ctx, in)
	return nil
}

// isPin reports whether a message is one of the pins that are configuration.
func (b *Bot) isPin(channel, message string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.pins.ids[channel], message)
}

func (b *Bot) readPins(ctx context.Context, in room.Channel) error {
	ctx, cancel := context.WithTimeout(ctx, pinTime)
	defer cancel()
	var list []room.Message
	var ids []string
	var before time.Time
	for range pinPages {
		page, err := b.rest.GetChannelPins(number(in.ID), before, pinPage, rest.WithCtx(ctx))
		if err != nil {
			return err
		}
		for _, pin := range page.Items {
			before = pin.PinnedAt
			if m := b.converted(pin.Message, in); isConfig(pin.Message) {
				m.Author = b.member(ctx, in.Guild, m.Author)
				list, ids = append(list, m), append(ids, m.ID)
			}
		}
		if !page.HasMore {
			break
		}
	}
	b.mu.Lock()
	b.pins.ids[in.ID] = ids
	b.mu.Unlock()
	wrong, err := b.Backend.KeepPins(ctx, b.Name, in, list)
	if err != nil {
		return err
	}
	return b.tellPins(ctx, in, wrong)
}

func isConfig(m discord.Message) bool {
	return strings.HasPrefix(m.Content, ".config") && room.IsDotCommand(m.Content)
}

// tellPins tells people what is wrong with their pins, and takes back what no longer is.
func (b *Bot) tellPins(ctx context.Context, in room.Channel, wrong []pins.Trouble) error {
	kind := room.Transport + "-pin-notes/" + b.Name
	data, err := b.Backend.Recall(ctx, kind, in.ID)
	if err != nil {
		return err
	}
	var before, now []string // keys
	_ = json.Unmarshal(data, &before)
	var wishes []journal.Desired
	for _, t := range wrong {
		b.Log.Warn("a pinned message is not followed: "+t.Text, "event", "pin_refused", "channel", in.ID, "message", t.Message)
		w := b.aside(in.ID, "pin/"+t.Message, t.Message, "this pin: "+t.Text)
		wishes, now = append(wishes, w), append(now, w.Key)
	}
	for _, key := range before {
		if !slices.Contains(now, key) {
			wishes = append(wishes, journal.Desired{Lane: b.lane(in.ID), Key: key, Gone: true, Final: true})
		}
	}
	if len(wishes) == 0 {
		return nil
	}
	if err := b.wish(ctx, in.ID, wishes...); err != nil {
		return err
	}
	if data, err = json.Marshal(now); err != nil {
		return err
	}
	return b.Backend.Remember(ctx, kind, in.ID, data)
}
