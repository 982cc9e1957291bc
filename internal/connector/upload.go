package connector

import (
	"context"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// Announce posts a message in a channel that belongs to no conversation. The same key is
// posted once, however often it is called.
func (b *Bot) Announce(ctx context.Context, channel, key, text string) error {
	return b.SetDesired(ctx, journal.Desired{Lane: b.Lane(channel), Key: key, Body: platform.Post{Text: b.Backend.Redact(text)}.Body(), Final: true})
}

// Upload is a file for a channel.
type Upload struct {
	Thread  chat.ThreadID // its thread: a reply continues it
	Seq     int64         // the newest event that it follows from
	Channel string
	Key     string // the same key is the same file
	Name    string
	Blob    string // of its bytes
	Text    string
}

// Upload posts a file, once, and waits until it is there. The error is written for people.
func (b *Bot) Upload(ctx context.Context, u Upload) (link string, err error) {
	lane, key := b.Lane(u.Channel), "upload/"+u.Key
	if err := b.SetDesired(ctx, journal.Desired{Lane: lane, Key: key, Thread: u.Thread, Seq: u.Seq,
		Body: platform.Post{Text: u.Text, File: u.Name, Blob: u.Blob}.Body(), Final: true}); err != nil {
		return "", err
	}
	row, err := b.outbox.WaitDelivered(ctx, lane, key)
	switch {
	case err != nil:
		return "", Refusal(b.caps.Label + " does not answer; the file will be posted as soon as it does")
	case row.State == journal.Sent:
		return b.Link(ctx, u.Channel, row.ID), nil
	}
	switch outbox.Why(row.Why) {
	case outbox.Forbidden:
		return "", Refusal("I may not attach files in this channel; a server manager can allow it")
	case outbox.Gone, outbox.Nowhere:
		return "", Refusal("the channel no longer exists")
	default:
		return "", Refusal(b.caps.Label + " does not accept this file: it may be too large for this server, or of a type that is not allowed")
	}
}

// Link is the address of a message for people; "" if the platform has no links.
func (b *Bot) Link(ctx context.Context, channel, message string) string {
	guild := room.Direct
	if c, err := b.channelOf(ctx, channel); err == nil && c.Guild != "" {
		guild = c.Guild
	}
	return b.LinkIn(guild, channel, message)
}

// HasLinks reports whether messages have links.
func (b *Bot) HasLinks() bool { return b.can.links != nil }

// LinkIn is Link for callers that know the guild.
func (b *Bot) LinkIn(guild, channel, message string) string {
	if b.can.links == nil {
		return ""
	}
	return b.can.links.Link(guild, channel, message)
}
