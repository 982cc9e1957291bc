package discordsim

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// AppEmoji is an emoji of an application, which it can use everywhere.
type AppEmoji struct {
	ID        ID     `json:"id"`
	Name      string `json:"name"`
	Roles     []ID   `json:"roles"`
	User      User   `json:"user"`
	Colons    bool   `json:"require_colons"`
	Managed   bool   `json:"managed"`
	Animated  bool   `json:"animated"`
	Available bool   `json:"available"`
}

// The limits of application emojis.
const (
	mostEmojis    = 2000
	largestEmoji  = 256 << 10
	dataURIPrefix = "data:image/"
)

var emojiName = regexp.MustCompile(`^\w{2,32}$`)

func (s *Sim) routesEmojis() {
	const base = "/applications/{application}/emojis"
	one := func(c *call) (*AppEmoji, error) {
		if err := c.app(); err != nil {
			return nil, err
		}
		e := find(c.who.emojis, func(e *AppEmoji) bool { return e.ID == c.id("emoji") })
		if e == nil {
			return nil, notFound(10014, "Emoji")
		}
		return e, nil
	}
	s.route("GET "+base, withAccount, func(c *call) (any, error) {
		return object{"items": append([]*AppEmoji{}, c.who.emojis...)}, c.app()
	})
	s.route("POST "+base, withAccount, func(c *call) (any, error) {
		if err := c.app(); err != nil {
			return nil, err
		}
		c.status = http.StatusCreated
		return c.newEmoji()
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
		if err := c.freeName(b.Name, e); err != nil {
			return nil, err
		}
		e.Name = b.Name
		return e, nil
	})
	s.route("DELETE "+base+"/{emoji}", withAccount, func(c *call) (any, error) {
		e, err := one(c)
		if err == nil {
			c.who.emojis = slices.DeleteFunc(c.who.emojis, func(have *AppEmoji) bool { return have == e })
		}
		return nil, err
	})
}

// freeName looks whether an emoji may have a name; but is the one that has it already.
func (c *call) freeName(name string, but *AppEmoji) error {
	if !emojiName.MatchString(name) {
		return wrong("name", "BASE_TYPE_BAD_LENGTH", "Must be between 2 and 32 in length.")
	}
	if slices.ContainsFunc(c.who.emojis, func(e *AppEmoji) bool { return e != but && e.Name == name }) {
		return wrong("name", "APPLICATION_EMOJI_NAME_ALREADY_TAKEN", "An emoji with this name already exists")
	}
	return nil
}

func (c *call) newEmoji() (any, error) {
	var b struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	if err := c.decode(&b); err != nil {
		return nil, err
	}
	if err := c.freeName(b.Name, nil); err != nil {
		return nil, err
	}
	if len(c.who.emojis) >= mostEmojis {
		return nil, badRequest(30008, "Maximum number of emojis reached (2000)")
	}
	kind, coded, ok := strings.Cut(strings.TrimPrefix(b.Image, dataURIPrefix), ";base64,")
	data, err := base64.StdEncoding.DecodeString(coded)
	switch {
	case !ok || err != nil || !strings.HasPrefix(b.Image, dataURIPrefix):
		return nil, wrong("image", "BASE_TYPE_REQUIRED", "The image must be a data URI.")
	case len(data) > largestEmoji:
		return nil, wrong("image", "BINARY_TYPE_MAX_SIZE", "File cannot be larger than 256.0 kb.")
	}
	e := &AppEmoji{ID: c.w.id(), Name: b.Name, Roles: []ID{}, User: c.who.User, Colons: true, Animated: kind == "gif", Available: true}
	c.who.emojis = append(c.who.emojis, e)
	return e, nil
}
