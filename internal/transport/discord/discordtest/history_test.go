package discordtest

import (
	"fmt"
	"slices"
	"testing"

	"chorus/internal/sim/discordsim"
)

// link is the address of a message, as people copy it.
func (g *guildT) link(channel string, id discordsim.ID) string {
	return fmt.Sprintf("https://discord.com/channels/%s/%s/%s", g.Guild(), g.Channel(channel), id)
}

// withSecrets has a channel that bob cannot read, and a role for orders.
func withSecrets() discordsim.Options {
	return discordsim.Options{
		Roles:  []discordsim.RoleSpec{{Name: "keeper"}},
		People: []discordsim.PersonSpec{{Name: "ada", Roles: []string{"keeper"}}, {Name: "bob"}, {Name: "own", Owner: true}},
		Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "other"},
			{Name: "secret", Deny: map[string][]string{"@everyone": {"view_channel"}}, Allow: map[string][]string{"ada": {"view_channel"}, "chorus": {"view_channel"}}}},
	}
}

func TestHistoryOrders(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, withSecrets(), roomFiles(), func(g *guildT) {})
	room := g.room("general", "chorus")
	var told []discordsim.ID
	for i := range 4 {
		told = append(told, g.say("bob", "other", fmt.Sprintf("elsewhere %d", i)))
	}
	hidden := g.say("ada", "secret", "not for bob")
	g.say("bob", "general", "x")
	g.ask("ada", "general", "chorus", "before")

	order := g.say("bob", "general", ".history\n---\nfirst: "+g.link("other", told[1])+"\nlast: "+g.link("other", told[2]))
	g.hasReaction(order, "✅")
	g.ask("ada", "general", "chorus", "after")
	g.expect(room, "bob: elsewhere 1", "bob: elsewhere 2", "ada: <@Cora>\n!say after", "(own): after")

	order = g.say("bob", "general", ".history\n---")
	g.hasReaction(order, "✅")
	g.ask("ada", "general", "chorus", "cleared")
	g.expect(room, "ada: <@Cora>\n!say cleared", "(own): cleared")

	// What somebody cannot read themselves they do not get through an agent.
	denied := g.say("bob", "general", ".history\n---\nlast: "+g.link("secret", hidden))
	g.noted(denied, "may read")
	g.ask("bob", "general", "chorus", "still here")
	g.expect(room, "ada: <@Cora>\n!say cleared", "(own): cleared", "bob: <@Cora>\n!say still here", "(own): still here")
	allowed := g.say("ada", "general", ".history\n---\nlast: "+g.link("secret", hidden))
	g.hasReaction(allowed, "✅")
	g.expect(room, "ada: not for bob")

	// Mistakes are answered and change nothing; orders for others are left to them.
	g.noted(g.say("bob", "general", ".history\n---\nlatest: 5"), "first: and last:")
	g.noted(g.say("bob", "general", ".history\n---\nlast: "+g.link("secret", hidden)[:30]), "message link")
	g.say("bob", "general", ".history somebody-else\n---")
	g.expect(room, "ada: not for bob")

	// An order that is taken back is as if it had never been: the room is read anew.
	last := g.say("bob", "general", ".history\n---")
	g.hasReaction(last, "✅")
	g.expect(room)
	g.say("bob", "general", "heard after")
	g.when(room, "it is heard", func() bool { return slices.Contains(g.modelSees(room), "bob: heard after") })
	if err := g.Delete("bob", last); err != nil {
		t.Fatal(err)
	}
	g.when(room, "the order before it counts again", func() bool {
		return slices.Equal(g.modelSees(room), []string{"ada: not for bob", "bob: heard after"})
	})
}

func TestHistoryEnds(t *testing.T) {
	t.Parallel()
	g := inGuild(t, withSecrets(), roomFiles())
	room := g.room("general", "chorus")
	a := g.say("bob", "other", "a")
	one := g.say("bob", "other", ".history\n---\nlast: "+g.link("other", a+1<<40)) // newer than itself
	g.say("bob", "other", "b")
	order := g.say("bob", "general", ".history\n---\nlast: "+g.link("other", one+1<<40))
	g.hasReaction(order, "✅")
	if got := g.modelSees(room); !slices.Equal(got, []string{"bob: b"}) && !slices.Equal(got, []string{"bob: a", "bob: b"}) {
		t.Errorf("a circle gives %q", got)
	}
	// One that points at itself.
	self := g.say("bob", "general", ".history\n---\nlast: "+g.link("general", order+1<<40))
	if _, err := g.WaitMessage(g.soon(), func(m discordsim.Message) bool { return m.ID == self && len(m.Reactions) > 0 }); err != nil {
		t.Fatalf("it was not followed: %v\n%s", err, g.transcript())
	}
	g.ask("ada", "general", "chorus", "alive")
}

func TestHistoryNeedsARole(t *testing.T) {
	t.Parallel()
	files := roomFiles()
	files["bots/chorus.yaml"] += "authorizedRoles: [keeper]\n"
	g := inOldGuild(t, withSecrets(), files, func(g *guildT) {
		g.say("bob", "general", "old")
		g.say("bob", "general", ".history\n---") // in the past it is refused as it is now
	})
	room := g.room("general", "chorus")
	g.ask("ada", "general", "chorus", "hello")
	g.expect(room, "bob: old", "ada: <@Cora>\n!say hello", "(own): hello")
	g.noted(g.say("bob", "general", ".history\n---"), "needs the role keeper")
	g.expect(room, "bob: old", "ada: <@Cora>\n!say hello", "(own): hello")
	g.hasReaction(g.say("ada", "general", ".history\n---"), "✅")
	g.expect(room)
}
