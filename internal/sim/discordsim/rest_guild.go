package discordsim

import (
	"cmp"
	"net/http"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
)

// inGuild checks the guild in the path.
func (c *call) inGuild() error {
	if c.id("guild") != c.guild.ID {
		return apierror.NotFound(10004, "Guild")
	}
	return nil
}

func (s *Sim) routesGuild() {
	s.route("GET /guilds/{guild}", withAccount, func(c *call) (any, error) { return c.guild.View(), c.inGuild() })
	s.route("GET /users/@me/guilds", withAccount, func(c *call) (any, error) {
		return []object{{"id": c.guild.ID, "name": c.guild.Name, "icon": nil, "owner": c.guild.Owner == c.who.ID,
			"permissions": c.guild.Rights(c.who, nil), "features": []string{}}}, nil
	})
	s.route("GET /guilds/{guild}/roles", withAccount, func(c *call) (any, error) {
		out := []guild.Role{}
		for _, r := range c.guild.Roles {
			out = append(out, guild.ViewRole(r))
		}
		return out, c.inGuild()
	})
	s.route("GET /guilds/{guild}/roles/{role}", withAccount, func(c *call) (any, error) {
		r, err := c.role(0)
		if err != nil {
			return nil, err
		}
		return guild.ViewRole(r), nil
	})
	s.route("POST /guilds/{guild}/roles", withAccount, postRole)
	s.route("PATCH /guilds/{guild}/roles/{role}", withAccount, patchRole)
	s.route("DELETE /guilds/{guild}/roles/{role}", withAccount, func(c *call) (any, error) {
		r, err := c.role(guild.PermManageRoles)
		if err != nil {
			return nil, err
		}
		c.guild.DropRole(r)
		return nil, nil
	})
}

// role returns the role in the path; with a need it must also be below the caller's.
func (c *call) role(need guild.Perm) (*guild.Role, error) {
	if err := c.inGuild(); err != nil {
		return nil, err
	}
	r := c.guild.Role(c.id("role"))
	switch {
	case r == nil:
		return nil, apierror.NotFound(10011, "Role")
	case !c.guild.Rights(c.who, nil).Has(need), need != 0 && r.Position >= c.guild.Highest(c.who):
		return nil, apierror.NoPermission()
	}
	return r, nil
}

func postRole(c *call) (any, error) {
	var p apierror.Patch
	if err := cmp.Or(c.inGuild(), c.decode(&p)); err != nil {
		return nil, err
	}
	r, err := c.guild.NewRole(c.who, p)
	if err != nil {
		return nil, err
	}
	return guild.ViewRole(r), nil
}

func patchRole(c *call) (any, error) {
	r, err := c.role(guild.PermManageRoles)
	if err != nil {
		return nil, err
	}
	var p apierror.Patch
	if err := c.decode(&p); err != nil {
		return nil, err
	}
	if err := c.guild.ChangeRole(r, p); err != nil {
		return nil, err
	}
	return guild.ViewRole(r), nil
}

func (s *Sim) routesMembers() {
	s.route("GET /users/@me", withAccount, func(c *call) (any, error) { return c.who.User, nil })
	s.route("GET /users/{user}", withAccount, func(c *call) (any, error) {
		a := c.guild.Account(c.id("user"))
		if a == nil {
			return nil, apierror.NotFound(10013, "User")
		}
		return a.User, nil
	})
	s.route("GET /guilds/{guild}/members", withAccount, func(c *call) (any, error) {
		limit, err := c.query("limit", 1, 1, 1000)
		after, err2 := c.queryID("after")
		if err := cmp.Or(c.inGuild(), err, err2); err != nil {
			return nil, err
		}
		if c.who.Bot && c.who.Privileged&guild.IntentMembers == 0 {
			return nil, apierror.NoAccess()
		}
		return c.members(limit, func(a *guild.Account) bool { return a.ID > after }), nil
	})
	s.route("GET /guilds/{guild}/members/search", withAccount, func(c *call) (any, error) {
		limit, err := c.query("limit", 1, 1, 1000)
		if err := cmp.Or(c.inGuild(), err); err != nil {
			return nil, err
		}
		return c.members(limit, func(a *guild.Account) bool { return a.Named(c.URL.Query().Get("query")) }), nil
	})
	s.route("GET /guilds/{guild}/members/{user}", withAccount, func(c *call) (any, error) {
		a, err := c.member()
		if err != nil {
			return nil, err
		}
		return c.guild.MemberOf(a, true), nil
	})
	s.route("PATCH /guilds/{guild}/members/{user}", withAccount, patchMember)
	for method, on := range map[string]bool{"PUT": true, "DELETE": false} {
		s.route(method+" /guilds/{guild}/members/{user}/roles/{role}", withAccount, func(c *call) (any, error) {
			a, err := c.member()
			if err != nil {
				return nil, err
			}
			r, err := c.role(guild.PermManageRoles)
			if err != nil {
				return nil, err
			}
			c.guild.GiveRole(a, r, on)
			return nil, nil
		})
	}
}

func (c *call) members(limit int, fits func(*guild.Account) bool) []*guild.Member {
	out := []*guild.Member{}
	for _, a := range c.guild.Accounts {
		if a.Member != nil && fits(a) && len(out) < limit {
			out = append(out, c.guild.MemberOf(a, true))
		}
	}
	return out
}

func (c *call) member() (*guild.Account, error) {
	if err := c.inGuild(); err != nil {
		return nil, err
	}
	a := c.guild.Account(c.userID())
	if a == nil || a.Member == nil {
		return nil, apierror.NotFound(10007, "Member")
	}
	return a, nil
}

func patchMember(c *call) (any, error) {
	a, err := c.member()
	if err != nil {
		return nil, err
	}
	var p apierror.Patch
	if err := c.decode(&p); err != nil {
		return nil, err
	}
	if err := c.guild.ChangeMember(c.who, a, p); err != nil {
		return nil, err
	}
	c.status = http.StatusOK
	return c.guild.MemberOf(a, true), nil
}
