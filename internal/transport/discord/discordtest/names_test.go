package discordtest

import (
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
)

// A nickname was ignored, so a model called people by names that nobody in the channel uses.
func TestPeopleAreCalledAsTheyAreShown(t *testing.T) {
	t.Parallel()
	o := discordsim.Options{People: []discordsim.PersonSpec{{Name: "own", Owner: true}, {Name: "ada"}, {Name: "bob", Nick: "Bobby"},
		{Name: "rob", Nick: "bobby"}, {Name: "eve", Nick: "Cora"}, {Name: "dee", Nick: "Dr. Dee"}}}
	g := inOldGuild(t, o, roomFiles(), func(g *guildT) { g.say("dee", "general", "before") })
	g.say("bob", "general", "one")
	g.say("rob", "general", "two")
	g.say("eve", "general", "three")
	g.ask("ada", "general", "chorus", "seen")
	g.say("bob", "general", "hi <@"+g.User("rob").String()+">")
	g.ask("ada", "general", "chorus", "at last")
	got := g.modelSees(g.room("general", "chorus"))
	for _, want := range []string{"Dr. Dee: before", "Bobby: one", "bobby (rob): two", "Cora (eve): three", "Bobby (bob): hi <@bobby (rob)>"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// Agents that mentioned each other, in any spelling, never woke the other; and mentions of other
// bots reached a model as numbers.
func TestAgentsMentionEachOther(t *testing.T) {
	t.Parallel()
	for _, routing := range []string{"room", "reply"} {
		t.Run(routing, func(t *testing.T) {
			t.Parallel()
			g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "pia"}}}, map[string]string{
				"shared.yaml":      "answer: bound\nrouting: " + routing + "\nmaxBotReplyChainDepth: 2\n",
				"bots/chorus.yaml": "innerName: Cora\n", "bots/pia.yaml": "innerName: Pia\ndiscordToken: ${TOKEN_PIA}\n"})
			if err := g.WaitConnected(g.soon(), "pia"); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"@Pia", "<@Pia>", "<@pia>"} {
				asked := g.say("ada", "general", g.mention("chorus")+"\n!slow 300ms\n!say "+name+" please go on")
				said := g.message("cora answers", answers(asked))
				g.message("pia answers "+name, func(m discordsim.Message) bool { return m.Author.Username == "pia" && answers(said.ID)(m) })
			}
			sees := ""
			rows, err := g.app.DB.Threads(g.Context(), threadsOf("pia"))
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				sees += strings.Join(g.modelSees(row.ID), "|")
			}
			if !strings.Contains(sees, "Pia") || strings.Contains(sees, g.User("pia").String()) || strings.Contains(sees, g.User("chorus").String()) {
				t.Errorf("pia is told %s", sees)
			}
		})
	}
}

// `m continue` was told to the model as words of whoever wrote it.
func TestContinueIsNobodysWords(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	thread := g.room("general", "chorus")
	g.ask("ada", "general", "chorus", "once upon a time")
	g.say("bob", "general", "m continue")
	g.has(thread, chat.KindRunEnded, 2)
	sees := g.modelSees(thread)
	if all := strings.Join(sees, "|"); strings.Contains(all, "go on") || strings.Contains(all, "continue") {
		t.Errorf("the model is told %s", all)
	}
	if n := len(sees); n < 3 || sees[n-2] != "(own): once upon a time" || !strings.HasPrefix(sees[n-1], "(own)") {
		t.Errorf("it does not go on with its own words: %q", sees)
	}
	g.replayed(thread)
}

// Who mentions the bot opens a thread that is called by what they ask, and a list of conversations says the same: both began with the mark of a mention.
func TestConversationsAreNotCalledByTheMention(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "answer: mentioned\nrouting: thread\n"})
	asked := g.say("ada", "general", g.mention("chorus")+" why does the build of <@"+g.User("bob").String()+"> fail?\n!say because")
	g.hasReaction(asked, "✅")
	const want = "why does the build of @bob fail? !say because"
	if got := g.calls("ada", "GET", "/channels/"+asked.String(), nil)["name"]; got != want {
		t.Errorf("the thread is called %q", got)
	}
	if got := g.command("ada", asked.String(), "thread list", nil).Text(); !strings.Contains(got, want) || strings.Contains(got, "<@chorus>") {
		t.Errorf("it is listed as %q", got)
	}
}
