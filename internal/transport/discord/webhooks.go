package discord

import (
	"cmp"
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
	"chorus/internal/room"
	"chorus/internal/transport/discord/gateway"
)

// hookName is the name of our webhooks in a channel's settings.
const hookName = "Chorus tools"

// hookless is how long to wait after a channel has refused a webhook.
const hookless = time.Hour

// hook is the webhook for our messages outside the conversation in a channel.
type hook struct {
	id    snowflake.ID // 0: there is none
	token string
	until time.Time // none: when to ask again
}

// hook finds our webhook in a channel, or creates it. Without one, which is no error, the bot posts as itself.
func (c *Client) hook(ctx context.Context, in room.Channel) (hook, error) {
	if in.Guild == "" || in.Guild == room.Direct {
		return hook{}, nil
	}
	c.mu.Lock()
	h, known := c.hooks[in.Home()]
	app := c.app
	c.mu.Unlock()
	if known && (h.id != 0 || time.Now().Before(h.until)) {
		return h, nil
	}
	h, err := c.findHook(ctx, gateway.ID(in.Home()), app)
	switch code := gateway.Status(err); {
	case err == nil:
	case code >= 400 && code < 500 && code != http.StatusTooManyRequests:
		c.Log.Info("there is no webhook for what tools say; the bot speaks itself (it needs Manage Webhooks)", "event", "no_webhook", "channel", in.Home(), "error", err)
		h = hook{until: time.Now().Add(hookless)}
	default:
		return hook{}, err
	}
	c.mu.Lock()
	c.hooks[in.Home()] = h
	c.mu.Unlock()
	return h, nil
}

func (c *Client) findHook(ctx context.Context, channel snowflake.ID, app string) (hook, error) {
	list, err := c.rest.Once.GetWebhooks(channel, rest.WithCtx(ctx))
	if err != nil {
		return hook{}, err
	}
	for _, w := range list {
		if in, ok := w.(discord.IncomingWebhook); ok && in.Token != "" && in.ApplicationID != nil && in.ApplicationID.String() == app {
			return hook{id: in.ID(), token: in.Token}, nil
		}
	}
	// If we die here, the next process finds the webhook.
	made, err := c.rest.Once.CreateWebhook(channel, discord.WebhookCreate{Name: hookName}, rest.WithCtx(ctx))
	if err != nil {
		return hook{}, err
	}
	return hook{id: made.ID(), token: made.Token}, nil
}

// ours reports whether a message came through a webhook of ours, so it is not part of a conversation.
func (c *Client) ours(m discord.Message) bool {
	if m.WebhookID == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.ApplicationID != nil && m.ApplicationID.String() == c.app {
		return true
	}
	for _, h := range c.hooks {
		if h.id == *m.WebhookID {
			return true
		}
	}
	return false
}

// aside posts something outside the conversation: through a webhook, so that other programs
// do not take it for the bot's words. false: there is no webhook, and the bot must post it itself.
// Webhooks do not support nonces. A call whose answer was lost is looked for before it is repeated,
// but a crash in between can post it twice.
func (c *Client) aside(ctx context.Context, call outbox.Call, p platform.Post) (id string, ok bool, err error) {
	in, err := c.Channel(ctx, call.Lane.Channel)
	if err != nil {
		return "", false, nil
	}
	h, err := c.hook(ctx, in)
	if err != nil || h.id == 0 {
		return "", false, err
	}
	if c.triedAside(call.Nonce) {
		if id, v, err := c.Find(ctx, outbox.Probe{Lane: call.Lane, Key: call.Key, Body: call.Body}); err != nil || v == outbox.Present {
			return id, true, err
		}
	}
	params := rest.CreateWebhookMessageParams{Wait: true}
	if in.Parent != "" {
		params.ThreadID = gateway.ID(in.ID)
	}
	m := discord.WebhookMessageCreate{Content: p.Text, Username: hookUser(p.Name), AllowedMentions: gateway.Nobody()}
	m.Files = attached(p, call.File)
	made, err := c.rest.Once.CreateWebhookMessage(h.id, h.token, m, params, rest.WithCtx(ctx))
	if gateway.Status(err) == http.StatusNotFound {
		c.mu.Lock()
		delete(c.hooks, in.Home()) // somebody removed it
		c.mu.Unlock()
		return "", false, nil
	}
	if err != nil {
		return "", true, err
	}
	return made.ID.String(), true, nil
}

// maxTried limits how many calls are remembered.
const maxTried = 200

// triedAside records that a call was started, and reports whether it had been before.
func (c *Client) triedAside(nonce string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.tried, nonce) {
		return true
	}
	c.tried = append(c.tried, nonce)
	c.tried = c.tried[max(0, len(c.tried)-maxTried):]
	return false
}

// hookUser is a name that Discord allows for a webhook.
func hookUser(name string) string {
	low := strings.ToLower(name)
	if strings.Contains(low, "discord") || strings.Contains(low, "clyde") {
		return "tools"
	}
	return cmp.Or(name, "tools")
}
