package discordsim

import (
	"cmp"
	"net/http"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
)

func (s *Sim) routesApps() {
	for _, path := range []string{"/applications/@me", "/oauth2/applications/@me"} {
		s.route("GET "+path, withAccount, func(c *call) (any, error) {
			owner := c.guild.Account(c.guild.Owner)
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
		var b guild.InteractionBody
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		_, err := c.guild.Interact(c.who, &b)
		return nil, err
	})
	s.route("POST /interactions/{interaction}/{token}/callback", withNobody, postCallback)
}

func applicationView(a *guild.Account) object {
	flags := 0 // whether the owner enabled the intents, as small applications have it
	for intent, flag := range map[int]int{guild.IntentPresences: 1 << 13, guild.IntentMembers: 1 << 15, guild.IntentContent: 1 << 19} {
		if a.Privileged&intent != 0 {
			flags |= flag
		}
	}
	return object{"id": a.ID, "name": a.Username, "icon": nil, "description": "", "rpc_origins": []string{}, "bot_public": true,
		"bot_require_code_grant": false, "verify_key": "", "team": nil, "flags": flags, "tags": []string{}, "summary": ""}
}

// app returns the application in the path, which must be the caller.
func (c *call) app() error {
	if c.id("application") != c.who.ID {
		return apierror.Refuse(http.StatusForbidden, 20012, "You are not authorized to perform this action on this application")
	}
	if c.PathValue("guild") != "" {
		return c.inGuild()
	}
	return nil
}

func (s *Sim) routesCommands(base string, here bool) {
	scope := func(c *call) guild.ID {
		if here {
			return c.guild.ID
		}
		return 0
	}
	s.route("GET "+base, withAccount, func(c *call) (any, error) {
		if err := c.app(); err != nil {
			return nil, err
		}
		return c.who.CommandsIn(scope(c)), nil
	})
	s.route("PUT "+base, withAccount, func(c *call) (any, error) {
		var list []guild.Command
		if err := cmp.Or(c.app(), c.decode(&list)); err != nil {
			return nil, err
		}
		defer s.connectionsChanged() // somebody may be waiting for one of them
		return c.guild.OverwriteCommands(c.who, scope(c), list)
	})
	s.route("POST "+base, withAccount, func(c *call) (any, error) {
		var one guild.Command
		if err := cmp.Or(c.app(), c.decode(&one)); err != nil {
			return nil, err
		}
		defer s.connectionsChanged()
		out, made, err := c.guild.SetCommand(c.who, scope(c), one)
		if made {
			c.status = http.StatusCreated
		}
		return out, err
	})
	command := func(c *call) (*guild.Command, error) {
		if err := c.app(); err != nil {
			return nil, err
		}
		found := c.who.Command(scope(c), c.id("command"))
		if found == nil {
			return nil, apierror.NotFound(10063, "application command")
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
		return have, c.guild.ChangeCommand(have, next)
	})
	s.route("DELETE "+base+"/{command}", withAccount, func(c *call) (any, error) {
		have, err := command(c)
		if err != nil {
			return nil, err
		}
		c.who.DropCommand(have)
		return nil, nil
	})
}

func postCallback(c *call) (any, error) {
	var b guild.CallbackBody
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	out, err := c.guild.Callback(c.id("interaction"), c.PathValue("token"), &b, c.files)
	if want := c.URL.Query().Get("with_response"); err != nil || want != "true" && want != "1" {
		return nil, err
	}
	return out, nil
}
