package discordtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"chorus/internal/app"
	connect "chorus/internal/connector/host"
	"chorus/internal/transport/discord/account"

	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store/storetest"
)

// twoBots is a guild with two bots of ours, each with a file and a token of its own.
func twoBots(t *testing.T, only string) *guildT {
	t.Helper()
	g := &guildT{T: t, home: storetest.FreshHome(t), warned: make(chan string, 16)}
	g.Sim = discordsim.StartT(t, discordsim.Options{NoRateLimits: true, Bots: []discordsim.BotSpec{{Name: "alpha"}, {Name: "beta"}}})
	g.write("shared.yaml", "continuationModel: demo/script\nsandbox: host\nanswer: all\n")
	g.write("bots/alpha.yaml", "discordToken: "+g.Token("alpha")+"\n")
	g.write("bots/beta.yaml", "discordToken: "+g.Token("beta")+"\n")
	g.begin(only)
	t.Cleanup(g.end)
	return g
}

// begin connects the bots of a home that have files, or only one of them.
func (g *guildT) begin(only string) {
	g.Helper()
	a, err := app.Open(g.Context(), app.Options{Home: g.home, Env: apptest.Env("DISCORD_API_URL", g.API(), "BOT_NAME", only, "USER", "tester"), Warn: g.warn})
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

// Several bots live in one process, each with its own token, and each answers what is for it.
func TestDiscordTwoBotsInOneProcess(t *testing.T) {
	t.Parallel()
	g := twoBots(t, "")
	for _, bot := range []string{"alpha", "beta"} {
		g.seen(bot)
	}
	for i, bot := range []string{"beta", "alpha", "beta"} {
		asked := g.say("ada", "general", fmt.Sprintf("<@%s>\n!say from %s %d", g.User(bot), bot, i))
		m := g.message("answer of "+bot, answers(asked))
		if m.Author.Username != bot {
			t.Errorf("%s answered for %s", m.Author.Username, bot)
		}
		g.hasReaction(asked, "✅")
	}
	if n := g.countOwn("general"); n != 3 {
		t.Errorf("three answers, not %d:\n%s", n, g.transcript())
	}
}

// BOT_NAME leaves one of them; without a token for it the error says what to do.
func TestDiscordBotNameSelects(t *testing.T) {
	t.Parallel()
	g := twoBots(t, "beta")
	g.seen("beta")
	asked := g.say("ada", "general", "say only one of us")
	if m := g.message("answer", answers(asked)); m.Author.Username != "beta" {
		t.Errorf("%s answered", m.Author.Username)
	}
	g.hasReaction(asked, "✅")
	bots, err := g.app.Host.Platforms[0].Accounts()
	bots = slices.DeleteFunc(bots, func(b connect.Account) bool { return b.Elsewhere })
	if err != nil || len(bots) != 1 || bots[0].Name != "beta" {
		t.Errorf("connected: %v, %v", len(bots), err)
	}
	gamma := &account.Source{Env: apptest.Env("BOT_NAME", "gamma"), Settings: g.app.Settings}
	if _, err := gamma.Accounts(); err == nil || !strings.Contains(err.Error(), "bots/gamma.yaml") {
		t.Errorf("a bot without a token: %v", err)
	}
}

// Where Discord wants several connections, each has its guilds, and what is said is answered once.
func TestDiscordShards(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Shards: 3}, map[string]string{})
	g.seen(chat.DefaultAgent)
	for i := range 3 {
		asked := g.say("ada", "general", fmt.Sprintf("say answer %d", i))
		g.message("answer", answers(asked))
		g.hasReaction(asked, "✅")
		g.fault(discordsim.Fault{Kind: []string{discordsim.FaultDrop, discordsim.FaultInvalidate, discordsim.FaultReconnect}[i]})
	}
	g.hasReaction(g.say("ada", "random", "say after all"), "✅")
	if n := g.countOwn("general"); n != 3 {
		t.Errorf("three answers, not %d:\n%s", n, g.transcript())
	}
}
