package discordtest

import (
	"testing"

	"chorus/internal/sim/discordsim"
)

// One person could keep a bot busy for everybody, and nobody could be kept out.
func TestBlockedAndCooldown(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "blocked: [bob]\ncooldownSeconds: 600\n"})
	g.say("bob", "general", "!say wrong")
	g.say("bob", "general", g.mention("chorus")+"\n!say wrong")
	first := g.say("ada", "general", "!say first")
	g.message("the first is answered", answers(first))
	second := g.say("ada", "general", "!say wrong")
	g.hasReaction(second, "⏳")
	if n := g.countOwn("general"); n != 1 {
		t.Errorf("%d answers:\n%s", n, g.transcript())
	}
}
