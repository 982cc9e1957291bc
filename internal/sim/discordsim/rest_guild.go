package discordsim

import (
	"net/http"
	"slices"
	"time"
)

// guild looks at the guild of the path.
func (c *call) guild() error {
	if c.id("guild") != c.w.guild {
		return notFound(10004, "Guild")
	}
	return nil
}

func (s *Sim) routesGuild() {
	s.route("GET /guilds/{guild}", withAccount, func(c *call) (any, error) { return c.w.guildView(), c.guild() })
	s.route("GET /users/@me/guilds", withAccount, func(c *call) (any, error) {
		return []object{{"id": c.w.guild, "name": c.w.name, "icon": nil, "owner": c.w.owner == c.who.ID,
			"permissions": c.w.rights(c.who, nil), "features": []string{}}}, nil
	})
	s.route("GET /guilds/{guild}/roles", withAccount, func(c *call) (any, error) {
		out := []Role{}
		for _, r := range c.w.roles {
			out = append(out, roleView(r))
		}
		return out, c.guild()
	})
	s.route("GET /guilds/{guild}/roles/{role}", withAccount, func(c *call) (any, error) {
		r, err := c.role(0)
		if err != nil {
			return nil, err
		}
		return roleView(r), nil
	})
	s.route("POST /guilds/{guild}/roles", withAccount, postRole)
	s.route("PATCH /guilds/{guild}/roles/{role}", withAccount, patchRole)
	s.route("DELETE /guilds/{guild}/roles/{role}", withAccount, func(c *call) (any, error) {
		r, err := c.role(PermManageRoles)
		if err != nil {
			return nil, err
		}
		c.w.roles = slices.DeleteFunc(c.w.roles, func(have *Role) bool { return have == r })
		for _, a := range c.w.accounts {
			a.member.Roles = slices.DeleteFunc(a.member.Roles, func(id ID) bool { return id == r.ID })
		}
		c.w.emit(event{name: "GUILD_ROLE_DELETE", intent: intentGuilds, data: object{"guild_id": c.w.guild, "role_id": r.ID}})
		return nil, nil
	})
}

// role is the role of the path; with a need it must also stand below the asker's.
func (c *call) role(need Perm) (*Role, error) {
	if err := c.guild(); err != nil {
		return nil, err
	}
	r := c.w.role(c.id("role"))
	switch {
	case r == nil:
		return nil, notFound(10011, "Role")
	case !c.w.rights(c.who, nil).Has(need), need != 0 && r.Position >= c.w.highest(c.who):
		return nil, noPermission()
	}
	return r, nil
}

func (r *Role) change(p patch) error {
	return firstOf(take(p, "name", &r.Name), take(p, "color", &r.Color), take(p, "hoist", &r.Hoist),
		take(p, "permissions", &r.Permissions), take(p, "mentionable", &r.Mentionable))
}

func postRole(c *call) (any, error) {
	var p patch
	if err := firstOf(c.guild(), c.decode(&p)); err != nil {
		return nil, err
	}
	if !c.w.rights(c.who, nil).Has(PermManageRoles) {
		return nil, noPermission()
	}
	if len(c.w.roles) >= 250 {
		return nil, badRequest(30005, "Maximum number of guild roles reached (250)")
	}
	r := &Role{ID: c.w.id(), Name: "new role", Position: 1, Permissions: c.w.roles[0].Permissions}
	if err := r.change(p); err != nil {
		return nil, err
	}
	for _, other := range c.w.roles[1:] {
		other.Position++ // a new role stands at the bottom
	}
	c.w.roles = append(c.w.roles, r)
	c.w.emit(event{name: "GUILD_ROLE_CREATE", intent: intentGuilds, data: object{"guild_id": c.w.guild, "role": roleView(r)}})
	return roleView(r), nil
}

func patchRole(c *call) (any, error) {
	r, err := c.role(PermManageRoles)
	if err != nil {
		return nil, err
	}
	var p patch
	if err := c.decode(&p); err != nil {
		return nil, err
	}
	next := *r
	if err := next.change(p); err != nil {
		return nil, err
	}
	*r = next
	c.w.emit(event{name: "GUILD_ROLE_UPDATE", intent: intentGuilds, data: object{"guild_id": c.w.guild, "role": roleView(r)}})
	return roleView(r), nil
}

func (s *Sim) routesMembers() {
	s.route("GET /users/@me", withAccount, func(c *call) (any, error) { return c.who.User, nil })
	s.route("GET /users/{user}", withAccount, func(c *call) (any, error) {
		a := c.w.account(c.id("user"))
		if a == nil {
			return nil, notFound(10013, "User")
		}
		return a.User, nil
	})
	s.route("GET /guilds/{guild}/members", withAccount, func(c *call) (any, error) {
		limit, err := c.query("limit", 1, 1, 1000)
		after, err2 := c.queryID("after")
		if err := firstOf(c.guild(), err, err2); err != nil {
			return nil, err
		}
		if c.who.Bot && c.who.privileged&intentMembers == 0 {
			return nil, noAccess()
		}
		return c.members(limit, func(a *account) bool { return a.ID > after }), nil
	})
	s.route("GET /guilds/{guild}/members/search", withAccount, func(c *call) (any, error) {
		limit, err := c.query("limit", 1, 1, 1000)
		if err := firstOf(c.guild(), err); err != nil {
			return nil, err
		}
		return c.members(limit, func(a *account) bool { return a.named(c.URL.Query().Get("query")) }), nil
	})
	s.route("GET /guilds/{guild}/members/{user}", withAccount, func(c *call) (any, error) {
		a, err := c.member()
		if err != nil {
			return nil, err
		}
		return c.w.memberOf(a, true), nil
	})
	s.route("PATCH /guilds/{guild}/members/{user}", withAccount, patchMember)
	for method, on := range map[string]bool{"PUT": true, "DELETE": false} {
		s.route(method+" /guilds/{guild}/members/{user}/roles/{role}", withAccount, func(c *call) (any, error) {
			a, err := c.member()
			if err != nil {
				return nil, err
			}
			r, err := c.role(PermManageRoles)
			if err != nil {
				return nil, err
			}
			a.member.Roles = slices.DeleteFunc(a.member.Roles, func(id ID) bool { return id == r.ID })
			if on {
				a.member.Roles = append(a.member.Roles, r.ID)
			}
			c.tellMember(a)
			return nil, nil
		})
	}
}

func (c *call) members(limit int, fits func(*account) bool) []*Member {
	out := []*Member{}
	for _, a := range c.w.accounts {
		if a.member != nil && fits(a) && len(out) < limit {
			out = append(out, c.w.memberOf(a, true))
		}
	}
	return out
}

func (c *call) member() (*account, error) {
	if err := c.guild(); err != nil {
		return nil, err
	}
	a := c.w.account(c.userID())
	if a == nil || a.member == nil {
		return nil, notFound(10007, "Member")
	}
	return a, nil
}

func (c *call) tellMember(a *account) {
	data := object{"guild_id": c.w.guild, "user": a.User, "nick": a.member.Nick, "roles": a.member.Roles, "joined_at": a.member.JoinedAt,
		"avatar": nil, "premium_since": nil, "deaf": false, "mute": false, "pending": false, "flags": 0,
		"communication_disabled_until": a.member.Until}
	c.w.emit(event{name: "GUILD_MEMBER_UPDATE", intent: intentMembers, data: data})
	c.w.emit(event{name: "GUILD_MEMBER_UPDATE", only: a.ID, data: data})
}

func patchMember(c *call) (any, error) {
	a, err := c.member()
	if err != nil {
		return nil, err
	}
	var p patch
	if err := c.decode(&p); err != nil {
		return nil, err
	}
	have := c.w.rights(c.who, nil)
	next := *a.member
	var until *time.Time
	if err := firstOf(take(p, "nick", &next.Nick), take(p, "roles", &next.Roles), take(p, "communication_disabled_until", &until)); err != nil {
		return nil, err
	}
	need := map[string]Perm{"nick": PermManageNicknames, "roles": PermManageRoles, "communication_disabled_until": PermModerateMembers}
	if a == c.who {
		need["nick"] = PermChangeNickname
	}
	for key, perm := range need {
		if _, ok := p[key]; ok && !have.Has(perm) {
			return nil, noPermission()
		}
	}
	if a != c.who && c.w.highest(a) >= c.w.highest(c.who) {
		return nil, noPermission()
	}
	if next.Nick != nil && len([]rune(*next.Nick)) > 32 {
		return nil, wrong("nick", "BASE_TYPE_BAD_LENGTH", "Must be 32 or fewer in length.")
	}
	if next.Nick != nil && *next.Nick == "" {
		next.Nick = nil
	}
	if _, ok := p["communication_disabled_until"]; ok {
		next.Until = until
	}
	*a.member = next
	c.tellMember(a)
	c.status = http.StatusOK
	return c.w.memberOf(a, true), nil
}
