package discord

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/outbox"
)

// sender does on Discord what the outbox asks for.
type sender struct{ bot *Bot }

var _ outbox.Platform = sender{}

func read(body json.RawMessage) (post, error) {
	var p post
	if err := json.Unmarshal(body, &p); err != nil {
		return p, &outbox.Trouble{Why: outbox.Invalid, Err: err}
	}
	return p, nil
}

// Create implements outbox.Platform.
func (s sender) Create(ctx context.Context, c outbox.Call) (string, error) {
	p, err := read(c.Body)
	if err != nil {
		return "", err
	}
	if p.Aside {
		if id, done, err := s.beside(ctx, c, p); err != nil || done {
			return id, trouble(err)
		}
	}
	m := discord.MessageCreate{Content: p.Text, Nonce: c.Nonce, EnforceNonce: true, AllowedMentions: nobody(), Components: p.buttons()}
	if p.ReplyTo != "" {
		id, channel := number(p.ReplyTo), number(c.Lane.Channel)
		m.MessageReference = &discord.MessageReference{MessageID: &id, ChannelID: &channel}
	}
	data, err := s.file(ctx, p)
	if err != nil {
		return "", err
	}
	m.Files = p.attached(data)
	made, err := s.bot.rest.once.CreateMessage(number(c.Lane.Channel), m, rest.WithCtx(ctx))
	open, err := s.bot.reopened(ctx, c.Lane.Channel, err)
	if open {
		m.Files = p.attached(data)
		made, err = s.bot.rest.once.CreateMessage(number(c.Lane.Channel), m, rest.WithCtx(ctx))
	}
	if m.MessageReference != nil && (status(err) == http.StatusBadRequest || rest.IsJSONErrorCode(err, rest.JSONErrorCodeUnknownMessage, rest.JSONErrorCodeCannotReplyWithoutReadMessageHistoryPermission)) {
		// A message that is gone meanwhile, or that we may not read again, is no reason not to answer. The library cannot ask Discord to see it that way.
		m.MessageReference = nil
		m.Files = p.attached(data)
		made, err = s.bot.rest.once.CreateMessage(number(c.Lane.Channel), m, rest.WithCtx(ctx))
	}
	if err != nil {
		return "", trouble(err)
	}
	return made.ID.String(), nil
}

// Edit implements outbox.Platform.
func (s sender) Edit(ctx context.Context, c outbox.Call) error {
	p, err := read(c.Body)
	if err != nil {
		return err
	}
	buttons := p.buttons()
	// Files that are not named here leave: an edit that is made twice has its file once.
	m := discord.MessageUpdate{Content: &p.Text, AllowedMentions: nobody(), Components: &buttons, Attachments: p.named()}
	data, err := s.file(ctx, p)
	if err != nil {
		return err
	}
	return s.inOpen(ctx, c, func() error {
		m.Files = p.attached(data)
		_, err := s.bot.rest.once.UpdateMessage(number(c.Lane.Channel), number(c.ID), m, rest.WithCtx(ctx))
		return err
	})
}

// inOpen does something that cannot be done in an archived thread.
func (s sender) inOpen(ctx context.Context, c outbox.Call, do func() error) error {
	open, err := s.bot.reopened(ctx, c.Lane.Channel, do())
	if open {
		err = do()
	}
	return trouble(err)
}

// Delete implements outbox.Platform.
func (s sender) Delete(ctx context.Context, c outbox.Call) error {
	return trouble(s.bot.rest.once.DeleteMessage(number(c.Lane.Channel), number(c.ID), rest.WithCtx(ctx)))
}

// React implements outbox.Platform.
func (s sender) React(ctx context.Context, c outbox.Call) error {
	p, err := read(c.Body)
	if err != nil {
		return err
	}
	return s.inOpen(ctx, c, func() error {
		return s.bot.rest.once.AddReaction(number(c.Lane.Channel), number(c.ID), p.Emoji, rest.WithCtx(ctx))
	})
}

// Unreact implements outbox.Platform.
func (s sender) Unreact(ctx context.Context, c outbox.Call) error {
	p, err := read(c.Body)
	if err != nil {
		return err
	}
	return s.inOpen(ctx, c, func() error {
		return s.bot.rest.once.RemoveOwnReaction(number(c.Lane.Channel), number(c.ID), p.Emoji, rest.WithCtx(ctx))
	})
}

// clockSkew is how far Discord's clock and ours may be apart.
const clockSkew = 5 * time.Second

// Find implements outbox.Platform. Discord does not give nonces back, so a message is ours
// when we wrote it, it answers the same message (or none, if that was gone) and says the same. Of several the oldest is meant.
func (s sender) Find(ctx context.Context, p outbox.Probe) (string, bool, error) {
	want, err := read(p.Body)
	if err != nil {
		return "", false, err
	}
	after := max(number(p.After), snowflake.New(p.Since.Add(-clockSkew))) // it was made after we first tried
	for range findPages {                                                 // it may be a later try that was heard, with much said before
		list, err := s.bot.rest.once.GetMessages(number(p.Lane.Channel), 0, 0, after, historyPage, rest.WithCtx(ctx))
		if err != nil {
			return "", false, trouble(err)
		}
		if id, found := s.findIn(list, want, p.Since); found || len(list) < historyPage {
			return id, found, nil
		}
		after = list[0].ID
	}
	return "", false, nil
}

// Answers implements outbox.Platform. It asks for something that Discord must look up: what it
// only repeats (where the gateway is) it says in its worst hours too.
func (s sender) Answers(ctx context.Context) bool {
	_, err := s.bot.rest.once.GetUser(number(s.bot.me().ID), rest.WithCtx(ctx))
	return err == nil || !passing(err)
}

// findPages bounds how far a message is looked for.
const findPages = 10

// findIn looks for a message of ours among others, the newest of which come first.
func (s sender) findIn(list []discord.Message, want post, since time.Time) (string, bool) {
	me := s.bot.me().ID
	for _, m := range slices.Backward(list) {
		replies := ""
		if m.MessageReference != nil && m.MessageReference.MessageID != nil {
			replies = m.MessageReference.MessageID.String()
		}
		if (m.Author.ID.String() == me || want.Aside && s.bot.ours(m)) && (replies == want.ReplyTo || replies == "") && !m.CreatedAt.Before(since.Add(-clockSkew)) && same(m.Content, want.Text) && (want.File == "" || len(m.Attachments) > 0) {
			return m.ID.String(), true
		}
	}
	return "", false
}

// same compares texts as the platform keeps them: without space around.
func same(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

// trouble says what sort of error it is.
func trouble(err error) error {
	var said *rest.Error
	if err == nil || !errors.As(err, &said) || said.Response == nil {
		return err
	}
	switch code := said.Response.StatusCode; {
	case code == http.StatusTooManyRequests:
		wait := seconds(said.Response.Header.Get("X-RateLimit-Reset-After"))
		if wait <= 0 {
			wait = seconds(said.Response.Header.Get("Retry-After"))
		}
		return &outbox.RateLimited{After: max(wait, 50*time.Millisecond), Global: said.Response.Header.Get("X-RateLimit-Global") != ""}
	case code >= 500:
		return &outbox.Trouble{Why: outbox.Temporary, Err: err}
	case said.Code == rest.JSONErrorCodeOperationOnArchivedThread:
		return &outbox.Trouble{Why: outbox.Archived, Err: err}
	case said.Code == rest.JSONErrorCodeUnknownChannel:
		return &outbox.Trouble{Why: outbox.Nowhere, Err: err}
	case code == http.StatusNotFound:
		return &outbox.Trouble{Why: outbox.Gone, Err: err}
	case code == http.StatusForbidden || code == http.StatusUnauthorized:
		return &outbox.Trouble{Why: outbox.Forbidden, Err: err}
	default:
		return &outbox.Trouble{Why: outbox.Invalid, Err: err}
	}
}

// echo notes a message of ours that the gateway tells of.
func (b *Bot) echo(ctx context.Context, m discord.Message) error {
	if m.Nonce == "" {
		return nil
	}
	_, err := b.outbox.Echo(ctx, string(m.Nonce), m.ID.String())
	return err
}
