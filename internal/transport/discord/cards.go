package discord

import (
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/room/show"
	"chorus/internal/room/split"
)

// The sizes of a card: the whole of it stays below the platform's 2,000 characters.
const (
	cardActions = 900
	cardPreview = 700
)

// cardText is a question with all that is needed to answer it, and the answer once there is one.
func cardText(c show.Card) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**May I?** `%s`\n", strings.ReplaceAll(c.Tool, "`", "'"))
	if list := split.Clip(strings.Join(c.Actions, "\n"), cardActions); list != "" {
		fmt.Fprintf(&b, "> %s\n", strings.ReplaceAll(list, "\n", "\n> "))
	}
	if c.Preview != "" {
		fmt.Fprintf(&b, "```diff\n%s\n```\n", strings.ReplaceAll(split.Clip(c.Preview, cardPreview), "```", "'''"))
	}
	if c.Rule != "" {
		fmt.Fprintf(&b, "-# rule: %s\n", split.Clip(c.Rule, 100))
	}
	switch {
	case c.Open && c.FirstYes != "":
		fmt.Fprintf(&b, "-# %s %s said yes; one more person must\n", show.SignDone, people(c.FirstYes))
	case c.Open && !c.Until.IsZero():
		fmt.Fprintf(&b, "-# no answer by <t:%d:f> means no\n", c.Until.Unix())
	case c.Open:
	case c.By == "":
		b.WriteString("-# not needed any more\n")
	case c.OK:
		fmt.Fprintf(&b, "%s **yes**, %s", show.SignDone, people(c.By))
	default:
		fmt.Fprintf(&b, "%s **no**, %s", show.SignNot, people(c.By))
	}
	if !c.Open && c.Note != "" {
		fmt.Fprintf(&b, ": %s", split.Clip(c.Note, 200))
	}
	return strings.TrimSpace(b.String())
}

// people writes principals so that Discord shows the names of its own; nobody is rung.
func people(by string) string {
	names := strings.Split(by, " and ")
	for i, name := range names {
		if id, ok := strings.CutPrefix(name, string(chat.DiscordUser)+":"); ok {
			names[i] = "<@" + id + ">"
		}
	}
	return strings.Join(names, " and ")
}
