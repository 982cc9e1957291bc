package connector

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/pins"
)

// The limits of reading pins.
const (
	pinTime  = 10 * time.Second
	pinAgain = 30 * time.Second // when to retry after a failure
)

// pinCache is what the connector remembers of pins.
type pinCache struct {
	next map[string]time.Time // when to read a channel's pins again; zero: after the next change
	ids  map[string][]string  // of pins that are configuration
}

// pinned makes sure that the pins of a channel, and of its parent, are known. If they
// cannot be read now, nothing waits: the last copy counts.
func (b *Bot) pinned(ctx context.Context, in room.Channel) {
	if b.can.pins == nil {
		return
	}
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
		if platform.Passing(err) {
			next = time.Now().Add(pinAgain)
		}
		b.Log.Warn("the pins of a channel could not be read", "event", "pins_failed", "channel", in.ID, "error", err)
	}
	b.mu.Lock()
	b.pins.next[in.ID] = next
	b.mu.Unlock()
}

// forgetPins marks the pins of channels, or of all, as unknown.
func (b *Bot) forgetPins(channels ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(channels) == 0 {
		clear(b.pins.next)
	}
	for _, id := range channels {
		delete(b.pins.next, id)
	}
}

// pinsChanged reads the pins of a channel again.
func (b *Bot) pinsChanged(ctx context.Context, channel string) error {
	in, err := b.channelOf(ctx, channel)
	if err != nil {
		return err
	}
	b.forgetPins(in.ID)
	b.pinned(ctx, in)
	return nil
}

// isPin reports whether a message is a pin with configuration.
func (b *Bot) isPin(channel, message string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.pins.ids[channel], message)
}

func (b *Bot) readPins(ctx context.Context, in room.Channel) error {
	ctx, cancel := context.WithTimeout(ctx, pinTime)
	defer cancel()
	all, err := b.can.pins.Pins(ctx, in)
	if err != nil {
		return err
	}
	var list []room.Message
	var ids []string
	for _, m := range all {
		if isConfig(m) {
			m.Author = b.member(ctx, in.Guild, m.Author)
			list, ids = append(list, m), append(ids, m.ID)
		}
	}
	b.mu.Lock()
	b.pins.ids[in.ID] = ids
	b.mu.Unlock()
	wrong, err := b.Backend.KeepPins(ctx, b.Name, in, list)
	if err != nil {
		return err
	}
	return b.reportPins(ctx, in, wrong)
}

func isConfig(m room.Message) bool {
	return strings.HasPrefix(m.Text, ".config") && room.IsDotCommand(m.Text)
}

// reportPins tells people about problems of their pins, and deletes reports that no longer apply.
func (b *Bot) reportPins(ctx context.Context, in room.Channel, wrong []pins.Trouble) error {
	kind := b.transport + "-pin-notes/" + b.Name
	data, err := b.Backend.Recall(ctx, kind, in.ID)
	if err != nil {
		return err
	}
	var before, now []string // keys
	_ = json.Unmarshal(data, &before)
	var desired []journal.Desired
	for _, t := range wrong {
		b.Log.Warn("a pinned message is not followed: "+t.Text, "event", "pin_refused", "channel", in.ID, "message", t.Message)
		w := b.aside(in.ID, "pin/"+t.Message, t.Message, "this pin: "+t.Text)
		desired, now = append(desired, w), append(now, w.Key)
	}
	for _, key := range before {
		if !slices.Contains(now, key) {
			desired = append(desired, journal.Desired{Lane: b.Lane(in.ID), Key: key, Gone: true, Final: true})
		}
	}
	if len(desired) == 0 {
		return nil
	}
	if err := b.SetDesired(ctx, desired...); err != nil {
		return err
	}
	if data, err = json.Marshal(now); err != nil {
		return err
	}
	return b.Backend.Remember(ctx, kind, in.ID, data)
}
