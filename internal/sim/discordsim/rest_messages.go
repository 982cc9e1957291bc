package discordsim

import (
	"net/http"
	"time"
)

func (s *Sim) routesMessages() {
	const messages, message = "/channels/{channel}/messages", "/channels/{channel}/messages/{message}"
	s.route("GET "+messages, withAccount, getMessages)
	s.route("GET "+message, withAccount, func(c *call) (any, error) {
		_, m, err := c.at(PermReadHistory)
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
		return c.reaction(PermReadHistory, func(in *Channel, m *Message, e Emoji) error { return c.w.react(c.who, in, m, e) })
	})
	s.route("DELETE "+message+"/reactions/{emoji}/@me", withAccount, func(c *call) (any, error) {
		return c.reaction(0, func(in *Channel, m *Message, e Emoji) error { return c.w.unreact(c.who.ID, in, m, e) })
	})
	s.route("DELETE "+message+"/reactions/{emoji}/{user}", withAccount, func(c *call) (any, error) {
		return c.reaction(PermManageMessages, func(in *Channel, m *Message, e Emoji) error { return c.w.unreact(c.id("user"), in, m, e) })
	})
	s.route("DELETE "+message+"/reactions/{emoji}", withAccount, func(c *call) (any, error) {
		return c.reaction(PermManageMessages, func(in *Channel, m *Message, e Emoji) error {
			c.w.unreactAll(in, m, &e)
			return nil
		})
	})
	// The last part is "reactions"; spelled out it would stand beside pins/{message}, and the mux could not choose.
	s.route("DELETE "+message+"/{what}", withAccount, func(c *call) (any, error) {
		if c.PathValue("what") != "reactions" {
			return nil, refuse(http.StatusNotFound, 0, "404: Not Found")
		}
		in, m, err := c.at(PermManageMessages)
		if err == nil {
			c.w.unreactAll(in, m, nil)
		}
		return nil, err
	})
	s.route("GET "+message+"/reactions/{emoji}", withAccount, getReactions)
}

// show is a message as the asker sees it.
func (c *call) show(m *Message, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	var viewer ID
	if c.who != nil {
		viewer = c.who.ID
	}
	return c.w.view(m, viewer, false), nil
}

func (c *call) list(messages []*Message) []Message {
	out := make([]Message, 0, len(messages))
	for _, m := range messages {
		out = append(out, c.w.view(m, c.who.ID, false))
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
	if err := firstOf(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	if !c.w.rights(c.who, in).Has(PermReadHistory) {
		return []Message{}, nil // Discord says nothing rather than no
	}
	return c.list(in.history(limit, before, after, around)), nil
}

func postMessage(c *call) (any, error) {
	in, err := c.place(0)
	if err != nil {
		return nil, err
	}
	b, err := decodeMessage(c.body, c.files)
	if err != nil {
		return nil, err
	}
	m, err := c.w.send(c.who, in, b)
	if err != nil {
		return nil, err
	}
	out := c.w.view(m, c.who.ID, false)
	out.Nonce = b.Nonce
	return out, nil
}

func patchMessage(c *call) (any, error) {
	in, m, err := c.at(0)
	if err != nil {
		return nil, err
	}
	b, err := decodeEdit(c.body, c.files)
	if err != nil {
		return nil, err
	}
	return c.show(m, c.w.edit(c.who, in, m, b))
}

func deleteMessage(c *call) (any, error) {
	in, m, err := c.at(0)
	if err != nil {
		return nil, err
	}
	if m.Author.ID != c.who.ID && !c.w.rights(c.who, in).Has(PermManageMessages) {
		return nil, noPermission()
	}
	if m.Type == kindStarter {
		return nil, refuse(http.StatusForbidden, 50021, "Cannot execute action on a system message")
	}
	c.w.remove(in, m.ID)
	return nil, nil
}

func bulkDelete(c *call) (any, error) {
	in, err := c.place(PermManageMessages)
	if err != nil {
		return nil, err
	}
	var b struct {
		Messages []ID `json:"messages"`
	}
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	if len(b.Messages) < 2 || len(b.Messages) > 100 {
		return nil, badRequest(50016, "Provided too few or too many messages to delete. Must provide at least 2 and fewer than 100 messages to delete")
	}
	for _, id := range b.Messages {
		if c.w.now().Sub(id.Time()) > 14*24*time.Hour {
			return nil, badRequest(50034, "You can only bulk delete messages that are under 14 days old.")
		}
	}
	c.w.remove(in, b.Messages...)
	return nil, nil
}

func typing(c *call) (any, error) {
	in, err := c.place(0)
	if err != nil {
		return nil, err
	}
	if !c.w.rights(c.who, in).Has(PermSend) {
		return nil, noPermission()
	}
	if in.Metadata != nil && in.Metadata.Archived {
		return nil, archived()
	}
	data := object{"channel_id": in.ID, "user_id": c.who.ID, "timestamp": c.w.now().Unix()}
	if in.GuildID != 0 {
		data["guild_id"], data["member"] = in.GuildID, c.w.memberOf(c.who, true)
	}
	c.w.emit(event{name: "TYPING_START", intent: intentTyping, dmIntent: intentDMTyping, channel: in, data: data})
	return nil, nil
}

func getPins(c *call) (any, error) {
	in, err := c.place(PermReadHistory)
	if err != nil {
		return nil, err
	}
	limit, err := c.query("limit", 50, 1, 50)
	if err != nil {
		return nil, err
	}
	before := c.w.now().Add(time.Hour)
	if text := c.URL.Query().Get("before"); text != "" {
		if before, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, wrong("before", "DATE_TIME_TYPE_PARSE", "Could not parse %s. Should be ISO8601.", text)
		}
	}
	items, more := []object{}, false
	for _, m := range in.pins() {
		if !m.pinnedAt.Before(before) {
			continue
		}
		if more = len(items) == limit; more {
			break
		}
		items = append(items, object{"pinned_at": m.pinnedAt, "message": c.w.view(m, c.who.ID, false)})
	}
	return object{"items": items, "has_more": more}, nil
}

func getPinsOld(c *call) (any, error) {
	in, err := c.place(PermReadHistory)
	if err != nil {
		return nil, err
	}
	return c.list(in.pins()), nil
}

func (c *call) pin(on bool) (any, error) {
	in, m, err := c.at(0)
	if err != nil {
		return nil, err
	}
	if have := c.w.rights(c.who, in); !have.Has(PermPinMessages) && !have.Has(PermManageMessages) {
		return nil, noPermission()
	}
	if in.Metadata != nil && in.Metadata.Archived {
		return nil, archived()
	}
	return nil, c.w.pin(c.who, in, m, on)
}

func (c *call) reaction(need Perm, do func(*Channel, *Message, Emoji) error) (any, error) {
	in, m, err := c.at(need)
	if err != nil {
		return nil, err
	}
	e, err := parseEmoji(c.PathValue("emoji"))
	if err != nil {
		return nil, err
	}
	return nil, do(in, m, e)
}

func getReactions(c *call) (any, error) {
	_, m, err := c.at(PermReadHistory)
	if err != nil {
		return nil, err
	}
	e, err := parseEmoji(c.PathValue("emoji"))
	if err != nil {
		return nil, err
	}
	limit, err1 := c.query("limit", 25, 1, 100)
	after, err2 := c.queryID("after")
	if err := firstOf(err1, err2); err != nil {
		return nil, err
	}
	users := []User{}
	if r := find(m.reactions, func(r *Reaction) bool { return r.Emoji.key() == e.key() }); r != nil {
		for _, a := range c.w.accounts { // in the order of their ids
			for _, id := range r.users {
				if id == a.ID && id > after && len(users) < limit {
					users = append(users, a.User)
				}
			}
		}
	}
	return users, nil
}
