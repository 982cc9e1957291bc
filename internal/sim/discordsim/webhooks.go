package discordsim

import (
	"cmp"
	"net/http"
	"strings"
)

// Webhook lets whoever has its token write into a channel under any name.
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

func (w *world) newWebhook(a *account, c *Channel, name string) (*Webhook, error) {
	f := &form{}
	f.between("name", len([]rune(strings.TrimSpace(name))), 1, 80)
	if low := strings.ToLower(name); strings.Contains(low, "clyde") || strings.Contains(low, "discord") {
		f.add("name", "BASE_TYPE_BAD_USERNAME", "Username cannot contain %q", low)
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	count := 0
	for _, h := range w.webhooks {
		if h.ChannelID == c.ID {
			count++
		}
	}
	if count >= 15 {
		return nil, badRequest(30007, "Maximum number of webhooks reached (15)")
	}
	id := w.id()
	h := &Webhook{ID: id, Type: 1, GuildID: c.GuildID, ChannelID: c.ID, User: &a.User, Name: &name, Token: "sim-webhook-" + id.String()}
	if a.Bot {
		h.ApplicationID = &a.ID
	}
	h.URL = w.url + "/api/v10/webhooks/" + id.String() + "/" + h.Token
	w.webhooks = append(w.webhooks, h)
	w.tellWebhooks(c)
	return h, nil
}

func (w *world) tellWebhooks(c *Channel) {
	w.emit(event{name: "WEBHOOKS_UPDATE", intent: intentWebhooks, channel: c, data: object{"guild_id": c.GuildID, "channel_id": c.ID}})
}

// webhook finds one by its id, and by its token where that is not empty.
func (w *world) webhook(id ID, token string) (*Webhook, error) {
	h := find(w.webhooks, func(h *Webhook) bool { return h.ID == id })
	if h == nil {
		return nil, notFound(10015, "Webhook")
	}
	if token != "" && token != h.Token {
		return nil, refuse(http.StatusUnauthorized, 50027, "Invalid Webhook Token")
	}
	return h, nil
}

// execute writes a message by a webhook; thread: into that thread of its channel.
func (w *world) execute(h *Webhook, thread ID, b *messageBody) (*Message, error) {
	c := w.channel(h.ChannelID)
	if c == nil {
		return nil, notFound(10003, "Channel")
	}
	author := User{ID: h.ID, Username: cmp.Or(b.Username, *h.Name), Discriminator: "0000", Bot: true, Avatar: h.Avatar}
	switch {
	case thread != 0 && b.ThreadName != "":
		return nil, badRequest(220002, "Webhooks posted to forum channels cannot have both a thread_name and thread_id")
	case thread != 0:
		t := w.channel(thread)
		if t == nil || !t.thread() || t.ParentID == nil || *t.ParentID != c.ID {
			return nil, notFound(10003, "Channel")
		}
		c = t
	case c.Type == TypeForum && b.ThreadName == "":
		return nil, badRequest(220001, "Webhooks posted to forum channels must have a thread_name or thread_id")
	case c.Type == TypeForum:
		c = w.newThread(author, c, TypePublicThread, 0, &threadBody{Name: b.ThreadName, AppliedTags: b.AppliedTags})
		return w.put(post{author: author, channel: c, body: b, webhook: h.ID, first: c.ID})
	case b.ThreadName != "":
		return nil, badRequest(220003, "Webhooks can only create threads in forum channels")
	}
	if c.Metadata != nil && c.Metadata.Locked {
		return nil, archived()
	}
	m, err := w.put(post{author: author, channel: c, body: b, webhook: h.ID})
	if err == nil && h.ApplicationID != nil {
		m.ApplicationID = *h.ApplicationID
	}
	return m, err
}
