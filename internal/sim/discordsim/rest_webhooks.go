package discordsim

import (
	"cmp"
	"net/http"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
)

func (s *Sim) routesWebhooks() {
	s.route("POST /channels/{channel}/webhooks", withAccount, func(c *call) (any, error) {
		in, err := c.place(guild.PermManageWebhooks)
		if err != nil {
			return nil, err
		}
		var b struct {
			Name string `json:"name"`
		}
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		return c.guild.NewWebhook(c.who, in, b.Name)
	})
	s.route("GET /channels/{channel}/webhooks", withAccount, func(c *call) (any, error) {
		in, err := c.place(guild.PermManageWebhooks)
		if err != nil {
			return nil, err
		}
		return c.webhooks(func(h *guild.Webhook) bool { return h.ChannelID == in.ID }), nil
	})
	s.route("GET /guilds/{guild}/webhooks", withAccount, func(c *call) (any, error) {
		if !c.guild.Rights(c.who, nil).Has(guild.PermManageWebhooks) {
			return nil, apierror.NoPermission()
		}
		return c.webhooks(func(*guild.Webhook) bool { return true }), c.inGuild()
	})
	for path, need := range map[string]needs{"/webhooks/{webhook}": withAccount, "/webhooks/{webhook}/{token}": withNobody} {
		s.route("GET "+path, need, func(c *call) (any, error) { return c.webhook() })
		s.route("PATCH "+path, need, func(c *call) (any, error) {
			h, err := c.webhook()
			if err != nil {
				return nil, err
			}
			var p apierror.Patch
			if err := c.decode(&p); err != nil {
				return nil, err
			}
			if err := cmp.Or(apierror.Take(p, "name", &h.Name), apierror.Take(p, "channel_id", &h.ChannelID)); err != nil {
				return nil, err
			}
			return h, nil
		})
		s.route("DELETE "+path, need, func(c *call) (any, error) {
			h, err := c.webhook()
			if err != nil {
				return nil, err
			}
			c.guild.DropWebhook(h)
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
		in, m, answer, err := c.written()
		if err != nil {
			return nil, err
		}
		b, err := guild.DecodeEdit(c.body, c.files)
		if err != nil {
			return nil, err
		}
		if answer {
			return c.show(m, c.guild.FillAnswer(in, m, b))
		}
		return c.show(m, c.guild.Edit(nil, in, m, b))
	})
	s.route("DELETE "+message, withNobody, func(c *call) (any, error) {
		in, m, _, err := c.written()
		if err == nil {
			c.guild.Remove(in, m.ID)
		}
		return nil, err
	})
}

func (c *call) webhooks(fits func(*guild.Webhook) bool) []*guild.Webhook {
	out := []*guild.Webhook{}
	for _, h := range c.guild.Webhooks {
		if fits(h) {
			out = append(out, h)
		}
	}
	return out
}

// webhook returns the webhook in the path: by its token, or by the caller's permission to manage it.
func (c *call) webhook() (*guild.Webhook, error) {
	h, err := c.guild.Webhook(c.id("webhook"), c.PathValue("token"))
	if err != nil || c.PathValue("token") != "" {
		return h, err
	}
	if _, err := c.guild.Place(c.who, h.ChannelID, guild.PermManageWebhooks); err != nil {
		return nil, err
	}
	return h, nil
}

// postWebhook serves one path for two things: a webhook's message, and a follow-up of an interaction.
func postWebhook(c *call) (any, error) {
	b, err := guild.DecodeMessage(c.body, c.files)
	if err != nil {
		return nil, err
	}
	if c.guild.Account(c.id("webhook")) != nil {
		return c.show(c.guild.FollowUp(c.id("webhook"), c.PathValue("token"), b))
	}
	h, err := c.guild.Webhook(c.id("webhook"), c.PathValue("token"))
	if err != nil {
		return nil, err
	}
	thread, err := c.queryID("thread_id")
	if err != nil {
		return nil, err
	}
	m, err := c.guild.Execute(h, thread, b)
	if err != nil {
		return nil, err
	}
	if c.URL.Query().Get("wait") != "true" {
		c.status = http.StatusNoContent
		return nil, nil
	}
	return c.show(m, nil)
}

// written returns the message in the path, which a webhook or an interaction wrote; answer: it was an interaction.
func (c *call) written() (in *guild.Channel, m *guild.Message, answer bool, err error) {
	var id guild.ID
	if c.PathValue("message") != "@original" {
		if id = c.id("message"); id == 0 {
			return nil, nil, false, apierror.NotFound(10008, "Message")
		}
	}
	if c.guild.Account(c.id("webhook")) != nil {
		in, m, err = c.guild.Answer(c.id("webhook"), c.PathValue("token"), id)
		return in, m, true, err
	}
	h, err := c.guild.Webhook(c.id("webhook"), c.PathValue("token"))
	if err != nil {
		return nil, nil, false, err
	}
	at := h.ChannelID
	if thread, err := c.queryID("thread_id"); err == nil && thread != 0 {
		at = thread
	}
	in = c.guild.Channel(at)
	if in == nil {
		return nil, nil, false, apierror.NotFound(10003, "Channel")
	}
	m = in.Message(id)
	if m == nil || m.WebhookID != h.ID {
		return nil, nil, false, apierror.NotFound(10008, "Message")
	}
	return in, m, false, nil
}
