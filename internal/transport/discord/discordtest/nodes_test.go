package discordtest

import (
	"testing"

	"chorus/internal/app"
	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store/storetest"
)

// node starts a Chorus that shares its database with others.
func (g *guildT) node(name string) {
	g.Helper()
	a, err := app.Open(g.Context(), app.Options{Home: g.home, Nodes: true, Env: apptest.Env("DISCORD_API_URL", g.API(), "DISCORD_TOKEN", g.Token(chat.DefaultAgent), "CHORUS_NODE", name, "USER", "tester"), Warn: g.warn})
	if err != nil {
		g.Fatal(err)
	}
	g.app = a
	a.Host.Tune, a.Models.Through = g.tune, g.pause.through
	a.Service.Handler()
	if g.stop, err = a.Host.Connect(); err != nil {
		g.Fatal(err)
	}
}

// Two nodes have the same bot: one of them is connected and answers, once; when it stops, the other one goes on, and hears what was said
// in between.
func TestDiscordBotMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	g := &guildT{T: t, home: storetest.FreshHome(t), warned: make(chan string, 16)}
	g.Sim = discordsim.StartT(t, discordsim.Options{NoRateLimits: true, Bots: []discordsim.BotSpec{{Name: chat.DefaultAgent}}})
	g.write("shared.yaml", "continuationModel: demo/script\nsandbox: host\nanswer: all\n")
	g.node("berlin")
	g.seen(chat.DefaultAgent)
	g.hasReaction(g.say("ada", "general", "say one"), "✅")
	berlin, stop := g.app, g.stop
	g.node("oslo")
	t.Cleanup(g.end)
	for _, words := range []string{"say two", "say three"} {
		g.hasReaction(g.say("ada", "general", words), "✅")
	}
	stop()
	asked := g.say("ada", "general", "say four") // while nobody, or the other one, is connected
	if err := berlin.Close(); err != nil {
		t.Error(err)
	}
	g.message("answer", answers(asked))
	g.hasReaction(asked, "✅")
	g.settledRows() // on a slow machine there was a word about the work, which goes
	if n := g.countOwn("general"); n != 4 {
		t.Errorf("four answers, not %d:\n%s", n, g.transcript())
	}
}
