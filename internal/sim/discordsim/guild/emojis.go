package guild

import (
	"encoding/base64"
	"slices"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/sim/discordsim/apierror"
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

var emojiName = pattern.Lazy(`^\w{2,32}$`)

// freeName checks that an emoji may have a name; but is the one that already has it.
func (a *Account) freeName(name string, but *AppEmoji) error {
	if !emojiName().MatchString(name) {
		return apierror.Wrong("name", "BASE_TYPE_BAD_LENGTH", "Must be between 2 and 32 in length.")
	}
	if slices.ContainsFunc(a.Emojis, func(e *AppEmoji) bool { return e != but && e.Name == name }) {
		return apierror.Wrong("name", "APPLICATION_EMOJI_NAME_ALREADY_TAKEN", "An emoji with this name already exists")
	}
	return nil
}

// Emoji returns an emoji of an application; nil: it has none with this id.
func (a *Account) Emoji(id ID) *AppEmoji {
	return find(a.Emojis, func(e *AppEmoji) bool { return e.ID == id })
}

// RenameEmoji gives an emoji another name.
func (a *Account) RenameEmoji(e *AppEmoji, name string) error {
	if err := a.freeName(name, e); err != nil {
		return err
	}
	e.Name = name
	return nil
}

// DropEmoji deletes an emoji.
func (a *Account) DropEmoji(e *AppEmoji) {
	a.Emojis = slices.DeleteFunc(a.Emojis, func(have *AppEmoji) bool { return have == e })
}

// NewEmoji creates an emoji of an application; picture is a data URI.
func (g *Guild) NewEmoji(a *Account, name, picture string) (*AppEmoji, error) {
	if err := a.freeName(name, nil); err != nil {
		return nil, err
	}
	if len(a.Emojis) >= mostEmojis {
		return nil, apierror.BadRequest(30008, "Maximum number of emojis reached (2000)")
	}
	kind, coded, ok := strings.Cut(strings.TrimPrefix(picture, dataURIPrefix), ";base64,")
	data, err := base64.StdEncoding.DecodeString(coded)
	switch {
	case !ok || err != nil || !strings.HasPrefix(picture, dataURIPrefix):
		return nil, apierror.Wrong("image", "BASE_TYPE_REQUIRED", "The image must be a data URI.")
	case len(data) > largestEmoji:
		return nil, apierror.Wrong("image", "BINARY_TYPE_MAX_SIZE", "File cannot be larger than 256.0 kb.")
	}
	e := &AppEmoji{ID: g.NewID(), Name: name, Roles: []ID{}, User: a.User, Colons: true, Animated: kind == "gif", Available: true}
	a.Emojis = append(a.Emojis, e)
	return e, nil
}
