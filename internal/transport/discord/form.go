package discord

import (
	"slices"
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/platform"
	"chorus/internal/room/split"
)

const (
	formText  = "text"   // the id of what is written in a form without fields
	formField = "field:" // stands before the names of fields
)

// What Discord has room for in a form.
const (
	maxLabel     = 45
	maxHint      = 100
	maxFormValue = 4000
)

// modal is a form as Discord shows it.
func modal(id string, f platform.Form) discord.ModalCreate {
	out := discord.ModalCreate{CustomID: id, Title: f.Title}
	if len(f.Fields) == 0 {
		text := discord.TextInputComponent{CustomID: formText, Style: discord.TextInputStyleParagraph, MaxLength: f.Max, Required: true, Value: f.Value}
		out.Components = []discord.LayoutComponent{discord.LabelComponent{Label: f.Label, Description: f.Hint, Component: text}}
	}
	for _, field := range f.Fields {
		hint := field.Hint
		if field.Optional {
			hint = strings.TrimPrefix(hint+"; may be left out", "; ")
		}
		out.Components = append(out.Components, discord.LabelComponent{Label: split.Clip(field.Label, maxLabel), Description: split.Clip(hint, maxHint), Component: input(field)})
	}
	return out
}

// input is where a field is filled in: a menu, or a line.
func input(f platform.FormField) discord.LabelSubComponent {
	id := formField + f.Name
	if len(f.Choices) == 0 {
		return discord.TextInputComponent{CustomID: id, Style: discord.TextInputStyleShort, MaxLength: maxFormValue, Required: !f.Optional, Value: split.Clip(strings.Join(f.Values, ", "), maxFormValue)}
	}
	menu := discord.StringSelectMenuComponent{CustomID: id, Required: !f.Optional, MaxValues: 1}
	if f.Several {
		menu.MaxValues = len(f.Choices)
	}
	for _, c := range f.Choices {
		menu.Options = append(menu.Options, discord.StringSelectMenuOption{Label: split.Clip(c.Label, platform.MaxChoice), Value: c.Value, Default: slices.Contains(f.Values, c.Value)})
	}
	if f.Optional {
		none := 0
		menu.MinValues = &none
	}
	return menu
}

// filled is what was written and chosen in a form with fields, by their names; nil: it has none.
func filled(data discord.ModalSubmitInteractionData) map[string][]string {
	var out map[string][]string
	put := func(id string, values ...string) {
		name, ok := strings.CutPrefix(id, formField)
		if !ok {
			return
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[name] = values
	}
	for part := range data.AllComponents() {
		switch c := part.(type) {
		case discord.TextInputComponent:
			put(c.CustomID, c.Value)
		case discord.StringSelectMenuComponent:
			put(c.CustomID, c.Values...)
		}
	}
	return out
}
