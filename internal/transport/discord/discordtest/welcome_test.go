package discordtest

import (
	"slices"
	"strings"
	"testing"

	"chorus/internal/sim/discordsim"
)

// A bot that was added to a server said nothing: nobody there knew how to begin.
func TestWelcomeOnJoining(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{System: "lobby", Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "lobby"}}, Bots: []discordsim.BotSpec{{Name: "chorus", Away: true}}}, map[string]string{})
	if err := g.Invite("chorus"); err != nil {
		t.Fatal(err)
	}
	hello := g.message("welcome", greets)
	if hello.ChannelID != g.Channel("lobby") || hello.Flags&discordsim.FlagComponentsV2 == 0 {
		t.Errorf("%+v", hello)
	}
	// What it offers can be pressed by anybody, and stays.
	g.click("bob", hello.ID, "c1:topic:overview")
	g.message("help for bob", func(m discordsim.Message) bool {
		return m.ID != hello.ID && m.Flags&discordsim.FlagEphemeral != 0 && strings.Contains(m.Text(), "Try this here")
	})
	for range 2 { // a new connection and a new process do not repeat it
		g.fault(discordsim.Fault{Kind: discordsim.FaultInvalidate})
		g.end()
		g.start()
		g.answeredIn("lobby")
	}
	if list, _ := g.Messages("lobby"); len(slices.DeleteFunc(list, func(m discordsim.Message) bool { return !greets(m) })) != 1 {
		t.Errorf("it was said again:\n%v", list)
	}
}

func greets(m discordsim.Message) bool { return m.Author.Bot && strings.Contains(m.Text(), "Hello, ") }

// answeredIn has everything that lies before be done: somebody asks, and is answered.
func (g *guildT) answeredIn(channel string) {
	g.Helper()
	asked := g.say("ada", channel, "say still there")
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "still there" })
}

// Where there is no channel for newcomers, or the bot may not write in it, the first is taken in which it may.
func TestWelcomeWhereItMayWrite(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{System: "rules", Channels: []discordsim.ChannelSpec{{Name: "rules", Deny: map[string][]string{"@everyone": {"send_messages"}, "chorus": {"send_messages"}}}, {Name: "ideas", Type: "forum"}, {Name: "general"}},
		Bots: []discordsim.BotSpec{{Name: "chorus", Away: true}}}, map[string]string{})
	if err := g.Invite("chorus"); err != nil {
		t.Fatal(err)
	}
	if hello := g.message("welcome", greets); hello.ChannelID != g.Channel("general") {
		t.Errorf("it was said in %s", hello.ChannelID)
	}
}

// A server in which the bot has been for long is not greeted because Chorus was brought up to date or moved to a new home.
func TestNoWelcomeWhereItIsKnown(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.answeredIn("general")
	if list, _ := g.Messages("general"); slices.ContainsFunc(list, greets) {
		t.Errorf("it greets where it has been for a month: %v", list)
	}
}

// Who does not want greetings has none, also not later.
func TestNoWelcomeWhereItIsSwitchedOff(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus", Away: true}}}, map[string]string{"shared.yaml": "greeting: false\n"})
	if err := g.Invite("chorus"); err != nil {
		t.Fatal(err)
	}
	g.answeredIn("general")
	g.end()
	g.write("shared.yaml", "answer: all\ncontinuationModel: demo/script\nsandbox: host\n")
	g.start()
	g.answeredIn("general")
	if list, _ := g.Messages("general"); slices.ContainsFunc(list, greets) {
		t.Errorf("it greets: %v", list)
	}
}

// A program that died right after the greeting was posted, before it heard so, does not greet again.
func TestWelcomeOnceWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus", Away: true}}}, map[string]string{})
	g.fault(discordsim.Fault{Kind: discordsim.FaultHangup, Route: "POST /channels/{channel}/messages", After: true})
	if err := g.Invite("chorus"); err != nil {
		t.Fatal(err)
	}
	g.message("welcome", greets)
	g.end()
	g.Clear(0)
	g.start()
	g.answeredIn("general")
	g.settledRows()
	if list, _ := g.Messages("general"); len(slices.DeleteFunc(list, func(m discordsim.Message) bool { return !greets(m) })) != 1 {
		t.Errorf("it was not said once:\n%s", g.transcript())
	}
}
