package connector

import (
	"context"
	"errors"
	"time"

	"chorus/internal/chat"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// firstRead is where the reading of a channel begins that has no cursor. Nobody waits for
// an answer to what was said before we came; but a channel that was made while we were away,
// in a guild that we know, is read from its beginning, as if we had seen it being made. So is
// a thread on a message that we heard: its answer stands in there.
func (b *Bot) firstRead(ctx context.Context, c platform.Listing, latest string) (string, error) {
	if latest != "" && c.Made != "" && b.Platform.Older(latest, c.Made) {
		return b.Platform.Before(c.ID), nil
	}
	if c.Parent != "" {
		heard, err := b.Backend.Places(ctx, b.transport, c.ID)
		if err != nil {
			return "", err
		}
		if len(heard) > 0 {
			return b.Platform.Before(c.ID), nil
		}
	}
	return c.Newest, nil
}

// latestOf is the newest message that was read in any of the channels; "": none of them
// was ever read.
func (b *Bot) latestOf(list []platform.Listing, cursors map[string]string) string {
	latest := ""
	for _, c := range list {
		if at, ok := cursors[c.ID]; ok && (latest == "" || b.Platform.Older(latest, at)) {
			latest = at
		}
	}
	return latest
}

// How far back changes are looked for that were made while nobody was connected: among the
// last messages that were heard, in the channels where those stand, as far as one page reaches.
const (
	maxHeard    = 500
	maxCompared = 50
	comparePage = 100
	clockSkew   = 5 * time.Second // how far the platform's clock and ours may be apart
)

// heardOnce is a message as it stands in a journal.
type heardOnce struct {
	id, channel, text string
	at                time.Time
}

// page is part of a channel's history.
type page struct {
	list []room.Message // the newest first
	more bool           // there may be older ones
}

// compare holds the last messages that we heard against what stands in the channels now,
// and takes edits and deletions. What was taken before changes nothing: a change is an
// arrival with a version.
func (b *Bot) compare(ctx context.Context) error {
	if b.can.history == nil {
		return nil
	}
	heard, channels, err := b.lastHeard(ctx)
	if err != nil {
		return err
	}
	for _, channel := range channels {
		now, err := patiently(ctx, b, b.Patience, "compare", func(ctx context.Context) (page, error) {
			list, more, err := b.can.history.ReadBefore(ctx, channel, "", comparePage)
			return page{list, more}, err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || len(now.list) == 0 && !b.emptied(ctx, heard[channel]) {
			continue // it is closed to us, or not answered, which says nothing of its messages
		}
		if err := b.compareTo(ctx, now, heard[channel]); err != nil {
			return err
		}
	}
	return nil
}

// emptied reports whether an empty channel has lost what was said there. A platform may
// show an empty one to those who may not read its history.
func (b *Bot) emptied(ctx context.Context, heard []heardOnce) bool {
	if len(heard) == 0 {
		return false
	}
	_, err := b.can.history.Message(ctx, heard[0].channel, heard[0].id)
	return isGone(err)
}

// compareTo looks at one channel.
func (b *Bot) compareTo(ctx context.Context, now page, heard []heardOnce) error {
	stands := map[string]room.Message{}
	for _, m := range now.list {
		stands[m.ID] = m
	}
	oldest := ""
	if now.more && len(now.list) > 0 {
		oldest = now.list[len(now.list)-1].ID
	}
	for _, h := range heard {
		m, there := stands[h.id]
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

// differs reports whether a message was edited since it was heard; one that was heard with
// its new words was not.
func (b *Bot) differs(m room.Message, h heardOnce) bool {
	if m.Edited.IsZero() || m.Edited.Before(h.at.Add(-clockSkew)) {
		return false
	}
	in, _ := b.Platform.Known(h.channel)
	return mention.Read(m.Text, b.directory(in.Guild)) != h.text
}

// lastHeard are the messages that were heard last, by channel, and the channels in the
// order in which something was said there last.
func (b *Bot) lastHeard(ctx context.Context) (map[string][]heardOnce, []string, error) {
	ids, err := b.Backend.LastArrivals(ctx, b.transport, b.Name, string(room.Said), maxHeard)
	if err != nil {
		return nil, nil, err
	}
	heard := map[string][]heardOnce{}
	var channels []string
	for _, id := range ids {
		h, ok, err := b.heardAs(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		if heard[h.channel] == nil {
			if len(channels) == maxCompared {
				continue
			}
			channels = append(channels, h.channel)
		}
		heard[h.channel] = append(heard[h.channel], h)
	}
	return heard, channels, nil
}

// heardAs is a message as the first thread of ours heard it; false: none did.
func (b *Bot) heardAs(ctx context.Context, id string) (heardOnce, bool, error) {
	places, err := b.Backend.Places(ctx, b.transport, id)
	if err != nil {
		return heardOnce{}, false, err
	}
	for _, p := range places {
		if p.Ours || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		ev, err := b.Backend.Event(ctx, p.Thread, p.Seq)
		if err != nil {
			return heardOnce{}, false, err
		}
		e, ok := ev.Body.(chat.Received)
		if !ok || e.Channel == "" {
			return heardOnce{}, false, nil
		}
		h := heardOnce{id: id, channel: e.Channel, at: ev.At}
		if len(e.Blocks) > 0 {
			if t, ok := e.Blocks[0].(chat.Text); ok {
				h.text = t.Text
			}
		}
		return h, true, nil
	}
	return heardOnce{}, false, nil
}

// compareSoon compares in the background, so that nobody who speaks now waits for it. One
// comparison at a time is enough: what happens meanwhile the platform reports.
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
