package discordtest

import (
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
)

// reactions are those that a journal has, in a word each.
func (g *guildT) reactions(thread chat.ThreadID) []string {
	g.Helper()
	var out []string
	for _, ev := range g.events(thread) {
		if r, ok := ev.Body.(chat.Reacted); ok {
			sign := "-"
			if r.Added {
				sign = "+"
			}
			out = append(out, sign+r.Emoji+" "+r.By.Name)
		}
	}
	return out
}

func TestReactionsAreVersions(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	thread := g.room("general", "chorus")
	said := g.say("bob", "general", "remember this")
	answer := g.ask("ada", "general", "chorus", "noted")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(g.React("ada", said, "👍"))
	g.fault(discordsim.Fault{Kind: discordsim.FaultDuplicate, Count: 2})
	do(g.Unreact("ada", said, "👍"))
	do(g.React("ada", said, "👍"))
	do(g.React("bob", answer.ID, "🎉"))
	want := []string{"+👍 ada", "-👍 ada", "+👍 ada", "+🎉 bob"}
	g.when(thread, "all of them are written, each once", func() bool { return slices.Equal(g.reactions(thread), want) })

	// The dotted face hides what was not told to the model yet.
	heard := g.say("bob", "general", "not for programs")
	g.when(thread, "it is heard", func() bool { return slices.Contains(g.modelSees(thread), "bob: not for programs") })
	do(g.React("ada", heard, "\U0001FAE5"))
	g.when(thread, "it is hidden", func() bool { return !slices.Contains(g.modelSees(thread), "bob: not for programs") })
}

func TestAnswerThatWasTakenAway(t *testing.T) {
	t.Parallel()
	g := inGuild(t, withSecrets(), roomFiles())
	thread := g.room("general", "chorus")
	answer := g.ask("ada", "general", "chorus", "too much said")
	if err := g.Delete("own", answer.ID); err != nil {
		t.Fatal(err)
	}
	g.has(thread, chat.KindDeleted, 1)
	g.ask("ada", "general", "chorus", "well")
	if got := strings.Join(g.modelSees(thread), "|"); !strings.HasSuffix(got, "(own): well") {
		t.Errorf("the room has %s", got)
	}
	for _, ev := range g.events(thread) {
		if d, ok := ev.Body.(chat.Deleted); ok {
			if said, ok := g.events(thread)[d.Seq-1].Body.(chat.Said); !ok || said.Blocks.Text() != "(deleted)" || !said.Forgotten {
				t.Errorf("another was taken away: %+v", g.events(thread)[d.Seq-1].Body)
			}
		}
	}
}
