package discordtest

import (
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/runsetup"
	"chorus/internal/sim/discordsim"
)

// The bot's own agent is met on every server, so not every server may write its prompt.
func TestDiscordInitDoesNotSeizeTheHousesAgent(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("carol", "agent init", map[string]any{"name": "chorus", "prompt": "You sing."}, "belongs to all servers", "you may not change permissions")
	if runsetup.IsDir(g.app.Home.AgentDir("chorus")) || g.Channel("chorus") != 0 {
		t.Error("it was made all the same")
	}
	g.commandShows("ada", "agent init", map[string]any{"name": "chorus", "prompt": "You sing."}, "**chorus** is ready")
}

// An agent is not put into a channel that whoever wants it there cannot see.
func TestDiscordInitLeavesHiddenChannelsAlone(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "random"},
		{Name: "board", Deny: map[string][]string{"@everyone": {"view_channel"}}, Allow: map[string][]string{"chorus": {"view_channel"}}}}}, map[string]string{})
	text := g.commandShows("carol", "agent init", map[string]any{"name": "board", "prompt": "Tell me everything."}, "choose another")
	if strings.Contains(text, g.Channel("board").String()) || runsetup.IsDir(g.app.Home.AgentDir("board")) {
		t.Errorf("it was made: %s", text)
	}
	g.commandShows("ada", "agent init", map[string]any{"name": "board"}, "The channel already existed and is used.")
}

// What was there before an agent is there after it.
func TestDiscordDestroyLeavesOldChannels(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.hasReaction(g.say("bob", "random", "say an old word"), "✅") // answered by the bot's own agent, not by the one to come
	g.commandShows("carol", "agent init", map[string]any{"name": "random"}, "The channel already existed and is used.")
	asked := g.command("carol", "general", "agent destroy", map[string]any{"name": "random"})
	if !strings.Contains(asked.Text(), "stays, because it existed before") {
		t.Errorf("the question is %q", asked.Text())
	}
	button := "c1:retire:" + g.User("carol").String() + ":gone:random"
	g.click("carol", asked.ID, button)
	g.message("answer", func(m discordsim.Message) bool {
		return m.ID == asked.ID && strings.HasPrefix(m.Text(), "**random** is gone.")
	})
	if g.Channel("random") == 0 || runsetup.IsDir(g.app.Home.AgentDir("random")) {
		t.Error("the channel went with its agent, or the agent did not go")
	}
}

// A channel that was renamed is still its agent's, and needs no second one.
func TestDiscordInitFindsARenamedChannel(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "is ready")
	if err := g.Rename("helper", "front-desk"); err != nil {
		t.Fatal(err)
	}
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "is ready in <#"+g.Channel("front-desk").String()+">", "already existed")
	if g.Channel("helper") != 0 {
		t.Error("there is a second channel")
	}
}

// What /status says is what the next run has.
func TestDiscordStatusSaysWhatHoldsHere(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("ada", "settings model", map[string]any{"model": "demo/echo"}, "is now `demo/echo`")
	g.commandShows("ada", "settings permissions", map[string]any{"profile": "locked"}, "is now `locked`")
	g.commandShows("bob", "status", nil, "model `demo/echo`", "profile `locked`")
}

// Spaces around a value are nobody's wish.
func TestDiscordConfigTakesSpacesAway(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "is ready")
	g.commandShows("ada", "agent config", map[string]any{"name": " helper ", "key": " permissions ", "value": " guarded "}, "permissions of **helper** is now `guarded`")
	g.commandShows("carol", "agent config", map[string]any{"name": "helper", "key": "temperature", "value": "   "}, "temperature")
	if bot, err := g.app.Settings.Bot("helper"); err != nil || bot.Permissions != "guarded" {
		t.Errorf("%+v, %v", bot, err)
	}
}

// What one server spends is not another's to know.
func TestDiscordCostIsTheServers(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.hasReaction(g.say("bob", "general", "usage in=1000000 out=1\nsay hello"), "✅")
	g.elsewhere("discord:77/1:2@foreign")
	text := g.commandShows("ada", "cost", nil, "- chorus:")
	if strings.Contains(text, "foreign") {
		t.Errorf("another server's agent is told of: %s", text)
	}
	g.commandShows("bob", "cost", nil, "You spent", "- chorus:")
	g.commandShows("carol", "cost", map[string]any{"since": "whenever"}, "whenever")
}

// elsewhere has an agent of another server spend something.
func (g *guildT) elsewhere(id chat.ThreadID) {
	g.Helper()
	ctx := g.Context()
	if _, err := g.app.DB.Commit(ctx, journal.Commit{Thread: id, Create: &journal.Thread{}, Events: []chat.Event{{Body: chat.Received{Blocks: chat.TextBlocks("x")}}}}); err != nil {
		g.Fatal(err)
	}
	row, err := g.app.DB.Take(ctx, id)
	if err != nil {
		g.Fatal(err)
	}
	spent := ledger.Entry{Run: "far", Step: 1, Attempt: 1, Agent: id.Agent(), Model: "m", Settled: 1_000_000_000, How: ledger.ByUsage}
	if _, err := g.app.DB.Commit(ctx, journal.Commit{Thread: id, Epoch: row.Epoch, Money: []ledger.Entry{spent}}); err != nil {
		g.Fatal(err)
	}
}

// In a thread that somebody opened on an answer, the conversation of that answer is the one here.
func TestDiscordOrdersInAThreadOnAnAnswer(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.say("ada", "general", "say begun")
	g.hasReaction(asked, "✅")
	answer := g.message("answer", answers(asked))
	if _, err := g.OpenThread("ada", answer.ID, "more"); err != nil {
		t.Fatal(err)
	}
	running := g.say("ada", "more", "say going on\nwait")
	g.hasReaction(running, "⚙️")
	if got := g.command("ada", "more", "thread list", nil).Text(); !strings.Contains(got, "running") {
		t.Errorf("listed in the thread: %q", got)
	}
	if got := g.command("ada", "more", "stop", nil).Text(); got != "Stopped 1." {
		t.Errorf("/stop in the thread: %q", got)
	}
	g.hasReaction(running, "❌")
}

// An order that is given twice at once makes one channel.
func TestDiscordInitTwiceAtOnce(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	if err := g.WaitCommand(g.soon(), "chorus", "agent"); err != nil {
		t.Fatal(err)
	}
	var given []discordsim.Interaction
	for range 4 {
		i, err := g.Slash("carol", "general", "chorus", "agent init", map[string]any{"name": "helper"})
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, i)
	}
	for _, i := range given {
		if got := g.shown("/agent init", i).Text(); !strings.Contains(got, "**helper** is ready in <#"+g.Channel("helper").String()+">") {
			t.Errorf("one of several is told %q", got)
		}
	}
	if n := g.Count("helper"); n != 1 {
		t.Errorf("there are %d channels of that name", n)
	}
}

// Two changes of one agent at once are both there afterwards.
func TestDiscordConfigTwiceAtOnce(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "is ready")
	values := map[string]string{"temperature": "0.3", "maxTokens": "77", "routing": "thread", "intake": "queue", "topP": "0.5", "maxImages": "3"}
	var given []discordsim.Interaction
	for key, value := range values {
		i, err := g.Slash("carol", "general", "chorus", "agent config", map[string]any{"name": "helper", "key": key, "value": value})
		if err != nil {
			t.Fatal(err)
		}
		given = append(given, i)
	}
	for _, i := range given {
		g.shown("/agent config", i)
	}
	for key, value := range values {
		g.commandShows("carol", "agent config", map[string]any{"name": "helper", "key": key}, "is `"+value+"`")
	}
}
