package discordsim

import (
	"net/http"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
)

func (s *Sim) routesEmojis() {
	const base = "/applications/{application}/emojis"
	one := func(c *call) (*guild.AppEmoji, error) {
		if err := c.app(); err != nil {
			return nil, err
		}
		e := c.who.Emoji(c.id("emoji"))
		if e == nil {
			return nil, apierror.NotFound(10014, "Emoji")
		}
		return e, nil
	}
	s.route("GET "+base, withAccount, func(c *call) (any, error) {
		return object{"items": append([]*guild.AppEmoji{}, c.who.Emojis...)}, c.app()
	})
	s.route("POST "+base, withAccount, func(c *call) (any, error) {
		if err := c.app(); err != nil {
			return nil, err
		}
		c.status = http.StatusCreated
		var b struct {
			Name  string `json:"name"`
			Image string `json:"image"`
		}
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		return c.guild.NewEmoji(c.who, b.Name, b.Image)
	})
	s.route("GET "+base+"/{emoji}", withAccount, func(c *call) (any, error) { return one(c) })
	s.route("PATCH "+base+"/{emoji}", withAccount, func(c *call) (any, error) {
		e, err := one(c)
		if err != nil {
			return nil, err
		}
		var b struct {
			Name string `json:"name"`
		}
		if err := c.decode(&b); err != nil {
			return nil, err
		}
		return e, c.who.RenameEmoji(e, b.Name)
	})
	s.route("DELETE "+base+"/{emoji}", withAccount, func(c *call) (any, error) {
		e, err := one(c)
		if err == nil {
			c.who.DropEmoji(e)
		}
		return nil, err
	})
}
