package discordtest

import (
	"fmt"
	"testing"
	"time"

	"chorus/internal/chat"
	connect "chorus/internal/connector/host"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store/storetest"
)

// fault makes something go wrong until the test clears it.
func (g *guildT) fault(f discordsim.Fault) int {
	g.Helper()
	id, err := g.Inject(f)
	if err != nil {
		g.Fatal(err)
	}
	return id
}

// A program that died right after it had posted, before it heard so, does not post again: it looks first, and it knows
// itself again only when it is connected.
func TestDiscordMissingTheAnswerPostsOnce(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{TimeScale: 100_000}, map[string]string{}) // a nonce is forgotten after 3 ms
	if err := g.WaitConnected(g.soon(), "chorus"); err != nil {
		t.Fatal(err)
	}
	g.seen(chat.DefaultAgent)
	g.hasReaction(g.say("ada", "random", "say here"), "✅")
	goOn := g.pauseModel(0)
	asked := g.say("ada", "general", "say said once")
	g.hasReaction(asked, "⚙️")
	g.fault(discordsim.Fault{Kind: discordsim.FaultMute}) // nobody tells us of our own message either
	g.fault(discordsim.Fault{Kind: discordsim.FaultHangup, Route: "POST /channels/{channel}/messages", After: true, Count: 1})
	goOn()
	g.message("answer whose receipt is lost", answers(asked))
	g.end()
	g.Clear(0)
	g.fault(discordsim.Fault{Kind: discordsim.FaultSlow, Route: "GET /gateway", Millis: 1500})
	g.start()
	g.hasReaction(asked, "✅")
	g.hasReaction(g.say("ada", "general", "say after that"), "✅")
	if n := g.countOwn("general"); n != 2 {
		t.Errorf("two answers, not %d:\n%s", n, g.transcript())
	}
}

// What was said to one bot while nobody was there is not answered by another that happens to be back first.
func TestDiscordAnswersNotForABotThatIsLate(t *testing.T) {
	t.Parallel()
	g := twoBots(t, "")
	for _, bot := range []string{"alpha", "beta"} {
		g.seen(bot)
	}
	g.hasReaction(g.say("ada", "general", g.mention("beta")+"\n!say here"), "✅")
	g.end()
	asked := g.say("ada", "general", g.mention("beta")+"\n!say for beta alone")
	g.fault(discordsim.Fault{Kind: discordsim.FaultSlow, Route: "GET /gateway", Bot: "beta", Millis: 1000})
	g.begin("")
	m := g.message("answer", answers(asked))
	g.hasReaction(asked, "✅")
	if n := g.countOwn("general"); n != 2 || m.Author.Username != "beta" {
		t.Errorf("two answers of beta's, not %d, the first by %s:\n%s", n, m.Author.Username, g.transcript())
	}
}

// Each of two processes with one bot answers for its own bot alone.
func TestDiscordOneProcessForEachBot(t *testing.T) {
	t.Parallel()
	g := twoBots(t, "alpha")
	g.seen("alpha")
	other := &guildT{T: t, Sim: g.Sim, home: g.home, warned: g.warned}
	other.begin("beta")
	t.Cleanup(other.end)
	other.seen("beta")
	for i, bot := range []string{"beta", "alpha"} {
		asked := g.say("ada", "general", fmt.Sprintf("%s\n!say from %s %d", g.mention(bot), bot, i))
		if m := g.message("answer of "+bot, answers(asked)); m.Author.Username != bot {
			t.Errorf("%s answered for %s", m.Author.Username, bot)
		}
		g.hasReaction(asked, "✅")
	}
	// Both look for what is untold every two seconds: what follows is heard behind such a look.
	for range 2 {
		asked := g.say("ada", "general", g.mention("alpha")+"\n!slow 2200ms\n!say later")
		g.message("later answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "later" })
		g.hasReaction(asked, "✅")
	}
	if n := g.countOwn("general"); n != 4 {
		t.Errorf("four answers, not %d:\n%s", n, g.transcript())
	}
}

// An agent that gets a bot of its own does not say again what another bot has said for it.
func TestDiscordAgentGetsABotOfItsOwn(t *testing.T) {
	t.Parallel()
	g := &guildT{T: t, home: storetest.FreshHome(t), warned: make(chan string, 16)}
	g.Sim = discordsim.StartT(t, discordsim.Options{NoRateLimits: true, Bots: []discordsim.BotSpec{{Name: "alpha"}, {Name: "gamma"}},
		Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "gamma"}}})
	g.write("shared.yaml", "continuationModel: demo/script\nsandbox: host\n")
	g.write("bots/alpha.yaml", "discordToken: "+g.Token("alpha")+"\n")
	g.write("../agents/gamma/agent.json", `{"name":"gamma","model":"demo/script"}`)
	g.begin("")
	t.Cleanup(g.end)
	g.seen("alpha")
	g.hasReaction(g.say("ada", "gamma", "say in its name"), "✅")
	g.end()
	g.write("bots/gamma.yaml", "discordToken: "+g.Token("gamma")+"\n")
	g.begin("")
	g.seen("gamma")
	asked := g.say("ada", "gamma", "slow 2200ms\nsay by itself") // it looks for what is untold every two seconds
	if m := g.message("answer", answers(asked)); m.Author.Username != "gamma" {
		t.Errorf("%s answered", m.Author.Username)
	}
	g.hasReaction(asked, "✅")
	if n := g.countOwn("gamma"); n != 2 {
		list, _ := g.Messages("gamma")
		t.Errorf("two answers, not %d: %v", n, list)
	}
}

// An answer that Discord took at the last of many tries is found again, however much others have said since the first.
func TestDiscordFindsItsAnswerAmongMany(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{TimeScale: 100_000}, map[string]string{}, func(g *guildT) {
		g.tune = func(o *connect.BotOptions) { o.Nonce, o.BackoffMax = time.Millisecond, 100*time.Millisecond }
	})
	g.seen(chat.DefaultAgent)
	goOn := g.pauseModel(0)
	asked := g.say("ada", "general", "say said once")
	g.hasReaction(asked, "⚙️")
	down := g.fault(discordsim.Fault{Kind: discordsim.FaultError, Route: "POST /channels/{channel}/messages", Status: 503})
	goOn()
	g.hasReaction(asked, "✅")
	g.fault(discordsim.Fault{Kind: discordsim.FaultMute})
	for i := range 130 {
		g.say("bob", "general", fmt.Sprintf("word %d", i))
	}
	g.fault(discordsim.Fault{Kind: discordsim.FaultHangup, Route: "POST /channels/{channel}/messages", After: true, Count: 1})
	g.Clear(down)
	g.settledRows()
	if n := g.countOwn("general"); n != 1 {
		t.Errorf("one answer, not %d", n)
	}
}
