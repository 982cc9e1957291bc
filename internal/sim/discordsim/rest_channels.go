package discordsim

import (
	"cmp"
	"net/http"
	"slices"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
)

func (s *Sim) routesChannels() {
	s.route("GET /channels/{channel}", withAccount, func(c *call) (any, error) {
		in, err := c.place(0)
		if err != nil {
			return nil, err
		}
		return guild.DirectSeenBy(in, c.who.ID), nil
	})
	s.route("PATCH /channels/{channel}", withAccount, patchChannel)
	s.route("DELETE /channels/{channel}", withAccount, func(c *call) (any, error) {
		in, err := c.place(0)
		if err != nil {
			return nil, err
		}
		need := guild.PermManageChannels
		if in.IsThread() {
			need = guild.PermManageThreads
		}
		if !c.guild.Rights(c.who, in).Has(need) {
			return nil, apierror.NoPermission()
		}
		c.guild.DropChannel(in)
		return in, nil
	})
	s.route("GET /guilds/{guild}/channels", withAccount, func(c *call) (any, error) {
		out := []*guild.Channel{}
		for _, in := range c.guild.Channels {
			if in.GuildID != 0 && !in.IsThread() {
				out = append(out, in)
			}
		}
		return out, c.inGuild()
	})
	s.route("POST /guilds/{guild}/channels", withAccount, func(c *call) (any, error) {
		var p apierror.Patch
		if err := cmp.Or(c.inGuild(), c.decode(&p)); err != nil {
			return nil, err
		}
		c.status = http.StatusCreated
		return c.guild.NewChannel(c.who, p)
	})
	s.route("PUT /channels/{channel}/permissions/{overwrite}", withAccount, putOverwrite)
	s.route("DELETE /channels/{channel}/permissions/{overwrite}", withAccount, func(c *call) (any, error) {
		in, err := c.place(guild.PermManageRoles)
		if err != nil {
			return nil, err
		}
		c.guild.DropOverwrite(in, c.id("overwrite"))
		return nil, nil
	})
	s.route("POST /users/@me/channels", withAccount, func(c *call) (any, error) {
		var b struct {
			Recipient guild.ID `json:"recipient_id"`
		}
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		other := c.guild.Account(b.Recipient)
		if other == nil {
			return nil, apierror.NotFound(10013, "User")
		}
		if other == c.who {
			return nil, apierror.BadRequest(50007, "Cannot send messages to this user")
		}
		return guild.DirectSeenBy(c.guild.DirectChannel(c.who, other), c.who.ID), nil
	})
}

func patchChannel(c *call) (any, error) {
	in, err := c.place(0)
	if err != nil {
		return nil, err
	}
	var p apierror.Patch
	if err := c.decode(&p); err != nil {
		return nil, err
	}
	if in.IsThread() {
		return in, c.guild.ChangeThread(c.who, in, p)
	}
	if !c.guild.Rights(c.who, in).Has(guild.PermManageChannels) {
		return nil, apierror.NoPermission()
	}
	return in, c.guild.UpdateChannel(in, p)
}

func putOverwrite(c *call) (any, error) {
	in, err := c.place(guild.PermManageRoles)
	if err != nil {
		return nil, err
	}
	o := guild.Overwrite{}
	if err := c.decode(&o); err != nil {
		return nil, err
	}
	o.ID = c.id("overwrite")
	return nil, c.guild.SetOverwrite(in, o)
}

func (s *Sim) routesThreads() {
	s.route("POST /channels/{channel}/messages/{message}/threads", withAccount, func(c *call) (any, error) {
		in, m, err := c.at(0)
		if err != nil {
			return nil, err
		}
		var b guild.ThreadBody
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		c.status = http.StatusCreated
		return c.guild.ThreadOn(c.who, in, m, &b)
	})
	s.route("POST /channels/{channel}/threads", withAccount, postThread)
	s.route("GET /guilds/{guild}/threads/active", withAccount, func(c *call) (any, error) {
		out := []*guild.Channel{}
		for _, t := range c.guild.Channels {
			if t.IsThread() && !t.Metadata.Archived && c.guild.Sees(c.who, t) {
				out = append(out, t)
			}
		}
		return object{"threads": out, "members": c.joinedIn(out)}, c.inGuild()
	})
	for _, kind := range []string{"public", "private"} {
		s.route("GET /channels/{channel}/threads/archived/"+kind, withAccount, func(c *call) (any, error) {
			in, err := c.place(guild.PermReadHistory)
			if err != nil {
				return nil, err
			}
			out := []*guild.Channel{}
			for _, t := range c.guild.Channels {
				if t.IsThread() && t.Metadata.Archived && *t.ParentID == in.ID && (t.Type == guild.TypePrivateThread) == (kind == "private") {
					out = append(out, t)
				}
			}
			slices.SortStableFunc(out, func(a, b *guild.Channel) int { return b.Metadata.ArchivedAt.Compare(a.Metadata.ArchivedAt) })
			return object{"threads": out, "members": c.joinedIn(out), "has_more": false}, nil
		})
	}
	s.route("GET /channels/{channel}/thread-members", withAccount, func(c *call) (any, error) {
		t, err := c.thread()
		if err != nil {
			return nil, err
		}
		out := []object{}
		for _, a := range c.guild.Accounts {
			if t.JoinedBy(a.ID) {
				out = append(out, c.guild.ThreadMember(t, a.ID))
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
		if !t.JoinedBy(id) {
			return nil, apierror.NotFound(10007, "Member")
		}
		return c.guild.ThreadMember(t, id), nil
	})
	for method, in := range map[string]bool{"PUT": true, "DELETE": false} {
		s.route(method+" /channels/{channel}/thread-members/{user}", withAccount, func(c *call) (any, error) {
			t, err := c.thread()
			if err != nil {
				return nil, err
			}
			if t.Metadata.Archived {
				return nil, guild.ThreadArchived()
			}
			c.guild.JoinThread(t, c.userID(), in)
			return nil, nil
		})
	}
}

// userID is the user in the path; it may be the caller.
func (c *call) userID() guild.ID {
	if c.PathValue("user") == "@me" {
		return c.who.ID
	}
	return c.id("user")
}

func (c *call) thread() (*guild.Channel, error) {
	t, err := c.place(0)
	if err == nil && !t.IsThread() {
		return nil, apierror.BadRequest(50024, "Cannot execute action on this channel type")
	}
	return t, err
}

// joinedIn returns the caller's memberships of threads.
func (c *call) joinedIn(threads []*guild.Channel) []object {
	out := []object{}
	for _, t := range threads {
		if t.JoinedBy(c.who.ID) {
			out = append(out, c.guild.ThreadMember(t, c.who.ID))
		}
	}
	return out
}

func postThread(c *call) (any, error) {
	in, err := c.place(0)
	if err != nil {
		return nil, err
	}
	var b guild.ThreadBody
	var p apierror.Patch
	if err := cmp.Or(c.decode(&b), c.decode(&p)); err != nil {
		return nil, err
	}
	if raw, ok := p["message"]; ok {
		if b.Message, err = guild.DecodeMessage(raw, c.files); err != nil {
			return nil, err
		}
	}
	t, m, err := c.guild.ThreadIn(c.who, in, &b)
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	if m == nil {
		return t, nil
	}
	return struct {
		*guild.Channel
		Message guild.Message `json:"message"`
	}{t, c.guild.ViewMessage(m, c.who.ID, false)}, nil
}
