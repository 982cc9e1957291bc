package discord

import (
	"context"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/chat"
	"chorus/internal/room/mention"
)

// olderPages is how far back a search goes: a thousand messages.
const olderPages = 10

// Found is a message in a channel's history.
type Found struct {
	ID     string
	Author string
	From   chat.Participant
	Ours   bool // this bot said it
	At     time.Time
	Text   string
}

// Older reads a channel's history back from a message ("": from now) and gives those that fit,
// the newest first: at most limit of them, and never further than a thousand messages.
func (b *Bot) Older(ctx context.Context, channel, before string, limit int, fits func(Found) bool) ([]Found, error) {
	in, err := b.channelOf(ctx, channel)
	if err != nil {
		return nil, err
	}
	var out []Found
	for range olderPages {
		list, err := again(ctx, b.rest, "history", func(ctx context.Context) ([]discord.Message, error) {
			return b.rest.GetMessages(number(channel), 0, number(before), 0, historyPage, rest.WithCtx(ctx))
		})
		if err != nil {
			return out, err
		}
		for _, m := range list { // the newest come first
			f := Found{ID: m.ID.String(), Author: m.Author.Username, From: b.author(in.Guild, m.Author, m.Member, "").Participant(), Ours: m.Author.ID.String() == b.me().ID, At: m.CreatedAt,
				Text: mention.Read(m.Content, b.world.directory(in.Guild))}
			for _, a := range m.Attachments {
				f.Text = strings.TrimSpace(f.Text + "\n[file " + a.Filename + "]")
			}
			if m.Type != discord.MessageTypeDefault && m.Type != discord.MessageTypeReply || pressable(m) || !fits(f) {
				continue
			}
			if out = append(out, f); len(out) == limit {
				return out, nil
			}
		}
		if len(list) < historyPage {
			return out, nil
		}
		before = list[len(list)-1].ID.String()
	}
	return out, nil
}
