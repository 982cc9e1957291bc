package connector

import (
	"context"
	"errors"
	"time"

	"chorus/internal/chat"
	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// How far back we look for changes made while nobody was connected: among the
// last received messages, in their channels, as far as one page reaches.
const (
	maxReceived = 500
	maxCompared = 50
	comparePage = 100
	clockSkew   = 5 * time.Second // maximum difference between the platform's clock and ours
)

// receivedMessage is a message as it is in a journal.
type receivedMessage struct {
	id, channel, text string
	at                time.Time
}

// page is part of a channel's history.
type page struct {
	list []room.Message // newest first
	more bool           // there may be older ones
}

// compare compares the last messages that we received with the current state of the channels,
// and takes edits and deletions. Changes that were already taken have no effect, because a change is an
// arrival with a version.
func (b *Bot) compare(ctx context.Context) error {
	if b.can.history == nil {
		return nil
	}
	received, channels, err := b.lastReceived(ctx)
	if err != nil {
		return err
	}
	for _, channel := range channels {
		now, err := callWithin(ctx, b, b.CallWait, "compare", func(ctx context.Context) (page, error) {
			list, more, err := b.can.history.ReadBefore(ctx, channel, "", comparePage)
			return page{list, more}, err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || len(now.list) == 0 && !b.emptied(ctx, received[channel]) {
			continue // hidden from us, or no answer: that says nothing about its messages
		}
		if err := b.compareTo(ctx, now, received[channel]); err != nil {
			return err
		}
	}
	return nil
}

// emptied reports whether an empty channel has lost its messages. A platform may
// show an empty channel to somebody who may not read its history.
func (b *Bot) emptied(ctx context.Context, received []receivedMessage) bool {
	if len(received) == 0 {
		return false
	}
	_, err := b.can.history.Message(ctx, received[0].channel, received[0].id)
	return isGone(err)
}

// compareTo compares one channel.
func (b *Bot) compareTo(ctx context.Context, now page, received []receivedMessage) error {
	present := map[string]room.Message{}
	for _, m := range now.list {
		present[m.ID] = m
	}
	oldest := ""
	if now.more && len(now.list) > 0 {
		oldest = now.list[len(now.list)-1].ID
	}
	for _, h := range received {
		m, there := present[h.id]
		switch {
		case !there && oldest != "" && b.Platform.Older(h.id, oldest): // beyond the page
		case !there:
			if err := b.deleted(ctx, h.channel, h.id); err != nil {
				return err
			}
		case b.differs(m, h):
			if err := b.edited(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// differs reports whether a message was edited since it was received. It is false if the message was received with
// its new text.
func (b *Bot) differs(m room.Message, h receivedMessage) bool {
	if m.Edited.IsZero() || m.Edited.Before(h.at.Add(-clockSkew)) {
		return false
	}
	in, _ := b.Platform.Known(h.channel)
	return mention.Read(m.Text, b.directory(in.Guild)) != h.text
}

// lastReceived returns the messages that were received last, by channel, and the channels ordered
// by their last message.
func (b *Bot) lastReceived(ctx context.Context) (map[string][]receivedMessage, []string, error) {
	ids, err := b.Backend.LastArrivals(ctx, b.transport, b.Name, string(room.Said), maxReceived)
	if err != nil {
		return nil, nil, err
	}
	received := map[string][]receivedMessage{}
	var channels []string
	for _, id := range ids {
		h, ok, err := b.receivedAs(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		if received[h.channel] == nil {
			if len(channels) == maxCompared {
				continue
			}
			channels = append(channels, h.channel)
		}
		received[h.channel] = append(received[h.channel], h)
	}
	return received, channels, nil
}

// receivedAs is a message as the first thread of ours received it; false: none did.
func (b *Bot) receivedAs(ctx context.Context, id string) (receivedMessage, bool, error) {
	places, err := b.Backend.Places(ctx, b.transport, id)
	if err != nil {
		return receivedMessage{}, false, err
	}
	for _, p := range places {
		if p.Ours || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		ev, err := b.Backend.Event(ctx, p.Thread, p.Seq)
		if err != nil {
			return receivedMessage{}, false, err
		}
		e, ok := ev.Body.(chat.Received)
		if !ok || e.Channel == "" {
			return receivedMessage{}, false, nil
		}
		h := receivedMessage{id: id, channel: e.Channel, at: ev.At}
		if len(e.Blocks) > 0 {
			if t, ok := e.Blocks[0].(chat.Text); ok {
				h.text = t.Text
			}
		}
		return h, true, nil
	}
	return receivedMessage{}, false, nil
}

// compareSoon compares in the background, so that nobody who writes now waits for it. One
// comparison at a time is enough: the platform reports what happens meanwhile.
func (b *Bot) compareSoon(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.comparing || ctx.Err() != nil {
		return
	}
	b.comparing = true
	b.work.Go(func() {
		err := errors.Join(b.compare(ctx), b.reactionsMeanwhile(ctx))
		b.mu.Lock()
		b.comparing = false
		b.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			b.Log.Warn("could not look for what was changed meanwhile", "event", "compare_failed", "error", err)
		}
	})
}
