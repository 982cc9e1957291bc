package discord

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/transport/discord/gateway"
)

// Create implements outbox.Platform.
func (c *Client) Create(ctx context.Context, call outbox.Call) (string, error) {
	p, err := platform.ReadPost(call.Body)
	if err != nil {
		return "", err
	}
	p = fitted(p)
	in, ok, err := c.forum(ctx, call.Lane.Channel, p)
	if err != nil {
		return "", err
	}
	if ok {
		return c.createPost(ctx, call, p, in)
	}
	defer c.closeAgain(ctx, call.Lane.Channel)
	if p.Aside {
		if id, done, err := c.aside(ctx, call, p); err != nil || done {
			return id, gateway.Trouble(err)
		}
	}
	channel := gateway.ID(call.Lane.Channel)
	m := discord.MessageCreate{Content: p.Text, Nonce: call.Nonce, EnforceNonce: true, AllowedMentions: gateway.Only(p.Notify), Components: components(p)}
	if p.Panel != "" {
		m.Content, m.Flags = "", discord.MessageFlagIsComponentsV2
	}
	if p.ReplyTo != "" {
		id := gateway.ID(p.ReplyTo)
		m.MessageReference = &discord.MessageReference{MessageID: &id, ChannelID: &channel}
	}
	post := func() (*discord.Message, error) {
		m.Files = attached(p, call.File) // each try reads them again
		return c.rest.Once.CreateMessage(channel, m, rest.WithCtx(ctx))
	}
	made, err := post()
	open, err := c.reopened(ctx, call.Lane.Channel, err)
	if open {
		made, err = post()
	}
	if m.MessageReference != nil && (gateway.Status(err) == http.StatusBadRequest || rest.IsJSONErrorCode(err, rest.JSONErrorCodeUnknownMessage, rest.JSONErrorCodeCannotReplyWithoutReadMessageHistoryPermission)) {
		// The answer is still posted if the original message is gone or unreadable. The library cannot tell Discord to ignore that.
		m.MessageReference = nil
		made, err = post()
	}
	if err != nil {
		return "", gateway.Trouble(err)
	}
	return made.ID.String(), nil
}

// attached is the post's file for one call.
func attached(p platform.Post, data []byte) []*discord.File {
	if p.File == "" {
		return nil
	}
	return []*discord.File{discord.NewFile(fileName(p.File), "", bytes.NewReader(data))}
}

// fileName is a name that is safe in a form: a quote would end the field, and the file
// would be lost without an error.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`"\/`, r) {
			return '_'
		}
		return r
	}, name)
}

// Edit implements outbox.Platform.
func (c *Client) Edit(ctx context.Context, call outbox.Call) error {
	p, err := platform.ReadPost(call.Body)
	if err != nil {
		return err
	}
	p = fitted(p)
	in, ok, err := c.forum(ctx, call.Lane.Channel, p)
	if err != nil {
		return err
	}
	if ok {
		return c.editPost(ctx, call, p, in)
	}
	parts := components(p)
	// Files not listed here are removed, so a repeated edit keeps its file only once.
	files := []discord.AttachmentUpdate{}
	if p.File != "" {
		files = append(files, discord.AttachmentCreate{ID: 0})
	}
	m := discord.MessageUpdate{Content: &p.Text, AllowedMentions: gateway.Only(p.Notify), Components: &parts, Attachments: &files}
	if p.Panel != "" {
		// This turns a message of an earlier version into a panel: its old text must go.
		none, flags := "", discord.MessageFlagIsComponentsV2
		m.Content, m.Embeds, m.Flags = &none, &[]discord.Embed{}, &flags
	}
	return c.inOpen(ctx, call.Lane.Channel, func() error {
		m.Files = attached(p, call.File)
		_, err := c.rest.Once.UpdateMessage(gateway.ID(call.Lane.Channel), gateway.ID(call.ID), m, rest.WithCtx(ctx))
		return err
	})
}

// inOpen does something that cannot be done in an archived thread.
func (c *Client) inOpen(ctx context.Context, thread string, do func() error) error {
	open, err := c.opening(ctx, thread, do)
	if open {
		c.closeAgain(ctx, thread)
	}
	return err
}

// opening does something in a thread and reopens it if it is archived. A post has two lanes, its card's and its messages': one may close the
// thread between the other's two calls. That is not an error, and the call is retried later.
func (c *Client) opening(ctx context.Context, thread string, do func() error) (opened bool, err error) {
	if opened, err = c.reopened(ctx, thread, do()); !opened {
		return false, gateway.Trouble(err)
	}
	err = gateway.Trouble(do())
	if platform.Is(err, outbox.Archived) {
		err = &outbox.Trouble{Why: outbox.Temporary, Err: err}
	}
	return true, err
}

// Delete implements outbox.Platform.
func (c *Client) Delete(ctx context.Context, call outbox.Call) error {
	return gateway.Trouble(c.rest.Once.DeleteMessage(gateway.ID(call.Lane.Channel), gateway.ID(call.ID), rest.WithCtx(ctx)))
}

// React implements outbox.Platform.
func (c *Client) React(ctx context.Context, call outbox.Call) error {
	return c.reaction(ctx, call, c.rest.Once.AddReaction)
}

// Unreact implements outbox.Platform.
func (c *Client) Unreact(ctx context.Context, call outbox.Call) error {
	return c.reaction(ctx, call, c.rest.Once.RemoveOwnReaction)
}

func (c *Client) reaction(ctx context.Context, call outbox.Call, do func(channel, message snowflake.ID, emoji string, opts ...rest.RequestOpt) error) error {
	p, err := platform.ReadPost(call.Body)
	if err != nil {
		return err
	}
	return c.inOpen(ctx, call.Lane.Channel, func() error {
		return do(gateway.ID(call.Lane.Channel), gateway.ID(call.ID), p.Emoji, rest.WithCtx(ctx))
	})
}

// clockSkew is the maximum difference between Discord's clock and ours.
const clockSkew = 5 * time.Second

// findPages limits how far back to look for a message.
const findPages = 10

// Find implements outbox.Platform. Discord does not return nonces, so a message matches
// if we wrote it, it answers the same message (or none, if that was deleted) and has the same text.
// The oldest match counts.
func (c *Client) Find(ctx context.Context, p outbox.Probe) (string, outbox.Verdict, error) {
	want, err := platform.ReadPost(p.Body)
	if err != nil {
		return "", outbox.Unknown, err
	}
	want = fitted(want)
	in, ok, err := c.forum(ctx, p.Lane.Channel, want)
	if err != nil {
		return "", outbox.Unknown, err
	}
	if ok {
		id, err := c.findPost(ctx, in, p.Nonce, *want.Entry)
		if err != nil || id == "" {
			return "", outbox.Absent, gateway.Trouble(err)
		}
		return id, outbox.Present, nil
	}
	after := max(gateway.ID(p.After), snowflake.New(p.Since.Add(-clockSkew))) // it was created after our first try
	for range findPages {                                                     // a later try may have succeeded, after many other messages
		list, err := c.rest.Once.GetMessages(gateway.ID(p.Lane.Channel), 0, 0, after, historyPage, rest.WithCtx(ctx))
		if err != nil {
			return "", outbox.Unknown, gateway.Trouble(err)
		}
		if id := c.findIn(list, want, p.Since); id != "" {
			return id, outbox.Present, nil
		}
		if len(list) < historyPage {
			break
		}
		after = list[0].ID
	}
	return "", outbox.Absent, nil
}

// findIn looks for a message of ours in a list, newest first; "": it is not
// there.
func (c *Client) findIn(list []discord.Message, want platform.Post, since time.Time) string {
	me := c.me().ID
	for _, m := range slices.Backward(list) {
		replies := ""
		if m.MessageReference != nil && m.MessageReference.MessageID != nil {
			replies = m.MessageReference.MessageID.String()
		}
		ours := m.Author.ID.String() == me || want.Aside && c.ours(m)
		if ours && (replies == want.ReplyTo || replies == "") && !m.CreatedAt.Before(since.Add(-clockSkew)) &&
			sameWords(wordsOf(m), want.Text) && (want.File == "" || len(m.Attachments) > 0) { // Discord trims surrounding space
			return m.ID.String()
		}
	}
	return ""
}
