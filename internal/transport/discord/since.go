package discord

import (
	"context"
	"errors"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/chat"
	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// firstSight is where the reading of a channel begins that has no cursor. Nobody waits for
// an answer to what was said before we came; but what was made while we were away, in a
// guild that we know, is read from its beginning, as if we had seen it being made. So is a
// thread on a message that we heard: its answer stands in there.
func (b *Bot) firstSight(ctx context.Context, c discord.Channel, newest, latest string) (string, error) {
	id := c.ID().String()
	if latest != "" && madeAt(c).After(number(latest).Time()) {
		return before(id), nil
	}
	if _, ok := c.(discord.GuildThread); ok {
		heard, err := b.Backend.Places(ctx, room.Transport, id)
		if err != nil {
			return "", err
		}
		if len(heard) > 0 {
			return before(id), nil
		}
	}
	return newest, nil
}

// madeAt is when a channel was made. A thread has the id of the message that it was
// opened on, which may be much older.
func madeAt(c discord.Channel) time.Time {
	if t, ok := c.(discord.GuildThread); ok && !t.ThreadMetadata.CreateTimestamp.IsZero() {
		return t.ThreadMetadata.CreateTimestamp
	}
	return c.ID().Time()
}

// latestOf is the newest message that was read in any of the channels; "": none of them
// was ever seen.
func latestOf(list []discord.Channel, cursors map[string]string) string {
	latest := ""
	for _, c := range list {
		if at, ok := cursors[c.ID().String()]; ok && (latest == "" || room.Older(latest, at)) {
			latest = at
		}
	}
	return latest
}

// How far back changes are looked for that were made while nobody listened: among the
// last messages that were heard, in the channels where those stand, as far as one page reaches.
const (
	manyHeard    = 500
	manyCompared = 50
)

// heardOnce is a message as it stands in a journal.
type heardOnce struct {
	id, channel, text string
	at                time.Time
}

// compare holds the last messages that we heard against what stands in the channels now,
// and tells of edits and deletions. What was told before is told once: a change is an
// arrival with a version.
func (b *Bot) compare(ctx context.Context) error {
	heard, channels, err := b.lastHeard(ctx)
	if err != nil {
		return err
	}
	for _, channel := range channels {
		page, err := patiently(ctx, b, b.Patience, "compare", func(ctx context.Context) ([]discord.Message, error) {
			return b.rest.GetMessages(number(channel), 0, 0, 0, historyPage, rest.WithCtx(ctx))
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || len(page) == 0 && !b.emptied(ctx, heard[channel]) {
			continue // it is closed to us, or not answered, which says nothing of its messages
		}
		if err := b.compareTo(ctx, page, heard[channel]); err != nil {
			return err
		}
	}
	return nil
}

// emptied reports whether a channel in which nothing stands has lost what was said there. To
// those who may not read its history Discord shows an empty one.
func (b *Bot) emptied(ctx context.Context, heard []heardOnce) bool {
	if len(heard) == 0 {
		return false
	}
	_, err := b.rest.GetMessage(number(heard[0].channel), number(heard[0].id), rest.WithCtx(ctx))
	return rest.IsJSONErrorCode(err, rest.JSONErrorCodeUnknownMessage)
}

// compareTo looks at one channel; page is what stands in it, the newest first.
func (b *Bot) compareTo(ctx context.Context, page []discord.Message, heard []heardOnce) error {
	stands := map[string]discord.Message{}
	for _, m := range page {
		stands[m.ID.String()] = m
	}
	oldest := ""
	if len(page) == historyPage {
		oldest = page[len(page)-1].ID.String()
	}
	for _, h := range heard {
		m, there := stands[h.id]
		switch {
		case !there && oldest != "" && room.Older(h.id, oldest): // beyond the page
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

// differs reports whether a message was edited since it was heard; one that was heard
// with its new words was not.
func (b *Bot) differs(m discord.Message, h heardOnce) bool {
	if m.EditedTimestamp == nil || m.EditedTimestamp.Before(h.at.Add(-clockSkew)) {
		return false
	}
	in, _ := b.world.known(h.channel)
	return mention.Read(m.Content, b.world.directory(in.Guild)) != h.text
}

// lastHeard are the messages that were heard last, by channel, and the channels in the
// order in which something was said there last.
func (b *Bot) lastHeard(ctx context.Context) (map[string][]heardOnce, []string, error) {
	ids, err := b.Backend.LastArrivals(ctx, room.Transport, b.Name, string(room.Said), manyHeard)
	if err != nil {
		return nil, nil, err
	}
	heard := map[string][]heardOnce{}
	var channels []string
	for _, id := range ids {
		places, err := b.Backend.Places(ctx, room.Transport, id)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range places {
			if p.Ours || !b.Backend.Serves(b.Name, p.Thread) {
				continue
			}
			ev, err := b.Backend.Event(ctx, p.Thread, p.Seq)
			if err != nil {
				return nil, nil, err
			}
			e, ok := ev.Body.(chat.Received)
			if !ok || e.Channel == "" {
				break
			}
			if heard[e.Channel] == nil {
				if len(channels) == manyCompared {
					break
				}
				channels = append(channels, e.Channel)
			}
			h := heardOnce{id: id, channel: e.Channel, at: ev.At}
			if len(e.Blocks) > 0 {
				if t, ok := e.Blocks[0].(chat.Text); ok {
					h.text = t.Text
				}
			}
			heard[e.Channel] = append(heard[e.Channel], h)
			break
		}
	}
	return heard, channels, nil
}

// compareSoon compares in the background, so that nobody who speaks now waits for it. One
// comparison at a time is enough: whatever happens meanwhile, the gateway tells.
func (b *Bot) compareSoon(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.comparing || ctx.Err() != nil {
		return
	}
	b.comparing = true
	b.work.Go(func() {
		err := errors.Join(b.compare(ctx), b.signedMeanwhile(ctx))
		b.mu.Lock()
		b.comparing = false
		b.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			b.Log.Warn("could not look for what was changed meanwhile", "event", "compare_failed", "error", err)
		}
	})
}
