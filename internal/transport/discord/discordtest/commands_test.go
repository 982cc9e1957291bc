package discordtest

import (
	"strings"
	"testing"

	"chorus/internal/sim/discordsim"
)

// Whoever wants to begin anew while something runs can have it stopped by the same order.
func TestDiscordClearStopsFirst(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	running := g.say("ada", "general", "say begun\nwait")
	g.hasReaction(running, "⚙️")
	thread := g.thread(running)
	g.commandShows("bob", "context clear", map[string]any{"stop": true}, "manage messages")
	g.commandShows("ada", "context clear", nil, "still running", "`stop`")
	if g.lines(thread) == "" {
		t.Error("it was cleared in the middle of its work")
	}
	g.commandShows("ada", "context clear", map[string]any{"stop": true}, "Cleared ")
	if got := g.lines(thread); got != "" {
		t.Errorf("left is %q", got)
	}
	g.hasReaction(running, "❌")
}

// A room is not its first speaker's: what is said there is everybody's.
func TestDiscordRoomIsNobodysOwn(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "routing: room\n"})
	mention := "<@" + g.User("chorus").String() + "> "
	g.hasReaction(g.say("bob", "general", mention+"remember the red door\n!say noted"), "✅")
	g.commandShows("ada", "context save", nil, "Saved as")
	g.commandShows("bob", "context clear", nil, "manage messages")
	g.commandShows("bob", "context restore", map[string]any{"session_id": firstSaved(g)[:6]}, "manage messages")
	g.commandShows("ada", "context clear", nil, "Cleared ")
	running := g.say("bob", "general", mention+"go on\n!say on it\n!wait")
	g.hasReaction(running, "⚙️")
	g.commandShows("bob", "stop", nil, "Stopped 1.")
	g.hasReaction(running, "❌")
}

// What is told to somebody alone holds no more secrets than what is told to all.
func TestDiscordOrdersTellNoSecrets(t *testing.T) {
	t.Parallel()
	key := "sk-" + strings.Repeat("test-key", 4)
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "permissions: open\nvendors:\n  local:\n    config:\n      openai_api_key: " + key +
		"\n      api_base: http://127.0.0.1:1/v1\n    provides: [mine]\n"})
	asked := g.say("ada", "general", "call write {\"path\":\""+key+".txt\",\"content\":\"x\"}\nend\nsay done")
	g.hasReaction(asked, "✅")
	cut := g.say("ada", "general", "say "+strings.Repeat("x", 40)+key+" is the key")
	g.hasReaction(cut, "✅")
	for _, command := range []string{"thread history", "why", "thread list", "status"} {
		if text := g.command("bob", "general", command, nil).Text(); strings.Contains(text, key[:12]) {
			t.Errorf("/%s tells a secret: %s", command, text)
		}
	}
}

// Nothing said is nothing to say.
func TestDiscordSteerWithoutWords(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	running := g.say("ada", "general", "say begun\nwait")
	g.hasReaction(running, "⚙️")
	g.commandShows("ada", "steer", map[string]any{"message": "   "}, "message is empty")
	g.commandShows("ada", "stop", nil, "Stopped 1.")
	g.hasReaction(running, "❌")
}

// Whoever may not speak in a channel does not speak there through orders either.
func TestDiscordOrdersOfThoseWhoMayNotSpeak(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "news", Deny: map[string][]string{"@everyone": {"send_messages"}}}}}, map[string]string{})
	running := g.say("ada", "news", "say begun\nwait")
	g.hasReaction(running, "⚙️")
	for command, options := range map[string]map[string]any{"steer": {"message": "do my bidding"}, "thread fork": {"thread": running.String()}, "context save": nil} {
		if got := g.command("bob", "news", command, options).Text(); !strings.Contains(got, "You may not write here") {
			t.Errorf("/%s: %q", command, got)
		}
	}
	if got := g.command("bob", "news", "status", nil).Text(); !strings.Contains(got, "running") {
		t.Errorf("looking: %q", got)
	}
	if got := g.command("ada", "news", "stop", nil).Text(); got != "Stopped 1." {
		t.Errorf("/stop: %q", got)
	}
	g.hasReaction(running, "❌")
}

// In a direct message everything ends in an answer that fits there.
func TestDiscordOrdersInADirectMessage(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	at := g.direct("bob")
	asked := g.say("bob", at, "say hello")
	g.hasReaction(asked, "✅")
	if err := g.WaitCommand(g.soon(), "chorus", "why"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		options map[string]any
		want    string
	}{
		{"status", nil, "answers here"}, {"tasks", nil, "Nothing is running"}, {"queue", nil, "Nobody is waiting"}, {"thread list", nil, "say hello"}, {"thread history", nil, "done in"},
		{"why", nil, "demo/script"}, {"cost", nil, "You spent"}, {"cost", map[string]any{"since": "all"}, "You spent in all"}, {"access", nil, "What chorus does when you say so here"},
		{"context save", nil, "Saved as"}, {"context history", nil, "2 messages"}, {"steer", map[string]any{"message": "x"}, "Nothing is running"}, {"stop", nil, "Nothing is running"},
		{"thread fork", map[string]any{"thread": "no such"}, "there is no conversation"}, {"thread kill", map[string]any{"thread": strings.Repeat("9", 1024)}, "there is no session"},
		{"context restore", map[string]any{"session_id": "%"}, "no context saved here"}, {"context clear", nil, "Cleared 2 messages"},
	} {
		if got := g.command("bob", at, c.command, c.options).Text(); !strings.Contains(got, c.want) {
			t.Errorf("/%s: %q without %q", c.command, got, c.want)
		}
	}
}

// What was said with an agent that is gone can be looked at, and is not gone on with.
func TestDiscordOrdersAboutAnAgentThatIsGone(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("carol", "agent init", map[string]any{"name": "random"}, "is ready")
	asked := g.say("bob", "random", "say hello")
	g.hasReaction(asked, "✅")
	question := g.command("carol", "general", "agent destroy", map[string]any{"name": "random"})
	button := "c1:retire:" + g.User("carol").String() + ":gone:random"
	g.click("carol", question.ID, button)
	g.message("answer", func(m discordsim.Message) bool {
		return m.ID == question.ID && strings.HasPrefix(m.Text(), "**random** is gone.")
	})
	for _, c := range []struct {
		command string
		options map[string]any
		want    string
	}{
		{"thread history", nil, "done in"}, {"why", map[string]any{"message": asked.String()}, "demo/script"}, {"status", nil, "**chorus** answers here"},
		{"thread fork", map[string]any{"thread": asked.String()}, "the agent random no longer answers here"},
		{"agent config", map[string]any{"name": "random", "key": "model"}, "there is no agent"},
	} {
		if got := g.command("carol", "random", c.command, c.options).Text(); !strings.Contains(got, c.want) {
			t.Errorf("/%s: %q without %q", c.command, got, c.want)
		}
	}
	again := g.reply("bob", g.message("old answer", answers(asked)).ID, "say anybody there")
	g.hasReaction(again, "✅")
	if got := g.thread(again).Agent(); got != "chorus" {
		t.Errorf("%s answers", got)
	}
}

// A click is answered also when Discord stumbles over the answer.
func TestDiscordOrdersClickWhileDiscordStumbles(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	_, card := g.asks("ada", "echo "+strings.Repeat("and on ", 200))
	if _, err := g.Inject(discordsim.Fault{Kind: discordsim.FaultError, Route: "POST /webhooks/{webhook}/{token}", Count: 1, Status: 502}); err != nil {
		t.Fatal(err)
	}
	g.click("bob", card.ID, "c1:yes:"+approvalOf(t, card))
	g.message("refusal", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "You cannot answer this") })
	g.click("ada", card.ID, "c1:details:"+approvalOf(t, card))
	g.message("details", func(m discordsim.Message) bool { return len(m.Attachments) == 1 && m.Attachments[0].Size > 500 })
	g.click("ada", card.ID, "c1:no:"+approvalOf(t, card))
	g.decided(card.ID, "**Denied**")
}

// Several bots registered the same commands, so that every entry appeared once for each of them.
func TestCommandsOfSeveralBotsHaveNames(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "pia"}}}, map[string]string{"bots/pia.yaml": "discordToken: ${TOKEN_PIA}\n"})
	for bot, name := range map[string]string{"chorus": "status", "pia": "pia-status"} {
		if err := g.WaitCommand(g.soon(), bot, name); err != nil {
			t.Fatal(err)
		}
		i, err := g.Slash("ada", "general", bot, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if m := g.shown(name, i); !strings.Contains(m.Text(), "answers here") {
			t.Errorf("%s: %s", name, m.Text())
		}
	}
	if _, err := g.Slash("ada", "general", "pia", "status", nil); err == nil {
		t.Error("pia has the same command")
	}
	if err := g.WaitCommand(g.soon(), "pia", "pia-agent"); err != nil {
		t.Error(err)
	}
}
