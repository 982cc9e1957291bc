package discord

import (
	"strings"
	"testing"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"
)

func TestEmbedded(t *testing.T) {
	t.Parallel()
	hook := snowflake.ID(7)
	card := discord.Embed{Title: "Build failed", URL: "https://example.com/1", Description: "main is red", Author: &discord.EmbedAuthor{Name: "ci"},
		Fields: []discord.EmbedField{{Name: "commit", Value: "abc"}}, Footer: &discord.EmbedFooter{Text: "2 min"}, Image: &discord.EmbedResource{URL: "https://example.com/p.png"}}
	for name, c := range map[string]struct {
		m    discord.Message
		want string
	}{
		"a person's preview": {discord.Message{Embeds: []discord.Embed{card}}, ""},
		"nothing":            {discord.Message{Author: discord.User{Bot: true}}, ""},
		"an empty one":       {discord.Message{WebhookID: &hook, Embeds: []discord.Embed{{}}}, ""},
		"a webhook's": {discord.Message{WebhookID: &hook, Embeds: []discord.Embed{card, {Title: "and more"}}},
			"\nci\nBuild failed https://example.com/1\nmain is red\ncommit: abc\n2 min\n[picture https://example.com/p.png]\n\nand more"},
	} {
		if got := embedded(c.m).Text(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	long := discord.Message{Author: discord.User{Bot: true}, Embeds: []discord.Embed{{Description: strings.Repeat("x", 9000)}}}
	if n := len([]rune(embedded(long).Text())); n > maxEmbed+1 {
		t.Errorf("%d characters are heard", n)
	}
}
