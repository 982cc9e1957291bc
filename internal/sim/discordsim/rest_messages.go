package discordsim

import (
	"cmp"
	"net/http"
	"time"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
)

func (s *Sim) routesMessages() {
	const messages, message = "/channels/{channel}/messages", "/channels/{channel}/messages/{message}"
	s.route("GET "+messages, withAccount, getMessages)
	s.route("GET "+message, withAccount, func(c *call) (any, error) {
		_, m, err := c.at(guild.PermReadHistory)
		return c.show(m, err)
	})
	s.route("POST "+messages, withAccount, postMessage)
	s.route("PATCH "+message, withAccount, patchMessage)
	s.route("DELETE "+message, withAccount, deleteMessage)
	s.route("POST "+messages+"/bulk-delete", withAccount, bulkDelete)
	s.route("POST /channels/{channel}/typing", withAccount, typing)
	s.route("GET "+messages+"/pins", withAccount, getPins)
	s.route("GET /channels/{channel}/pins", withAccount, getPinsOld)
	for _, path := range []string{messages + "/pins/{message}", "/channels/{channel}/pins/{message}"} {
		s.route("PUT "+path, withAccount, func(c *call) (any, error) { return c.pin(true) })
		s.route("DELETE "+path, withAccount, func(c *call) (any, error) { return c.pin(false) })
	}
	s.route("PUT "+message+"/reactions/{emoji}/@me", withAccount, func(c *call) (any, error) {
		return c.reaction(guild.PermReadHistory, func(in *guild.Channel, m *guild.Message, e guild.Emoji) error { return c.guild.React(c.who, in, m, e) })
	})
	s.route("DELETE "+message+"/reactions/{emoji}/@me", withAccount, func(c *call) (any, error) {
		return c.reaction(0, func(in *guild.Channel, m *guild.Message, e guild.Emoji) error {
			return c.guild.Unreact(c.who.ID, in, m, e)
		})
	})
	s.route("DELETE "+message+"/reactions/{emoji}/{user}", withAccount, func(c *call) (any, error) {
		return c.reaction(guild.PermManageMessages, func(in *guild.Channel, m *guild.Message, e guild.Emoji) error {
			return c.guild.Unreact(c.id("user"), in, m, e)
		})
	})
	s.route("DELETE "+message+"/reactions/{emoji}", withAccount, func(c *call) (any, error) {
		return c.reaction(guild.PermManageMessages, func(in *guild.Channel, m *guild.Message, e guild.Emoji) error {
			c.guild.UnreactAll(in, m, &e)
			return nil
		})
	})
	// The last part is "reactions"; as a literal it would conflict with pins/{message} in the mux.
	s.route("DELETE "+message+"/{what}", withAccount, func(c *call) (any, error) {
		if c.PathValue("what") != "reactions" {
			return nil, apierror.Refuse(http.StatusNotFound, 0, "404: Not Found")
		}
		in, m, err := c.at(guild.PermManageMessages)
		if err == nil {
			c.guild.UnreactAll(in, m, nil)
		}
		return nil, err
	})
	s.route("GET "+message+"/reactions/{emoji}", withAccount, getReactions)
}

// show is a message as the caller sees it.
func (c *call) show(m *guild.Message, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	var viewer guild.ID
	if c.who != nil {
		viewer = c.who.ID
	}
	return c.guild.ViewMessage(m, viewer, false), nil
}

func (c *call) list(messages []*guild.Message) []guild.Message {
	out := make([]guild.Message, 0, len(messages))
	for _, m := range messages {
		out = append(out, c.guild.ViewMessage(m, c.who.ID, false))
	}
	return out
}

func getMessages(c *call) (any, error) {
	in, err := c.place(0)
	if err != nil {
		return nil, err
	}
	limit, err1 := c.query("limit", 50, 1, 100)
	before, err2 := c.queryID("before")
	after, err3 := c.queryID("after")
	around, err4 := c.queryID("around")
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	if !c.guild.Rights(c.who, in).Has(guild.PermReadHistory) {
		return []guild.Message{}, nil // Discord ignores it instead of refusing
	}
	return c.list(in.History(limit, before, after, around)), nil
}

func postMessage(c *call) (any, error) {
	in, err := c.place(0)
	if err != nil {
		return nil, err
	}
	b, err := guild.DecodeMessage(c.body, c.files)
	if err != nil {
		return nil, err
	}
	m, err := c.guild.Send(c.who, in, b)
	if err != nil {
		return nil, err
	}
	out := c.guild.ViewMessage(m, c.who.ID, false)
	out.Nonce = b.Nonce
	return out, nil
}

func patchMessage(c *call) (any, error) {
	in, m, err := c.at(0)
	if err != nil {
		return nil, err
	}
	b, err := guild.DecodeEdit(c.body, c.files)
	if err != nil {
		return nil, err
	}
	return c.show(m, c.guild.Edit(c.who, in, m, b))
}

func deleteMessage(c *call) (any, error) {
	in, m, err := c.at(0)
	if err != nil {
		return nil, err
	}
	if m.Author.ID != c.who.ID && !c.guild.Rights(c.who, in).Has(guild.PermManageMessages) {
		return nil, apierror.NoPermission()
	}
	if m.Type == guild.KindStarter {
		return nil, apierror.Refuse(http.StatusForbidden, 50021, "Cannot execute action on a system message")
	}
	c.guild.Remove(in, m.ID)
	return nil, nil
}

func bulkDelete(c *call) (any, error) {
	in, err := c.place(guild.PermManageMessages)
	if err != nil {
		return nil, err
	}
	var b struct {
		Messages []guild.ID `json:"messages"`
	}
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	if len(b.Messages) < 2 || len(b.Messages) > 100 {
		return nil, apierror.BadRequest(50016, "Provided too few or too many messages to delete. Must provide at least 2 and fewer than 100 messages to delete")
	}
	for _, id := range b.Messages {
		if c.guild.Now().Sub(id.Time()) > 14*24*time.Hour {
			return nil, apierror.BadRequest(50034, "You can only bulk delete messages that are under 14 days old.")
		}
	}
	c.guild.Remove(in, b.Messages...)
	return nil, nil
}

func typing(c *call) (any, error) {
	in, err := c.place(0)
	if err != nil {
		return nil, err
	}
	return nil, c.guild.Typing(c.who, in)
}

func getPins(c *call) (any, error) {
	in, err := c.place(guild.PermReadHistory)
	if err != nil {
		return nil, err
	}
	limit, err := c.query("limit", 50, 1, 50)
	if err != nil {
		return nil, err
	}
	before := c.guild.Now().Add(time.Hour)
	if text := c.URL.Query().Get("before"); text != "" {
		if before, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, apierror.Wrong("before", "DATE_TIME_TYPE_PARSE", "Could not parse %s. Should be ISO8601.", text)
		}
	}
	items, more := []object{}, false
	for _, m := range in.Pins() {
		if !m.PinnedAt().Before(before) {
			continue
		}
		if more = len(items) == limit; more {
			break
		}
		items = append(items, object{"pinned_at": m.PinnedAt(), "message": c.guild.ViewMessage(m, c.who.ID, false)})
	}
	return object{"items": items, "has_more": more}, nil
}

func getPinsOld(c *call) (any, error) {
	in, err := c.place(guild.PermReadHistory)
	if err != nil {
		return nil, err
	}
	return c.list(in.Pins()), nil
}

func (c *call) pin(on bool) (any, error) {
	in, m, err := c.at(0)
	if err != nil {
		return nil, err
	}
	if have := c.guild.Rights(c.who, in); !have.Has(guild.PermPinMessages) && !have.Has(guild.PermManageMessages) {
		return nil, apierror.NoPermission()
	}
	if in.Archived() {
		return nil, guild.ThreadArchived()
	}
	return nil, c.guild.Pin(c.who, in, m, on)
}

func (c *call) reaction(need guild.Perm, do func(*guild.Channel, *guild.Message, guild.Emoji) error) (any, error) {
	in, m, err := c.at(need)
	if err != nil {
		return nil, err
	}
	e, err := guild.ParseEmoji(c.PathValue("emoji"))
	if err != nil {
		return nil, err
	}
	return nil, do(in, m, e)
}

func getReactions(c *call) (any, error) {
	_, m, err := c.at(guild.PermReadHistory)
	if err != nil {
		return nil, err
	}
	e, err := guild.ParseEmoji(c.PathValue("emoji"))
	if err != nil {
		return nil, err
	}
	limit, err1 := c.query("limit", 25, 1, 100)
	after, err2 := c.queryID("after")
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	return c.guild.Reactors(m, e, after, limit), nil
}
