package discord

import (
	"cmp"
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/platform"
	"chorus/internal/room/split"
)

const (
	formText  = "text"   // the id of the text in a form without fields
	formField = "field:" // precedes the names of fields
)

// modal converts a form for Discord.
func modal(id string, f platform.Form) discord.ModalCreate {
	out := discord.ModalCreate{CustomID: id, Title: shortened(f.Title, maxTitle)}
	if len(f.Fields) == 0 {
		text := discord.TextInputComponent{CustomID: formText, Style: discord.TextInputStyleParagraph, MaxLength: min(f.Max, maxFormValue), Required: true, Value: f.Value}
		if split.Length(f.Value) > text.MaxLength {
			text.Value = "" // a cut text would be taken for the whole
		}
		out.Components = []discord.LayoutComponent{discord.LabelComponent{Label: shortened(f.Label, maxLabel), Description: split.Clip(f.Hint, maxHint), Component: text}}
	}
	for _, field := range f.Fields[:min(len(f.Fields), platform.MaxFields)] {
		hint := field.Hint
		if field.Optional {
			hint = strings.TrimPrefix(hint+"; optional", "; ")
		}
		out.Components = append(out.Components, discord.LabelComponent{Label: shortened(cmp.Or(strings.TrimSpace(field.Label), field.Name), maxLabel), Description: split.Clip(hint, maxHint), Component: input(field)})
	}
	return out
}

// input is the component for a field: a menu, or a line.
func input(f platform.FormField) discord.LabelSubComponent {
	id := formField + f.Name
	chosen := f.Values
	if !f.Several && len(chosen) > 1 {
		chosen = chosen[:1] // at most as many as may be chosen
	}
	options := menuOptions(f.Choices, chosen)
	if len(options) == 0 {
		return discord.TextInputComponent{CustomID: id, Style: discord.TextInputStyleShort, MaxLength: maxFormValue, Required: !f.Optional, Value: split.Clip(strings.Join(f.Values, ", "), maxFormValue)}
	}
	menu := discord.StringSelectMenuComponent{CustomID: id, Required: !f.Optional, MaxValues: 1, Options: options}
	if f.Several {
		menu.MaxValues = len(options)
	}
	if f.Optional {
		none := 0
		menu.MinValues = &none
	}
	return menu
}

// filled returns the values of a form with fields, by name; nil: the form has none.
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
