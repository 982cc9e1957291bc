package discord

import (
	"cmp"
	"slices"
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/platform"
	"chorus/internal/room/split"
)

// What Discord has room for. It refuses a whole message for one part that is too long, so what connectors make is held to this once
// more where it leaves us: titles come from people, labels from MCP servers, and a secret that was taken out can leave a longer text.
const (
	maxText        = 2000 // characters of a message
	maxPanelText   = 4000 // of all texts of a panel together
	maxRows        = 5
	maxInRow       = 5
	maxCustomID    = 100
	maxButton      = 80 // of its label
	maxPlaceholder = 150
	maxTitle       = 45 // of a form
	maxLabel       = 45 // of what is asked for in it
	maxHint        = 100
	maxFormValue   = 4000
)

// fitted is a post whose panel Discord takes. Words of a conversation are cut by whoever says them, and refused where they are too long: nobody would
// see that some are missing.
func fitted(p platform.Post) platform.Post {
	if p.Panel != "" || p.Entry != nil {
		p.Text = split.Clip(p.Text, maxPanelText)
	}
	return p
}

// shortened is a label that is neither too long nor missing.
func shortened(label string, most int) string {
	return cmp.Or(split.Clip(strings.TrimSpace(label), most), "…")
}

// newID reports an id that Discord takes and that nothing else in the message has, and notes it in ids.
func newID(id string, ids map[string]bool) bool {
	if id == "" || split.Length(id) > maxCustomID || ids[id] {
		return false
	}
	ids[id] = true
	return true
}

// menuOptions are what can be chosen in a menu; chosen are the values that stand there already.
func menuOptions(list []platform.Choice, chosen []string) (out []discord.StringSelectMenuOption) {
	seen := map[string]bool{}
	for _, c := range list {
		if len(out) < maxChoices && newID(c.Value, seen) {
			out = append(out, discord.StringSelectMenuOption{Label: shortened(cmp.Or(strings.TrimSpace(c.Label), c.Value), platform.MaxChoice), Value: c.Value, Default: slices.Contains(chosen, c.Value)})
		}
	}
	return out
}

// proposals are what is proposed to somebody who is typing.
func proposals(list []platform.Choice) []discord.AutocompleteChoice {
	out := []discord.AutocompleteChoice{}
	for _, c := range list {
		if n := split.Length(c.Value); len(out) < maxChoices && n > 0 && n <= platform.MaxChoice {
			out = append(out, discord.AutocompleteChoiceString{Name: shortened(cmp.Or(strings.TrimSpace(c.Label), c.Value), platform.MaxChoice), Value: c.Value})
		}
	}
	return out
}
