package discord

import (
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/chat"
	"chorus/internal/room/split"
)

// maxEmbed is how much is heard of one message's embeds: Discord's own limit.
const maxEmbed = 6000

// embedded are the words of a program's embeds, which often are all it says. Those of people
// are previews of links, made by Discord and told later: they are no words of theirs.
func embedded(m discord.Message) chat.Blocks {
	if !m.Author.Bot && m.WebhookID == nil {
		return nil
	}
	var parts []string
	for _, e := range m.Embeds {
		var lines []string
		add := func(text string) {
			if text = strings.TrimSpace(text); text != "" {
				lines = append(lines, text)
			}
		}
		if e.Author != nil {
			add(e.Author.Name)
		}
		add(strings.TrimSpace(e.Title + " " + e.URL))
		add(e.Description)
		for _, f := range e.Fields {
			add(f.Name + ": " + f.Value)
		}
		if e.Footer != nil {
			add(e.Footer.Text)
		}
		if e.Image != nil {
			add("[picture " + e.Image.URL + "]")
		}
		if len(lines) > 0 {
			parts = append(parts, strings.Join(lines, "\n"))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return chat.TextBlocks("\n" + split.Clip(strings.Join(parts, "\n\n"), maxEmbed))
}
