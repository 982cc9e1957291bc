package discordtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	connect "chorus/internal/connector/host"
	"chorus/internal/sim/discordsim"
)

func TestDiscordLooking(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.commandShows("ada", "tasks", nil, "Nothing is running")
	g.commandShows("ada", "queue", nil, "Nobody is waiting here")
	g.commandShows("ada", "thread list", nil, "no conversations here yet")
	g.commandShows("ada", "why", nil, "There are no answers here yet")

	running := g.say("ada", "general", "say begun\nwait")
	g.hasReaction(running, "⚙️")
	status := g.message("status", works(running))
	next := g.reply("bob", status.ID, "say me too")
	g.hasReaction(next, "👀")
	g.commandShows("bob", "status", nil, "**chorus** answers here", "model `demo/script`", "profile `standard`", "window of the last conversation", "running, step 1", "1 more wait",
		"you spent nothing")
	g.commandShows("bob", "queue", nil, "place 1: <@"+g.User("bob").String()+">", "say me too")
	g.commandShows("bob", "thread list", nil, "`"+running.String()+"`", "running, step 1")
	g.commandShows("bob", "thread history", nil, "still on", "1. `the model` still on")
	g.commandShows("bob", "thread kill", map[string]any{"thread": running.String()}, "nly the person who asked")

	list := g.command("ada", "general", "tasks", nil)
	if !strings.Contains(list.Text(), "1. **say begun") || !strings.Contains(list.Text(), "place 1") || len(list.CustomIDs()) == 0 {
		t.Errorf("the tasks are %q with %v", list.Text(), list.Components)
	}
	g.click("ada", list.ID, "c1:halt:"+running.String()+"@chorus")
	g.message("word about the stop", func(m discordsim.Message) bool {
		return strings.HasPrefix(m.Text(), "Stopped: say begun") && m.ID == list.ID
	})
	g.hasReaction(running, "❌")
	g.hasReaction(next, "❌")
	g.commandShows("ada", "thread kill", map[string]any{"thread": running.String()[:12]}, "already ended")
	g.commandShows("ada", "thread kill", map[string]any{"thread": "12"}, "there is no session")
	g.commandShows("ada", "thread history", map[string]any{"thread": running.String()}, "stopped in", "cut off")
}

func TestDiscordWhy(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "permissions: open\n"})
	asked := g.say("ada", "general", "call write {\"path\":\"a.txt\",\"content\":\"x\"}\nend\ncall read {\"path\":\"a.txt\"}\nend\nusage in=60 read=40 out=7\nsay here it is")
	g.hasReaction(asked, "✅")
	first := g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "here it is" })
	g.hasReaction(g.say("bob", "general", "say another"), "✅")
	ada, want := "<@"+g.User("ada").String()+">", []string{"a.txt", "`write a.txt`", "was allowed", "It read: `a.txt`", "It changed: `a.txt`", "done in 3 steps", "demo/script",
		"profile `open`", "cached", "It cost nothing", "Its notes included: `date`", "by the rule *changing files in the workspace*"}
	g.commandShows("bob", "why", map[string]any{"message": first.ID.String()}, append(want, ada+" asked")...)
	link := fmt.Sprintf("https://discord.com/channels/%s/%s/%s", g.Guild(), g.Channel("general"), asked)
	g.commandShows("bob", "why", map[string]any{"message": link}, want...)
	g.commandShows("bob", "why", nil, "say another", "did not read or change any files")
	g.commandShows("bob", "why", map[string]any{"message": "nonsense"}, "not a message link or id")
	g.commandShows("bob", "why", map[string]any{"message": "12345"}, "not an agent's answer")
	if text := g.command("ada", "random", "why", map[string]any{"message": first.ID.String()}).Text(); !strings.Contains(text, "not an agent's answer") {
		t.Errorf("another channel is told %q", text)
	}
	i, err := g.Menu("bob", "chorus", "Why this answer?", first.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.shown("the menu", i).Text(); !strings.Contains(got, ada+" asked") {
		t.Errorf("the menu shows %q", got)
	}
	g.commandShows("bob", "thread history", map[string]any{"thread": asked.String()}, "`write a.txt` ok", "wanted 1 call", "5. `the model` answered")
}

func TestDiscordForks(t *testing.T) {
	t.Parallel()
	var stray discordsim.ID
	g := inOldGuild(t, discordsim.Options{}, map[string]string{}, func(g *guildT) { stray = g.say("ada", "random", "before anybody listened") })
	asked := g.say("ada", "general", "say one")
	first := g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "one" })
	g.hasReaction(asked, "✅")
	g.hasReaction(g.reply("ada", first.ID, "say two"), "✅")
	if err := g.WaitCommand(g.soon(), "chorus", "Fork from here"); err != nil {
		t.Fatal(err)
	}
	i, err := g.Menu("bob", "chorus", "Fork from here", first.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.shown("the fork", i).Text(); !strings.Contains(got, "Forked: reply") {
		t.Fatalf("the fork shows %q", got)
	}
	start := g.message("start of the fork", func(m discordsim.Message) bool { return strings.HasPrefix(m.Text(), "Forked from [here]") })
	if !strings.Contains(start.Text(), "2 messages") {
		t.Errorf("it begins with %q", start.Text())
	}
	g.hasReaction(g.reply("bob", start.ID, "say three"), "✅")
	row, err := g.app.Service.FindThread(t.Context(), "fork-"+i.ID.String())
	if err != nil || row.Owner.ID != g.User("bob").String() {
		t.Fatalf("the fork is %+v, %v", row, err)
	}
	if got := g.lines(row.ID); got != "say one|one|say three|three" {
		t.Errorf("the fork has %q", got)
	}
	if got := g.lines(g.thread(asked)); got != "say one|one|say two|two" {
		t.Errorf("the first has %q", got)
	}
	g.commandShows("ada", "thread fork", map[string]any{"thread": asked.String()}, "Forked: reply")
	g.message("start of the second fork", func(m discordsim.Message) bool {
		return strings.HasPrefix(m.Text(), "Forked from the conversation") && strings.Contains(m.Text(), "4 messages")
	})
	if i, err = g.Menu("bob", "chorus", "Fork from here", stray); err != nil {
		t.Fatal(err)
	}
	if got := g.shown("the menu on a stray message", i).Text(); !strings.Contains(got, "is not part of a conversation") {
		t.Errorf("on a message that is nobody's answer the menu shows %q", got)
	}
}

// Where a platform thread is a conversation, a fork is one too. The answer belongs to it, also where its message had shown a status before.
func TestDiscordForksIntoAThread(t *testing.T) {
	t.Parallel()
	for name, preview := range map[string]time.Duration{"nothing shown before": time.Hour, "a status shown before": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := inOldGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: thread\n"}, func(g *guildT) {
				g.tune = func(o *connect.BotOptions) { o.Preview = preview }
			})
			goOn := g.pauseModel(0)
			asked := g.say("ada", "general", "say one")
			if preview < time.Minute {
				g.message("status", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() != "" })
			}
			goOn()
			first := g.message("answer", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() == "one" })
			g.settledRows()
			i, err := g.Menu("bob", "chorus", "Fork from here", first.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got := g.shown("the fork", i).Text(); !strings.Contains(got, "continue in <#") {
				t.Fatalf("the fork shows %q", got)
			}
			start := g.message("start of the fork", func(m discordsim.Message) bool { return strings.HasPrefix(m.Text(), "Forked from [here]") })
			if start.ChannelID == asked || start.ChannelID == g.Channel("general") {
				t.Fatalf("it begins in %s", start.ChannelID)
			}
			if _, err := g.Say("bob", start.ChannelID.String(), "say two"); err != nil {
				t.Fatal(err)
			}
			g.message("answer in the fork", func(m discordsim.Message) bool { return m.ChannelID == start.ChannelID && m.Text() == "two" })
			thread := g.threadOf("general", start.ChannelID)
			if got := g.lines(thread); got != "say one|one|say two|two" {
				t.Errorf("the fork has %q", got)
			}
		})
	}
}
