package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/room"
)

// file is what a post carries beside its text.
func (s sender) file(ctx context.Context, p post) ([]byte, error) {
	if p.Blob == "" {
		return []byte(p.Content), nil
	}
	data, err := s.bot.Backend.Blob(ctx, p.Blob)
	if err != nil {
		return nil, &outbox.Trouble{Why: outbox.Invalid, Err: err}
	}
	return data, nil
}

// attached is the post's file for one call: each call reads it anew.
func (p post) attached(data []byte) []*discord.File {
	if p.File == "" {
		return nil
	}
	return []*discord.File{discord.NewFile(p.File, "", bytes.NewReader(data))}
}

// named are the files that a message has after an edit: the one of the call, or none.
func (p post) named() *[]discord.AttachmentUpdate {
	list := []discord.AttachmentUpdate{}
	if p.File != "" {
		list = append(list, discord.AttachmentCreate{ID: 0})
	}
	return &list
}

// Upload is a file that goes into a channel.
type Upload struct {
	Thread  chat.ThreadID // whose it is: whoever replies to it goes on with that
	Seq     int64         // the newest event that it follows from
	Channel string
	Key     string // the same key is the same file
	Name    string
	Blob    string // of its bytes
	Text    string
}

// Upload posts a file, once, and waits until it stands there. The error is for people.
func (b *Bot) Upload(ctx context.Context, u Upload) (link string, err error) {
	body, _ := json.Marshal(post{Text: u.Text, File: u.Name, Blob: u.Blob}) // strings only
	lane, key := b.lane(u.Channel), "upload/"+u.Key
	if err := b.Backend.Wish(ctx, journal.Desired{Lane: lane, Key: key, Thread: u.Thread, Seq: u.Seq, Body: body, Final: true}); err != nil {
		return "", err
	}
	b.outbox.Wake(lane)
	row, err := b.outbox.Stands(ctx, lane, key)
	switch {
	case err != nil:
		return "", connector.Refusal("Discord does not answer; the file will be posted as soon as it does")
	case row.State == journal.Sent:
		return b.Link(ctx, u.Channel, row.ID), nil
	}
	switch outbox.Why(row.Why) {
	case outbox.Forbidden:
		return "", connector.Refusal("I may not attach files in this channel; somebody who keeps the server can allow it")
	case outbox.Gone, outbox.Nowhere:
		return "", connector.Refusal("the channel is not there any more")
	default:
		return "", connector.Refusal("Discord does not take this file: it may be too large for this server, or of a kind that is not allowed")
	}
}

// Link is where people find a message.
func (b *Bot) Link(ctx context.Context, channel, message string) string {
	guild := room.Direct
	if c, err := b.channelOf(ctx, channel); err == nil && c.Guild != "" {
		guild = c.Guild
	}
	return Link(guild, channel, message)
}

// Link is where people find a message of a guild.
func Link(guild, channel, message string) string {
	return fmt.Sprintf("https://discord.com/channels/%s/%s/%s", guild, channel, message)
}
