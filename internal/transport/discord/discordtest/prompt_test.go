package discordtest

import (
	"strings"
	"testing"

	"chorus/internal/sim/discordsim"
)

// A bot without tools was told how to use tools, and where on the server it works, whatever its
// owner wrote.
func TestPromptIsItsOwners(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config, want, begins string
	}{
		"without tools":      {config: "toolsEnabled: false\n", want: "You are a pirate."},
		"with tools":         {begins: "You are chorus. You have tools"},
		"replaced":           {config: "preamble: 'Ahoy {name}.'\n", want: "Ahoy chorus.\n\nYou are a pirate."},
		"taken away":         {config: "preamble: ''\n", want: "You are a pirate."},
		"replaced, no tools": {config: "preamble: Ahoy\ntoolsEnabled: false\n", want: "You are a pirate."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "systemPrompt: You are a pirate.\n" + c.config})
			asked := g.say("ada", "general", "!say aye")
			g.hasReaction(asked, "✅")
			head, err := g.app.Setup.Head(g.started(g.thread(asked)).Head)
			if err != nil {
				t.Fatal(err)
			}
			if c.begins == "" && head.System != c.want || !strings.HasPrefix(head.System, c.begins) || !strings.HasSuffix(head.System, "You are a pirate.") {
				t.Errorf("it is told %q", head.System)
			}
		})
	}
}
