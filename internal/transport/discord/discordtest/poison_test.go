package discordtest

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	connect "chorus/internal/connector/host"
	"chorus/internal/journal"
	"chorus/internal/sim/discordsim"
)

// soonGivenUp lets hours of trying pass in moments.
func soonGivenUp(g *guildT) {
	g.tune = func(o *connect.BotOptions) {
		o.FirstBackoff, o.BackoffMax, o.Nonce = 5*time.Millisecond, 5*time.Millisecond, 20*time.Millisecond
		o.GiveUp, o.GiveUpUnsure, o.CallWait = 50*time.Millisecond, time.Hour, 100*time.Millisecond
	}
}

// cursed is a Discord that fails on whatever holds a word.
func cursed(word string) discordsim.Fault {
	return discordsim.Fault{Kind: discordsim.FaultError, Route: "POST /channels/{channel}/messages", Body: word}
}

// A message on which Discord fails whenever it is sent holds up its channel only for a while: whoever asked is told, the
// next answers follow in their order, and all that is so after a restart too.
func TestDiscordFailsOnOneMessageForEver(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"in one life": false, "across a restart": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := inOldGuild(t, discordsim.Options{}, map[string]string{}, soonGivenUp)
			g.fault(cursed("xyzzy"))
			asked := g.say("ada", "general", "say a word of power: xyzzy")
			g.hasReaction(asked, "✅")
			if restart {
				g.end()
				g.start()
			}
			behind := []discordsim.ID{g.reply("ada", asked, "say one"), 0}
			g.hasReaction(behind[0], "✅") // it is ready, and waits
			behind[1] = g.reply("ada", asked, "say two")
			// Where others are answered it is this message's own fault, and that of the private word with its text.
			g.until("given up", func() bool {
				g.message("answer elsewhere", answers(g.say("bob", "random", "say here")))
				list, err := g.app.DB.FailedSince(t.Context(), "discord", chat.DefaultAgent, time.Time{})
				return err == nil && len(list) == 2
			})
			g.bears(asked, "🔇")
			g.message("private word", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "Discord kept failing") })
			g.settledRows()
			for _, id := range behind {
				g.message("answer behind it", answers(id))
			}
			if list, err := g.Messages("general"); err != nil || g.countOwn("general") != 2 || list[len(list)-2].Text() != "one" || list[len(list)-1].Text() != "two" {
				t.Errorf("two answers in their order, not (%v)\n%s", err, g.transcript())
			}
		})
	}
}

// When Discord answers nothing, nothing is given up, however soon we give up.
func TestDiscordFailsOnEverything(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{}, map[string]string{}, func(g *guildT) {
		soonGivenUp(g)
		tune := g.tune
		g.tune = func(o *connect.BotOptions) { tune(o); o.GiveUp, o.GiveUpUnsure = time.Millisecond, time.Millisecond }
	})
	goOn := g.pauseModel(0)
	asked := g.say("ada", "general", "say said in the end")
	g.hasReaction(asked, "⚙️")
	g.fault(discordsim.Fault{Kind: discordsim.FaultError, Status: 503})
	goOn()
	row := func() (tries int) {
		rows, err := g.app.DB.OpenRows(t.Context(), journal.Lane{Platform: "discord", Bot: chat.DefaultAgent, Channel: g.Channel("general").String()}, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range rows {
			tries = max(tries, o.Attempts)
		}
		return tries
	}
	g.until("forty tries", func() bool { return row() >= 40 })
	g.Clear(0)
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "said in the end" })
	g.hasReaction(asked, "✅")
	g.settledRows()
	if n := g.countOwn("general"); n != 1 {
		t.Errorf("one answer, not %d:\n%s", n, g.transcript())
	}
}

// Of a long answer whose later part Discord does not take, the rest is told in private, in order and once, whoever looks again.
func TestDiscordRefusesALaterPart(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{}, map[string]string{}, func(g *guildT) {
		g.tune = func(o *connect.BotOptions) { o.Preview = time.Hour } // only the answer itself is sent
	})
	at := g.private("ada", "chorus")
	refused := cursed("beta beta")
	refused.Status, refused.Count = 400, 1
	g.fault(refused)
	var script []string
	for _, word := range []string{"alpha", "beta", "gamma"} {
		script = append(script, "!say "+strings.TrimSpace(strings.Repeat(word+" ", 290)))
	}
	asked := g.post("ada", "general", discordsim.Said{Text: "play this", Files: map[string][]byte{"script.txt": []byte(strings.Join(script, "\n"))}})
	g.message("beginning", answers(asked))
	for range 2 {
		g.bears(asked, "🔇")
		g.message("last of it", func(m discordsim.Message) bool { return m.GuildID == 0 && strings.HasSuffix(m.Text(), "gamma") })
		g.settledRows()
		list, err := g.Messages(at)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, m := range list {
			told = append(told, m.Text())
		}
		if len(told) != 3 || !strings.Contains(told[0], "the rest of what I wanted to say") || !strings.HasPrefix(told[1], "beta") || !strings.HasPrefix(told[2], "gamma") {
			t.Errorf("ada is told %q", told)
		}
		if n := g.countOwn("general"); n != 1 {
			t.Errorf("%d parts:\n%s", n, g.transcript())
		}
		g.end()
		g.start()
	}
}
