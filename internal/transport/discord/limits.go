package discord

import (
	"cmp"
	"slices"
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/platform"
	"chorus/internal/room/split"
)

// Discord's limits. It refuses a whole message if one part is too long, so everything that connectors produce is
// checked again before it is sent: titles come from people, labels from MCP servers, and redacting a secret can make a text longer.
const (
	maxText        = 2000 // characters of a message
	maxPanelText   = 4000 // of all texts of a panel together
	maxRows        = 5
	maxInRow       = 5
	maxCustomID    = 100
	maxButton      = 80 // of its label
	maxPlaceholder = 150
	maxTitle       = 45 // of a form
	maxLabel       = 45 // of a field in a form
	maxHint        = 100
	maxFormValue   = 4000
)

// fitted is a post whose panel Discord accepts. It does not cut words of a conversation: their authors do, and Discord refuses those that are
// too long, because nobody would notice missing words.
func fitted(p platform.Post) platform.Post {
	if p.Panel != "" || p.Entry != nil {
		p.Text = split.Clip(p.Text, maxPanelText)
	}
	return p
}

// shortened is a label that is neither too long nor empty.
func shortened(label string, most int) string {
	return cmp.Or(split.Clip(strings.TrimSpace(label), most), "…")
}

// newID reports whether Discord accepts an id and nothing else in the message uses it, and adds it to ids.
func newID(id string, ids map[string]bool) bool {
	if id == "" || split.Length(id) > maxCustomID || ids[id] {
		return false
	}
	ids[id] = true
	return true
}

// menuOptions are the options of a menu; chosen are the preselected values.
func menuOptions(list []platform.Choice, chosen []string) (out []discord.StringSelectMenuOption) {
	seen := map[string]bool{}
	for _, c := range list {
		if len(out) < maxChoices && newID(c.Value, seen) {
			out = append(out, discord.StringSelectMenuOption{Label: shortened(cmp.Or(strings.TrimSpace(c.Label), c.Value), platform.MaxChoice), Value: c.Value, Default: slices.Contains(chosen, c.Value)})
		}
	}
	return out
}

// proposals are suggestions for somebody who is typing.
func proposals(list []platform.Choice) []discord.AutocompleteChoice {
	out := []discord.AutocompleteChoice{}
	for _, c := range list {
		if n := split.Length(c.Value); len(out) < maxChoices && n > 0 && n <= platform.MaxChoice {
			out = append(out, discord.AutocompleteChoiceString{Name: shortened(cmp.Or(strings.TrimSpace(c.Label), c.Value), platform.MaxChoice), Value: c.Value})
		}
	}
	return out
}
