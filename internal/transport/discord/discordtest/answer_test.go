package discordtest

import (
	"testing"

	"chorus/internal/sim/discordsim"
)

// Bots answered every message in every channel of a server, each of them.
func TestBotsAnswerWhereTheyBelong(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "echo"}},
		Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "help-one"}, {Name: "news"}}}, map[string]string{
		"shared.yaml":    "channels:\n  allow: ['help-*']\n  deny: [news]\n  general: guarded\n",
		"bots/echo.yaml": "discordToken: ${TOKEN_ECHO}\n"})
	if err := g.WaitConnected(g.soon(), "echo"); err != nil {
		t.Fatal(err)
	}
	// Nobody is asked.
	g.say("ada", "general", "lol\n!say wrong")
	g.say("ada", "news", g.mention("chorus")+"\n!say wrong")
	bobs := g.say("bob", "general", "see you at five\n!say wrong")
	g.reply("ada", bobs, "fine\n!say wrong")
	g.say("ada", "help-one", "@everyone\n!say wrong")
	g.say("ada", "help-one", "<@"+g.User("bob").String()+">\n!say wrong")
	// Somebody is.
	first := g.say("ada", "help-one", "anyone?\n!say here")
	if m := g.message("one of them answers", answers(first)); m.Author.Username != "chorus" {
		t.Errorf("%s answers", m.Author.Username)
	}
	g.ask("ada", "general", "echo", "by name")
	both := g.say("ada", "help-one", g.mention("chorus")+g.mention("echo")+"\n!say both of us")
	g.until("both answer", func() bool {
		n := 0
		list, err := g.Messages("help-one")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if answers(both)(m) {
				n++
			}
		}
		return n == 2
	})
	direct := g.direct("bob")
	if m := g.message("a direct message", answers(g.say("bob", direct, "!say for you alone"))); m.Text() != "for you alone" {
		t.Error(m.Text())
	}
	for channel, want := range map[string]int{"general": 1, "help-one": 3, "news": 0} {
		if n := g.countOwn(channel); n != want {
			t.Errorf("%d answers in %s instead of %d", n, channel, want)
		}
	}
}

// What an agent is told in its own channel needs no mention, as before.
func TestAgentAnswersInItsChannel(t *testing.T) {
	t.Parallel()
	g := inGuild(t, withSecrets(), map[string]string{"shared.yaml": "answer: bound\naccess: {discord: open}\neditors: [discord]\n"})
	g.command("own", "general", "agent init", map[string]any{"name": "scribe"})
	if m := g.message("its answer", answers(g.say("bob", "scribe", "!say noted"))); m.Text() != "noted" {
		t.Error(m.Text())
	}
	g.pin("own", "scribe", ".config\n---\nanswer: mentioned")
	g.until("the pin counts", func() bool {
		bot, err := g.app.Settings.BotFor(rowOf(g.threadOf("scribe", 1)))
		return err == nil && bot.Answer == "mentioned"
	})
	g.say("bob", "scribe", "!say wrong")
	g.ask("bob", "scribe", "chorus", "asked")
	if n := g.countOwn("scribe"); n != 2 {
		t.Errorf("it answers %d times, also without being mentioned", n)
	}
}
