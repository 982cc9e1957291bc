package discordsim

import (
	"net/http"
	"slices"
)

func (s *Sim) routesChannels() {
	s.route("GET /channels/{channel}", withAccount, func(c *call) (any, error) {
		in, err := c.place(0)
		if err != nil {
			return nil, err
		}
		return dmSeenBy(in, c.who.ID), nil
	})
	s.route("PATCH /channels/{channel}", withAccount, patchChannel)
	s.route("DELETE /channels/{channel}", withAccount, func(c *call) (any, error) {
		in, err := c.place(0)
		if err != nil {
			return nil, err
		}
		need := PermManageChannels
		if in.thread() {
			need = PermManageThreads
		}
		if !c.w.rights(c.who, in).Has(need) {
			return nil, noPermission()
		}
		c.w.dropChannel(in)
		return in, nil
	})
	s.route("GET /guilds/{guild}/channels", withAccount, func(c *call) (any, error) {
		out := []*Channel{}
		for _, in := range c.w.channels {
			if in.GuildID != 0 && !in.thread() {
				out = append(out, in)
			}
		}
		return out, c.guild()
	})
	s.route("POST /guilds/{guild}/channels", withAccount, func(c *call) (any, error) {
		var p patch
		if err := firstOf(c.guild(), c.decode(&p)); err != nil {
			return nil, err
		}
		c.status = http.StatusCreated
		return c.w.newChannel(c.who, p)
	})
	s.route("PUT /channels/{channel}/permissions/{overwrite}", withAccount, putOverwrite)
	s.route("DELETE /channels/{channel}/permissions/{overwrite}", withAccount, func(c *call) (any, error) {
		in, err := c.place(PermManageRoles)
		if err != nil {
			return nil, err
		}
		in.Overwrites = slices.DeleteFunc(in.Overwrites, func(o Overwrite) bool { return o.ID == c.id("overwrite") })
		c.w.tellChannel("CHANNEL_UPDATE", in)
		return nil, nil
	})
	s.route("POST /users/@me/channels", withAccount, func(c *call) (any, error) {
		var b struct {
			Recipient ID `json:"recipient_id"`
		}
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		other := c.w.account(b.Recipient)
		if other == nil {
			return nil, notFound(10013, "User")
		}
		if other == c.who {
			return nil, badRequest(50007, "Cannot send messages to this user")
		}
		return dmSeenBy(c.w.dm(c.who, other), c.who.ID), nil
	})
}

func patchChannel(c *call) (any, error) {
	in, err := c.place(0)
	if err != nil {
		return nil, err
	}
	var p patch
	if err := c.decode(&p); err != nil {
		return nil, err
	}
	if in.thread() {
		return in, c.w.changeThread(c.who, in, p)
	}
	if !c.w.rights(c.who, in).Has(PermManageChannels) {
		return nil, noPermission()
	}
	if err := c.w.changeChannel(in, p); err != nil {
		return nil, err
	}
	c.w.tellChannel("CHANNEL_UPDATE", in)
	return in, nil
}

func putOverwrite(c *call) (any, error) {
	in, err := c.place(PermManageRoles)
	if err != nil {
		return nil, err
	}
	o := Overwrite{}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	o.ID = c.id("overwrite")
	if c.w.role(o.ID) == nil && c.w.account(o.ID) == nil {
		return nil, notFound(10009, "Permission Overwrite")
	}
	in.Overwrites = append(slices.DeleteFunc(in.Overwrites, func(have Overwrite) bool { return have.ID == o.ID }), o)
	c.w.tellChannel("CHANNEL_UPDATE", in)
	return nil, nil
}

func (s *Sim) routesThreads() {
	s.route("POST /channels/{channel}/messages/{message}/threads", withAccount, func(c *call) (any, error) {
		in, m, err := c.at(0)
		if err != nil {
			return nil, err
		}
		var b threadBody
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		c.status = http.StatusCreated
		return c.w.threadOn(c.who, in, m, &b)
	})
	s.route("POST /channels/{channel}/threads", withAccount, postThread)
	s.route("GET /guilds/{guild}/threads/active", withAccount, func(c *call) (any, error) {
		out := []*Channel{}
		for _, t := range c.w.channels {
			if t.thread() && !t.Metadata.Archived && c.w.sees(c.who, t) {
				out = append(out, t)
			}
		}
		return object{"threads": out, "members": c.joinedIn(out)}, c.guild()
	})
	for _, kind := range []string{"public", "private"} {
		s.route("GET /channels/{channel}/threads/archived/"+kind, withAccount, func(c *call) (any, error) {
			in, err := c.place(PermReadHistory)
			if err != nil {
				return nil, err
			}
			out := []*Channel{}
			for _, t := range c.w.channels {
				if t.thread() && t.Metadata.Archived && *t.ParentID == in.ID && (t.Type == TypePrivateThread) == (kind == "private") {
					out = append(out, t)
				}
			}
			slices.SortStableFunc(out, func(a, b *Channel) int { return b.Metadata.ArchivedAt.Compare(a.Metadata.ArchivedAt) })
			return object{"threads": out, "members": c.joinedIn(out), "has_more": false}, nil
		})
	}
	s.route("GET /channels/{channel}/thread-members", withAccount, func(c *call) (any, error) {
		t, err := c.thread()
		if err != nil {
			return nil, err
		}
		out := []object{}
		for _, a := range c.w.accounts {
			if _, in := t.joined[a.ID]; in {
				out = append(out, c.w.threadMember(t, a.ID))
			}
		}
		return out, nil
	})
	s.route("GET /channels/{channel}/thread-members/{user}", withAccount, func(c *call) (any, error) {
		t, err := c.thread()
		if err != nil {
			return nil, err
		}
		id := c.userID()
		if _, in := t.joined[id]; !in {
			return nil, notFound(10007, "Member")
		}
		return c.w.threadMember(t, id), nil
	})
	for method, in := range map[string]bool{"PUT": true, "DELETE": false} {
		s.route(method+" /channels/{channel}/thread-members/{user}", withAccount, func(c *call) (any, error) {
			t, err := c.thread()
			if err != nil {
				return nil, err
			}
			if t.Metadata.Archived {
				return nil, archived()
			}
			c.w.joinThread(t, c.userID(), in)
			return nil, nil
		})
	}
}

// userID is the user of the path, who may be the asker.
func (c *call) userID() ID {
	if c.PathValue("user") == "@me" {
		return c.who.ID
	}
	return c.id("user")
}

func (c *call) thread() (*Channel, error) {
	t, err := c.place(0)
	if err == nil && !t.thread() {
		return nil, badRequest(50024, "Cannot execute action on this channel type")
	}
	return t, err
}

// joinedIn are the asker's memberships of threads.
func (c *call) joinedIn(threads []*Channel) []object {
	out := []object{}
	for _, t := range threads {
		if _, in := t.joined[c.who.ID]; in {
			out = append(out, c.w.threadMember(t, c.who.ID))
		}
	}
	return out
}

func postThread(c *call) (any, error) {
	in, err := c.place(0)
	if err != nil {
		return nil, err
	}
	var b threadBody
	var p patch
	if err := firstOf(c.decode(&b), c.decode(&p)); err != nil {
		return nil, err
	}
	if raw, ok := p["message"]; ok {
		if b.Message, err = decodeMessage(raw, c.files); err != nil {
			return nil, err
		}
	}
	t, m, err := c.w.threadIn(c.who, in, &b)
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	if m == nil {
		return t, nil
	}
	return struct {
		*Channel
		Message Message `json:"message"`
	}{t, c.w.view(m, c.who.ID, false)}, nil
}
