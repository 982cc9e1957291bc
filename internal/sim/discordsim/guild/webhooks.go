package guild

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"chorus/internal/sim/discordsim/apierror"
)

// Webhook lets the holder of its token write into a channel under any name.
type Webhook struct {
	ID            ID      `json:"id"`
	Type          int     `json:"type"`
	GuildID       ID      `json:"guild_id,omitzero"`
	ChannelID     ID      `json:"channel_id"`
	User          *User   `json:"user,omitempty"`
	Name          *string `json:"name"`
	Avatar        *string `json:"avatar"`
	Token         string  `json:"token,omitempty"`
	ApplicationID *ID     `json:"application_id"`
	URL           string  `json:"url,omitempty"`
}

// NewWebhook makes a webhook of a channel.
func (g *Guild) NewWebhook(a *Account, c *Channel, name string) (*Webhook, error) {
	f := &apierror.Form{}
	f.Between("name", len([]rune(strings.TrimSpace(name))), 1, 80)
	if low := strings.ToLower(name); strings.Contains(low, "clyde") || strings.Contains(low, "discord") {
		f.Add("name", "BASE_TYPE_BAD_USERNAME", "Username cannot contain %q", low)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	count := 0
	for _, h := range g.Webhooks {
		if h.ChannelID == c.ID {
			count++
		}
	}
	if count >= 15 {
		return nil, apierror.BadRequest(30007, "Maximum number of webhooks reached (15)")
	}
	id := g.NewID()
	h := &Webhook{ID: id, Type: 1, GuildID: c.GuildID, ChannelID: c.ID, User: &a.User, Name: &name, Token: "sim-webhook-" + id.String()}
	if a.Bot {
		h.ApplicationID = &a.ID
	}
	h.URL = g.url + "/api/v10/webhooks/" + id.String() + "/" + h.Token
	g.Webhooks = append(g.Webhooks, h)
	g.tellWebhooks(c)
	return h, nil
}

func (g *Guild) tellWebhooks(c *Channel) {
	g.emit(Event{Name: "WEBHOOKS_UPDATE", intent: IntentWebhooks, Channel: c, data: object{"guild_id": c.GuildID, "channel_id": c.ID}})
}

// Webhook finds a webhook by its id, and by its token if that is not empty.
func (g *Guild) Webhook(id ID, token string) (*Webhook, error) {
	h := find(g.Webhooks, func(h *Webhook) bool { return h.ID == id })
	if h == nil {
		return nil, apierror.NotFound(10015, "Webhook")
	}
	if token != "" && token != h.Token {
		return nil, apierror.Refuse(http.StatusUnauthorized, 50027, "Invalid Webhook Token")
	}
	return h, nil
}

// Execute writes a message as a webhook; thread: into that thread of its channel.
func (g *Guild) Execute(h *Webhook, thread ID, b *messageBody) (*Message, error) {
	c := g.Channel(h.ChannelID)
	if c == nil {
		return nil, apierror.NotFound(10003, "Channel")
	}
	author := User{ID: h.ID, Username: cmp.Or(b.Username, *h.Name), Discriminator: "0000", Bot: true, Avatar: h.Avatar}
	switch {
	case thread != 0 && b.ThreadName != "":
		return nil, apierror.BadRequest(220002, "Webhooks posted to forum channels cannot have both a thread_name and thread_id")
	case thread != 0:
		t := g.Channel(thread)
		if t == nil || !t.IsThread() || t.ParentID == nil || *t.ParentID != c.ID {
			return nil, apierror.NotFound(10003, "Channel")
		}
		c = t
	case c.Type == TypeForum && b.ThreadName == "":
		return nil, apierror.BadRequest(220001, "Webhooks posted to forum channels must have a thread_name or thread_id")
	case c.Type == TypeForum:
		c = g.newThread(author, c, TypePublicThread, 0, &ThreadBody{Name: b.ThreadName, AppliedTags: b.AppliedTags})
		return g.put(post{author: author, channel: c, body: b, webhook: h.ID, first: c.ID})
	case b.ThreadName != "":
		return nil, apierror.BadRequest(220003, "Webhooks can only create threads in forum channels")
	}
	if c.Metadata != nil && c.Metadata.Locked {
		return nil, ThreadArchived()
	}
	m, err := g.put(post{author: author, channel: c, body: b, webhook: h.ID})
	if err == nil && h.ApplicationID != nil {
		m.ApplicationID = *h.ApplicationID
	}
	return m, err
}

// DropWebhook deletes a webhook.
func (g *Guild) DropWebhook(h *Webhook) {
	g.Webhooks = slices.DeleteFunc(g.Webhooks, func(have *Webhook) bool { return have == h })
	if c := g.Channel(h.ChannelID); c != nil {
		g.tellWebhooks(c)
	}
}
