package discordsim

import (
	"net/http"
	"slices"
)

func (s *Sim) routesWebhooks() {
	s.route("POST /channels/{channel}/webhooks", withAccount, func(c *call) (any, error) {
		in, err := c.place(PermManageWebhooks)
		if err != nil {
			return nil, err
		}
		var b struct {
			Name string `json:"name"`
		}
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		return c.w.newWebhook(c.who, in, b.Name)
	})
	s.route("GET /channels/{channel}/webhooks", withAccount, func(c *call) (any, error) {
		in, err := c.place(PermManageWebhooks)
		if err != nil {
			return nil, err
		}
		return c.webhooks(func(h *Webhook) bool { return h.ChannelID == in.ID }), nil
	})
	s.route("GET /guilds/{guild}/webhooks", withAccount, func(c *call) (any, error) {
		if !c.w.rights(c.who, nil).Has(PermManageWebhooks) {
			return nil, noPermission()
		}
		return c.webhooks(func(*Webhook) bool { return true }), c.guild()
	})
	for path, need := range map[string]needs{"/webhooks/{webhook}": withAccount, "/webhooks/{webhook}/{token}": withNobody} {
		s.route("GET "+path, need, func(c *call) (any, error) { return c.webhook() })
		s.route("PATCH "+path, need, func(c *call) (any, error) {
			h, err := c.webhook()
			if err != nil {
				return nil, err
			}
			var p patch
			if err := c.decode(&p); err != nil {
				return nil, err
			}
			if err := firstOf(take(p, "name", &h.Name), take(p, "channel_id", &h.ChannelID)); err != nil {
				return nil, err
			}
			return h, nil
		})
		s.route("DELETE "+path, need, func(c *call) (any, error) {
			h, err := c.webhook()
			if err != nil {
				return nil, err
			}
			c.w.webhooks = slices.DeleteFunc(c.w.webhooks, func(have *Webhook) bool { return have == h })
			if in := c.w.channel(h.ChannelID); in != nil {
				c.w.tellWebhooks(in)
			}
			return nil, nil
		})
	}
	s.route("POST /webhooks/{webhook}/{token}", withNobody, postWebhook)
	const message = "/webhooks/{webhook}/{token}/messages/{message}"
	s.route("GET "+message, withNobody, func(c *call) (any, error) {
		_, m, _, err := c.written()
		return c.show(m, err)
	})
	s.route("PATCH "+message, withNobody, func(c *call) (any, error) {
		in, m, i, err := c.written()
		if err != nil {
			return nil, err
		}
		b, err := decodeEdit(c.body, c.files)
		if err != nil {
			return nil, err
		}
		if i != nil {
			return c.show(m, c.w.fill(i, m, b))
		}
		return c.show(m, c.w.edit(nil, in, m, b))
	})
	s.route("DELETE "+message, withNobody, func(c *call) (any, error) {
		in, m, _, err := c.written()
		if err == nil {
			c.w.remove(in, m.ID)
		}
		return nil, err
	})
}

func (c *call) webhooks(fits func(*Webhook) bool) []*Webhook {
	out := []*Webhook{}
	for _, h := range c.w.webhooks {
		if fits(h) {
			out = append(out, h)
		}
	}
	return out
}

// webhook is the webhook of the path: by its token, or by the asker's right to manage it.
func (c *call) webhook() (*Webhook, error) {
	h, err := c.w.webhook(c.id("webhook"), c.PathValue("token"))
	if err != nil || c.PathValue("token") != "" {
		return h, err
	}
	if _, err := c.w.place(c.who, h.ChannelID, PermManageWebhooks); err != nil {
		return nil, err
	}
	return h, nil
}

// postWebhook is one path for two things: a webhook's message, and a further answer to an interaction.
func postWebhook(c *call) (any, error) {
	b, err := decodeMessage(c.body, c.files)
	if err != nil {
		return nil, err
	}
	if c.w.account(c.id("webhook")) != nil {
		i, err := c.w.follow(c.id("webhook"), c.PathValue("token"))
		if err != nil {
			return nil, err
		}
		return c.show(c.w.followUp(i, b))
	}
	h, err := c.w.webhook(c.id("webhook"), c.PathValue("token"))
	if err != nil {
		return nil, err
	}
	thread, err := c.queryID("thread_id")
	if err != nil {
		return nil, err
	}
	m, err := c.w.execute(h, thread, b)
	if err != nil {
		return nil, err
	}
	if c.URL.Query().Get("wait") != "true" {
		c.status = http.StatusNoContent
		return nil, nil
	}
	return c.show(m, nil)
}

// written is the message of the path, which a webhook or an interaction wrote.
func (c *call) written() (*Channel, *Message, *interaction, error) {
	var id ID
	if c.PathValue("message") != "@original" {
		if id = c.id("message"); id == 0 {
			return nil, nil, nil, notFound(10008, "Message")
		}
	}
	if c.w.account(c.id("webhook")) != nil {
		i, err := c.w.follow(c.id("webhook"), c.PathValue("token"))
		if err != nil {
			return nil, nil, nil, err
		}
		m, err := c.w.answered(i, id)
		return i.channel, m, i, err
	}
	h, err := c.w.webhook(c.id("webhook"), c.PathValue("token"))
	if err != nil {
		return nil, nil, nil, err
	}
	at := h.ChannelID
	if thread, err := c.queryID("thread_id"); err == nil && thread != 0 {
		at = thread
	}
	in := c.w.channel(at)
	if in == nil {
		return nil, nil, nil, notFound(10003, "Channel")
	}
	m := in.message(id)
	if m == nil || m.WebhookID != h.ID {
		return nil, nil, nil, notFound(10008, "Message")
	}
	return in, m, nil, nil
}
