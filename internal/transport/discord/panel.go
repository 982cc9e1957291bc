package discord

import (
	"cmp"
	"slices"
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/platform"
	"chorus/internal/room/split"
)

// panelID is the container number of our panels, by which every Chorus recognizes them,
// whichever process posted them: a panel is not a message of a conversation.
const panelID = 0x43484F52

// panelColors are the colors of panels.
var panelColors = map[platform.Panel]int{
	platform.PanelAsk: 0xF0B232, platform.PanelYes: 0x23A55A, platform.PanelNo: 0xDA373C, platform.PanelOver: 0x80848E, platform.PanelWork: 0x5865F2,
}

// components are a post's components: a panel, or buttons below its text. An empty
// list removes old ones.
func components(p platform.Post) []discord.LayoutComponent {
	if p.Panel == "" {
		return layout(p.Buttons())
	}
	p = fitted(p)
	out := discord.ContainerComponent{ID: panelID, AccentColor: panelColors[p.Panel]}
	text, buttons := cmp.Or(strings.TrimSpace(p.Text), "…"), p.Buttons()
	if p.Stop != "" {
		// The button is next to the headline, so that it does not move while the rest grows.
		head, rest, _ := strings.Cut(text, "\n")
		last := len(buttons) - 1
		out.Components = append(out.Components, discord.SectionComponent{Components: []discord.SectionSubComponent{discord.TextDisplayComponent{Content: head}}, Accessory: button(buttons[last])})
		text, buttons = strings.TrimSpace(rest), buttons[:last]
		if text != "" {
			out.Components = append(out.Components, discord.SeparatorComponent{})
		}
	}
	out.Components = append(out.Components, inPanel(text, buttons, nil)...)
	return []discord.LayoutComponent{out}
}

// inPanel is text with its buttons and menus below.
func inPanel(text string, buttons []platform.Button, selects []platform.Select) (out []discord.ContainerSubComponent) {
	if text = strings.TrimSpace(text); text != "" {
		out = append(out, discord.TextDisplayComponent{Content: text})
	}
	below := interactive(selects, buttons)
	if len(out) > 0 && len(below) > 0 {
		out = append(out, discord.SeparatorComponent{})
	}
	for _, row := range below {
		out = append(out, row)
	}
	return out
}

// answerPanel is an answer to a command as a panel.
func answerPanel(a platform.Answer) []discord.LayoutComponent {
	return []discord.LayoutComponent{discord.ContainerComponent{Components: inPanel(split.Clip(a.Text, maxPanelText), a.Buttons, a.Selects)}}
}

// answerParts are the buttons and menus below the text of an answer.
func answerParts(a platform.Answer) []discord.LayoutComponent {
	out := []discord.LayoutComponent{}
	for _, row := range interactive(a.Selects, a.Buttons) {
		out = append(out, row)
	}
	return out
}

// layout arranges buttons below a text.
func layout(list []platform.Button) []discord.LayoutComponent {
	return answerParts(platform.Answer{Buttons: list})
}

// interactive arranges menus, one per row, and buttons, five per row. It drops parts for which Discord would refuse the whole message.
func interactive(selects []platform.Select, buttons []platform.Button) []discord.ActionRowComponent {
	ids := map[string]bool{}
	out := slices.Concat(choosers(selects, ids), rows(buttons, ids))
	return out[:min(len(out), maxRows)]
}

// rows arranges buttons, five per row. ids are the used ids.
func rows(list []platform.Button, ids map[string]bool) (out []discord.ActionRowComponent) {
	var all []discord.InteractiveComponent
	for _, b := range list {
		if newID(b.Value, ids) {
			all = append(all, button(b))
		}
	}
	for part := range slices.Chunk(all, maxInRow) {
		out = append(out, discord.ActionRowComponent{Components: part})
	}
	return out
}

func button(b platform.Button) discord.ButtonComponent {
	style := discord.ButtonStyleSecondary
	switch b.Style {
	case platform.Yes:
		style = discord.ButtonStyleSuccess
	case platform.Danger:
		style = discord.ButtonStyleDanger
	}
	return discord.ButtonComponent{Style: style, Label: shortened(b.Label, maxButton), CustomID: b.Value}
}

// choosers are select menus, one per row. ids are the used ids.
func choosers(list []platform.Select, ids map[string]bool) (out []discord.ActionRowComponent) {
	for _, s := range list {
		options := menuOptions(s.Choices, nil)
		if len(options) == 0 || !newID(s.Value, ids) {
			continue
		}
		menu := discord.StringSelectMenuComponent{CustomID: s.Value, Placeholder: split.Clip(s.Hint, maxPlaceholder), Options: options}
		out = append(out, discord.ActionRowComponent{Components: []discord.InteractiveComponent{menu}})
	}
	return out
}

// isPanel reports whether a message shows a panel of ours or has our buttons below it: an
// approval, or the progress of work, but not a message of a conversation.
func isPanel[C any](list []C) bool {
	for _, one := range list {
		switch c := any(one).(type) {
		case discord.ContainerComponent:
			if c.ID == panelID || isPanel(c.Components) {
				return true
			}
		case discord.SectionComponent:
			if isPanel([]any{c.Accessory}) {
				return true
			}
		case discord.ActionRowComponent:
			if isPanel(c.Components) {
				return true
			}
		case discord.InteractiveComponent:
			if platform.IsButton(c.GetCustomID()) {
				return true
			}
		}
	}
	return false
}

// wordsOf is the text of a message of ours, however it is shown.
func wordsOf(m discord.Message) string {
	if m.Content != "" {
		return m.Content
	}
	return strings.Join(displayed(m.Components), "\n")
}

// sameWords compares texts without the space that Discord removes or panels add.
func sameWords(a, b string) bool {
	return slices.Equal(strings.Fields(a), strings.Fields(b))
}
