package discordsim

import (
	"net/http"
	"slices"
)

func (s *Sim) routesApps() {
	for _, path := range []string{"/applications/@me", "/oauth2/applications/@me"} {
		s.route("GET "+path, withAccount, func(c *call) (any, error) {
			owner := c.w.account(c.w.owner)
			out := applicationView(c.who)
			out["bot"] = c.who.User
			if owner != nil {
				out["owner"] = owner.User
			}
			return out, nil
		})
	}
	for base, guild := range map[string]bool{"/applications/{application}": false, "/applications/{application}/guilds/{guild}": true} {
		s.routesCommands(base+"/commands", guild)
	}
	s.route("GET /applications/{application}/guilds/{guild}/commands/permissions", withAccount, func(c *call) (any, error) { return []any{}, nil })
	s.route("POST /interactions", withAccount, func(c *call) (any, error) {
		var b interactionBody
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		_, err := c.w.interact(c.who, &b)
		return nil, err
	})
	s.route("POST /interactions/{interaction}/{token}/callback", withNobody, postCallback)
}

func applicationView(a *account) object {
	flags := 0 // that the owner switched the intents on, as small applications have it
	for intent, flag := range map[int]int{intentPresences: 1 << 13, intentMembers: 1 << 15, intentContent: 1 << 19} {
		if a.privileged&intent != 0 {
			flags |= flag
		}
	}
	return object{"id": a.ID, "name": a.Username, "icon": nil, "description": "", "rpc_origins": []string{}, "bot_public": true,
		"bot_require_code_grant": false, "verify_key": "", "team": nil, "flags": flags, "tags": []string{}, "summary": ""}
}

// app is the application of the path, which must be the asker.
func (c *call) app() error {
	if c.id("application") != c.who.ID {
		return refuse(http.StatusForbidden, 20012, "You are not authorized to perform this action on this application")
	}
	if c.PathValue("guild") != "" {
		return c.guild()
	}
	return nil
}

func (s *Sim) routesCommands(base string, guild bool) {
	scope := func(c *call) ID {
		if guild {
			return c.w.guild
		}
		return 0
	}
	s.route("GET "+base, withAccount, func(c *call) (any, error) {
		if err := c.app(); err != nil {
			return nil, err
		}
		return c.who.commandsIn(scope(c)), nil
	})
	s.route("PUT "+base, withAccount, func(c *call) (any, error) {
		var list []Command
		if err := firstOf(c.app(), c.decode(&list)); err != nil {
			return nil, err
		}
		defer s.stir() // somebody may wait for one of them
		return c.w.overwriteCommands(c.who, scope(c), list)
	})
	s.route("POST "+base, withAccount, func(c *call) (any, error) {
		var one Command
		if err := firstOf(c.app(), c.decode(&one)); err != nil {
			return nil, err
		}
		defer s.stir()
		out, made, err := c.w.setCommand(c.who, scope(c), one)
		if made {
			c.status = http.StatusCreated
		}
		return out, err
	})
	command := func(c *call) (*Command, error) {
		if err := c.app(); err != nil {
			return nil, err
		}
		found := find(c.who.commandsIn(scope(c)), func(o *Command) bool { return o.ID == c.id("command") })
		if found == nil {
			return nil, notFound(10063, "application command")
		}
		return found, nil
	}
	s.route("GET "+base+"/{command}", withAccount, func(c *call) (any, error) { return command(c) })
	s.route("PATCH "+base+"/{command}", withAccount, func(c *call) (any, error) {
		have, err := command(c)
		if err != nil {
			return nil, err
		}
		next := *have
		if err := c.decode(&next); err != nil {
			return nil, err
		}
		f := &form{}
		next.check(f, "")
		if err := f.err(); err != nil {
			return nil, err
		}
		next.ID, next.ApplicationID, next.GuildID, next.Version = have.ID, have.ApplicationID, have.GuildID, c.w.id()
		*have = next
		return have, nil
	})
	s.route("DELETE "+base+"/{command}", withAccount, func(c *call) (any, error) {
		have, err := command(c)
		if err != nil {
			return nil, err
		}
		c.who.commands = slices.DeleteFunc(c.who.commands, func(o *Command) bool { return o == have })
		return nil, nil
	})
}

func postCallback(c *call) (any, error) {
	var b callbackBody
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	i, m, err := c.w.callback(c.id("interaction"), c.PathValue("token"), &b, c.files)
	if err != nil {
		return nil, err
	}
	if want := c.URL.Query().Get("with_response"); want != "true" && want != "1" {
		return nil, nil
	}
	about := object{"id": i.id, "type": i.kind}
	out := object{"interaction": about}
	if m != nil {
		about["response_message_id"] = m.ID
		about["response_message_loading"] = m.Flags&FlagLoading != 0
		about["response_message_ephemeral"] = m.ephemeral()
		out["resource"] = object{"type": b.Type, "message": c.w.view(m, i.app.ID, false)}
	}
	return out, nil
}
