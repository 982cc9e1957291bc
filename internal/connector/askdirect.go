package connector

import (
	"context"
	"time"

	"chorus/internal/platform"
	"chorus/internal/room"
)

// AskDirectly takes words that somebody gave with a command, in a place where the bot can neither
// read nor write, as a message in their direct messages. The answer comes there, and the channel
// is returned. The words are in the journal when it returns; repeating the command has no effect. No
// message has their id, so the answer is not a reply, and no reaction shows the progress.
func (b *Bot) AskDirectly(ctx context.Context, i platform.Invocation, words string) (channel string, err error) {
	if b.can.direct == nil {
		return "", Refusal("I am not in this channel, so I cannot answer here.")
	}
	if channel, err = b.can.direct.DirectChannel(ctx, i.By.ID); err != nil {
		return "", err
	}
	in, err := b.Platform.Channel(ctx, channel)
	if err != nil {
		return "", err
	}
	by := i.By
	by.Roles, by.Member = nil, false // roles of another guild mean nothing here
	w := &waking{bot: b}
	_, err = b.message(ctx, room.Message{ID: i.ID, In: in, Author: by, Text: words, Mentions: []string{b.Self().ID}, Files: i.Files, At: time.Now()}, w)
	w.up(ctx)
	return channel, err
}
