package connector

import (
	"context"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/history"
	"chorus/internal/room/mention"
)

// edited informs every thread that received a message of its new words. Without a time of the
// edit only a preview of a link was added: nothing was changed.
func (b *Bot) edited(ctx context.Context, m room.Message) error {
	if isConfig(m) && m.Pinned || b.isPin(m.In.ID, m.ID) {
		return b.pinsChanged(ctx, m.In.ID)
	}
	if m.Edited.IsZero() || m.Author.ID == b.Self().ID {
		return nil
	}
	text := mention.Read(m.Text, b.directory(m.In.Guild))
	version := int(m.Edited.UnixMilli())
	if _, is, _ := history.Parse(m.Text); is || b.recent.isCommand(m.In.ID, m.ID) {
		b.recent.command(m.In.ID, m.ID)
		return b.historyCommandChanged(ctx, m.In, m.ID, version)
	}
	return b.changed(ctx, room.Edited, m.ID, version, m.Author.ID, func(seq int64) chat.Body {
		return chat.Edited{Seq: seq, Blocks: append(chat.TextBlocks(text), embedded(m)...)}
	})
}

// deleted informs every thread that received a message that it was deleted. A command that
// we deleted ourselves is still to be carried out.
func (b *Bot) deleted(ctx context.Context, channel, message string) error {
	if _, err := b.Backend.Outgoing(ctx, b.Lane(channel), "delete/"+message); err == nil {
		return nil
	}
	if b.isPin(channel, message) {
		return b.pinsChanged(ctx, channel)
	}
	if b.recent.isCommand(channel, message) {
		in, err := b.channelOf(ctx, channel)
		if err != nil {
			return err
		}
		return b.historyCommandChanged(ctx, in, message, versionDeleted)
	}
	if err := b.answerDeleted(ctx, message); err != nil {
		return err
	}
	return b.changed(ctx, room.Deleted, message, 0, "", func(seq int64) chat.Body { return chat.Deleted{Seq: seq} })
}

// versionDeleted is the version of a command that was deleted: after every edit.
const versionDeleted = 1<<62 - 1

// changed writes a change of a message into every thread of ours that received it.
func (b *Bot) changed(ctx context.Context, kind room.Kind, message string, version int, by string, body func(seq int64) chat.Body) error {
	places, err := b.Backend.Places(ctx, b.transport, message)
	if err != nil {
		return err
	}
	a := journal.Arrival{Platform: b.transport, Bot: b.Name, What: string(kind), PlatformID: message, Version: version}
	for _, p := range places {
		if p.Ours || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		a.Commits = append(a.Commits, journal.Commit{Thread: p.Thread, Events: []chat.Event{{Thread: p.Thread, Who: by, Body: body(p.Seq),
			Platform: b.transport, PlatformID: message, Version: version}}})
	}
	if len(a.Commits) == 0 {
		return nil
	}
	_, err = b.Backend.Arrive(ctx, a)
	return err
}

// diceOf gives the same numbers for the same message and agent, also after a restart.
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
