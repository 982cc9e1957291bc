package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/sim/discordsim"
	"chorus/internal/transcript"
)

// room is the conversation of an agent that is a whole channel.
func (g *guildT) room(channel, agent string) chat.ThreadID {
	return chat.ThreadID(fmt.Sprintf("discord:%s/%s:%s@%s", g.Guild(), g.Channel(channel), g.Channel(channel), agent))
}

func (g *guildT) events(thread chat.ThreadID) []chat.Event {
	g.Helper()
	list, err := g.app.DB.Events(g.Context(), thread, 0, 1000)
	if err != nil {
		g.Fatal(err)
	}
	return list
}

// sees is what a model would be shown of a conversation.
func (g *guildT) sees(thread chat.ThreadID) []string {
	g.Helper()
	log := transcript.New(func(hash string) ([]byte, error) { return g.app.DB.Blob(g.Context(), hash) })
	for _, ev := range g.events(thread) {
		if err := log.Apply(ev); err != nil {
			g.Fatal(err)
		}
	}
	lines, err := log.Lines()
	if err != nil {
		g.Fatal(err)
	}
	var out []string
	for _, l := range lines {
		name := l.From.Name
		if l.Role == "assistant" {
			name = "(own)"
		}
		out = append(out, name+": "+l.Blocks.Text())
	}
	return out
}

func (g *guildT) mention(bot string) string { return "<@" + g.User(bot).String() + ">" }

// ask mentions a bot and waits for what it says.
func (g *guildT) ask(who, channel, bot, words string) discordsim.Message {
	g.Helper()
	g.say(who, channel, g.mention(bot)+"\n!say "+words)
	in := g.Channel(channel)
	return g.message("answer "+words, func(m discordsim.Message) bool { return m.Content == words && m.ChannelID == in })
}

func (g *guildT) expect(thread chat.ThreadID, want ...string) {
	g.Helper()
	if got := g.sees(thread); !slices.Equal(got, want) {
		g.Errorf("the model sees\n  %s\nnot\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func rowOf(thread chat.ThreadID) journal.Thread {
	return journal.Thread{ID: thread, Agent: thread.Agent(), Place: thread.Place()}
}

// until looks again until something is so. Only for what no message tells of.
func (g *guildT) until(what string, is func() bool) {
	g.Helper()
	ctx := g.soon()
	for !is() {
		select {
		case <-ctx.Done():
			g.Fatalf("never: %s\n%s", what, g.board())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

var roomFiles = func() map[string]string {
	return map[string]string{"bots/chorus.yaml": "routing: room\ninnerName: Cora\n"}
}

func TestRoomKnowsWhatWasSaidBefore(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{}, roomFiles(), func(g *guildT) {
		g.say("ada", "general", "one")
		two := g.say("bob", "general", "two")
		g.say("ada", "general", ".between people")
		g.reply("ada", two, "three "+g.mention("chorus"))
	})
	g.ask("ada", "general", "chorus", "here")
	g.expect(g.room("general", "chorus"), "ada: one", "bob: two", "ada: <reply:@bob> three <@Cora>", "ada: <@Cora>\n!say here", "(own): here")
	if n := g.ours("general"); n != 1 {
		t.Errorf("nobody waits for an answer to what was said before:\n%s", g.board())
	}
	g.end() // and it is not read twice
	g.start()
	g.ask("bob", "general", "chorus", "again")
	imports := 0
	for _, ev := range g.events(g.room("general", "chorus")) {
		if _, ok := ev.Body.(chat.Imported); ok {
			imports++
		}
	}
	if imports != 1 {
		t.Errorf("the past was read %d times", imports)
	}
}

func TestRoomInAThreadSeesItsParent(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{}, roomFiles(), func(g *guildT) {
		g.say("ada", "general", "above")
		on := g.say("bob", "general", "the start")
		g.say("ada", "general", "said later in the channel")
		thread, err := g.OpenThread("bob", on, "aside")
		if err != nil {
			g.Fatal(err)
		}
		g.say("bob", thread.String(), "in the thread")
	})
	g.ask("ada", "aside", "chorus", "here")
	thread := chat.ThreadID(fmt.Sprintf("discord:%s/%s:%s@chorus", g.Guild(), g.Channel("general"), g.Channel("aside")))
	g.expect(thread, "ada: above", "bob: the start", "bob: in the thread", "ada: <@Cora>\n!say here", "(own): here")
}

func TestRoomAnswersSeveralAtOnce(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	g.say("ada", "general", g.mention("chorus")+"\n!chunk 1\n!slow 30ms\n!say slowly spoken")
	g.until("it speaks", func() bool {
		return slices.ContainsFunc(g.events(g.room("general", "chorus")), func(ev chat.Event) bool { return ev.Body.Kind() == chat.KindAsked })
	})
	var asked []discordsim.ID
	for i := range 8 { // more than may wait elsewhere
		asked = append(asked, g.say("bob", "general", fmt.Sprintf("%s %d\n!say together", g.mention("chorus"), i)))
	}
	last := g.message("one answer to all", func(m discordsim.Message) bool { return m.Content == "together" })
	for _, id := range asked {
		g.signed(id, "✅")
	}
	if !answers(asked[7])(last) {
		t.Errorf("it does not answer the newest: %+v", last.Reference)
	}
	if n := g.ours("general"); n != 2 {
		t.Errorf("two answers, not %d:\n%s", n, g.board())
	}
}

func TestRoomShowsNoStatus(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	id := g.say("ada", "general", g.mention("chorus")+"\n!chunk 2\n!slow 100ms\n!say for more than a second")
	g.signed(id, "✅")
	list, err := g.Messages("general")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.Author.Bot && (m.Edited != nil || m.Content != "for more than a second") {
			t.Errorf("others have heard %q", m.Content)
		}
	}
}

func TestRoomOfTwoAgentsFallsSilent(t *testing.T) {
	t.Parallel()
	talk := "routing: room\nreplyOnRandom: 1\nmaxBotReplyChainDepth: 3\n"
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "echo"}}}, map[string]string{
		"bots/chorus.yaml": talk, "bots/echo.yaml": talk + "discordToken: ${TOKEN_ECHO}\n"})
	if err := g.WaitConnected(g.soon(), "echo"); err != nil {
		t.Fatal(err)
	}
	g.say("ada", "general", "!say hello")
	silent := func(bot string) bool {
		got, err := g.app.DB.Decisions(g.Context(), "discord", bot, 50)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(got, func(d string) bool { return strings.Contains(d, "too many programs") })
	}
	g.until("one of them falls silent", func() bool { return silent("chorus") || silent("echo") })
	if n := g.ours("general"); n < 3 || n > 12 {
		t.Errorf("they said %d things:\n%s", n, g.board())
	}
	for _, who := range []string{"chorus", "echo"} {
		if got := g.sees(g.room("general", who)); len(got) < 2 {
			t.Errorf("%s has heard only %q", who, got)
		}
	}
	// A person is answered again at once, and then it is quiet again.
	g.ask("ada", "general", "echo", "I am here")
}
