package discord

import (
	"context"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/history"
	"chorus/internal/room/mention"
)

// edited tells whoever heard a message that its words are others now. Without a time of
// the edit only a preview of a link came: nothing was changed.
func (b *Bot) edited(ctx context.Context, m discord.Message) error {
	if isConfig(m) && m.Pinned || b.isPin(m.ChannelID.String(), m.ID.String()) {
		return b.repinned(ctx, m.ChannelID.String())
	}
	if m.EditedTimestamp == nil || m.Author.ID.String() == b.me().ID {
		return nil
	}
	in, err := b.channelOf(ctx, m.ChannelID.String())
	if err != nil {
		return err
	}
	text := mention.Read(m.Content, b.world.directory(in.Guild))
	version := int(m.EditedTimestamp.UnixMilli())
	if _, is, _ := history.Parse(m.Content); is || b.tails.ordered(in.ID, m.ID.String()) {
		b.tails.order(in.ID, m.ID.String())
		return b.reordered(ctx, in, m.ID.String(), version)
	}
	return b.changed(ctx, room.Edited, m.ID.String(), version, m.Author.ID.String(), func(seq int64) chat.Body {
		return chat.Edited{Seq: seq, Blocks: append(chat.TextBlocks(text), embedded(m)...)}
	})
}

// deleted tells whoever heard a message that it was taken back. A command that we took
// away ourselves is still to be carried out.
func (b *Bot) deleted(ctx context.Context, channel, message string) error {
	if _, err := b.Backend.Outgoing(ctx, b.lane(channel), "delete/"+message); err == nil {
		return nil
	}
	if b.isPin(channel, message) {
		return b.repinned(ctx, channel)
	}
	if b.tails.ordered(channel, message) {
		in, err := b.channelOf(ctx, channel)
		if err != nil {
			return err
		}
		return b.reordered(ctx, in, message, takenBack)
	}
	if err := b.unsaid(ctx, message); err != nil {
		return err
	}
	return b.changed(ctx, room.Deleted, message, 0, "", func(seq int64) chat.Body { return chat.Deleted{Seq: seq} })
}

// takenBack is the version of an order that is not there any more: behind every edit.
const takenBack = 1<<62 - 1

// changed writes a change of a message into every thread of ours that heard it.
func (b *Bot) changed(ctx context.Context, kind room.Kind, message string, version int, by string, body func(seq int64) chat.Body) error {
	places, err := b.Backend.Places(ctx, room.Transport, message)
	if err != nil {
		return err
	}
	a := journal.Arrival{Platform: room.Transport, Bot: b.Name, What: string(kind), PlatformID: message, Version: version}
	for _, p := range places {
		if p.Ours || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		a.Commits = append(a.Commits, journal.Commit{Thread: p.Thread, Events: []chat.Event{{Thread: p.Thread, Who: by, Body: body(p.Seq),
			Platform: room.Transport, PlatformID: message, Version: version}}})
	}
	if len(a.Commits) == 0 {
		return nil
	}
	_, err = b.Backend.Arrive(ctx, a)
	return err
}

// diceOf throws the same for the same message and agent, also after a restart.
func diceOf(message, agent string) activate.Dice {
	return func(n int) int {
		h := uint64(14695981039346656037)
		for _, c := range []byte(message + "@" + agent) {
			h = (h ^ uint64(c)) * 1099511628211
		}
		h ^= h >> 29
		return int(h % uint64(n))
	}
}
