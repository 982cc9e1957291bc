package discord

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/outbox"
	"chorus/internal/room"
)

// hookName is what our webhooks are called in a channel's settings.
const hookName = "Chorus tools"

// hookless is how long a channel that lets us have no webhook is not asked for one again.
const hookless = time.Hour

// hook is the webhook through which we speak beside the conversation in a channel.
type hook struct {
	id    snowflake.ID // 0: there is none
	token string
	until time.Time // none: when to ask again
}

// hook finds ours in a channel, or makes it. None is no error: then we speak as ourselves.
func (b *Bot) hook(ctx context.Context, in room.Channel) (hook, error) {
	if in.Guild == "" || in.Guild == room.Direct {
		return hook{}, nil
	}
	b.mu.Lock()
	h, known := b.hooks[in.Home()]
	app := b.app
	b.mu.Unlock()
	if known && (h.id != 0 || time.Now().Before(h.until)) {
		return h, nil
	}
	h, err := b.findHook(ctx, number(in.Home()), app)
	switch code := status(err); {
	case err == nil:
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests:
		b.Log.Info("there is no webhook for what tools say; the bot speaks itself (it needs Manage Webhooks)", "event", "no_webhook", "channel", in.Home(), "error", err)
		h = hook{until: time.Now().Add(hookless)}
	default:
		return hook{}, err
	}
	b.mu.Lock()
	b.hooks[in.Home()] = h
	b.mu.Unlock()
	return h, nil
}

func (b *Bot) findHook(ctx context.Context, channel snowflake.ID, app string) (hook, error) {
	list, err := b.rest.once.GetWebhooks(channel, rest.WithCtx(ctx))
	if err != nil {
		return hook{}, err
	}
	for _, w := range list {
		if in, ok := w.(discord.IncomingWebhook); ok && in.Token != "" && in.ApplicationID != nil && in.ApplicationID.String() == app {
			return hook{id: in.ID(), token: in.Token}, nil
		}
	}
	// Whoever dies here leaves a webhook that the next one finds.
	made, err := b.rest.once.CreateWebhook(channel, discord.WebhookCreate{Name: hookName}, rest.WithCtx(ctx))
	if err != nil {
		return hook{}, err
	}
	return hook{id: made.ID(), token: made.Token}, nil
}

// ours reports whether a message came through a webhook of ours: it is no words of anybody.
func (b *Bot) ours(m discord.Message) bool {
	if m.WebhookID == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.ApplicationID != nil && m.ApplicationID.String() == b.app {
		return true
	}
	for _, h := range b.hooks {
		if h.id == *m.WebhookID {
			return true
		}
	}
	return false
}

// beside posts something that is said beside the conversation: through a webhook, so that other
// programs do not take it for the bot's words. false: there is none, and the bot must say it itself.
// Webhooks know no nonces: a call whose answer was lost is looked for before it is
// repeated, but a crash in between can post it twice.
func (s sender) beside(ctx context.Context, c outbox.Call, p post) (id string, ok bool, err error) {
	b := s.bot
	in, err := b.channelOf(ctx, c.Lane.Channel)
	if err != nil {
		return "", false, nil
	}
	h, err := b.hook(ctx, in)
	if err != nil || h.id == 0 {
		return "", false, err
	}
	if b.triedBeside(c.Nonce) {
		if id, found, err := s.Find(ctx, outbox.Probe{Lane: c.Lane, Key: c.Key, Body: c.Body}); err != nil || found {
			return id, true, err
		}
	}
	params := rest.CreateWebhookMessageParams{Wait: true}
	if in.Parent != "" {
		params.ThreadID = number(in.ID)
	}
	m := discord.WebhookMessageCreate{Content: p.Text, Username: hookUser(p.Name), AllowedMentions: nobody()}
	if p.File != "" {
		m.Files = []*discord.File{discord.NewFile(p.File, "", strings.NewReader(p.Content))}
	}
	made, err := b.rest.once.CreateWebhookMessage(h.id, h.token, m, params, rest.WithCtx(ctx))
	if status(err) == http.StatusNotFound {
		b.mu.Lock()
		delete(b.hooks, in.Home()) // somebody took it away
		b.mu.Unlock()
		return "", false, nil
	}
	if err != nil {
		return "", true, err
	}
	return made.ID.String(), true, nil
}

// manyTried bounds how many calls are remembered.
const manyTried = 200

// triedBeside notes that a call was begun, and reports whether it was before.
func (b *Bot) triedBeside(nonce string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.Contains(b.tried, nonce) {
		return true
	}
	b.tried = append(b.tried, nonce)
	b.tried = b.tried[max(0, len(b.tried)-manyTried):]
	return false
}

// hookUser is a name that Discord lets a webhook have.
func hookUser(name string) string {
	low := strings.ToLower(name)
	if strings.Contains(low, "discord") || strings.Contains(low, "clyde") {
		return "tools"
	}
	return first(name, "tools")
}
