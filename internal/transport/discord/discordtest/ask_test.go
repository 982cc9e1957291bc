package discordtest

import (
	"net/http"
	"strings"
	"testing"

	"chorus/internal/connector/commands"
	"chorus/internal/platform"
	"chorus/internal/sim/discordsim"
)

// slashAsk gives /ask and waits for the message that it becomes.
func (g *guildT) slashAsk(person, channel string, options map[string]any) discordsim.Message {
	g.Helper()
	m := g.command(person, channel, "ask", options)
	if m.Text() != options["prompt"] && !strings.HasPrefix(m.Text(), options["prompt"].(string)+"\n[") {
		g.Fatalf("the question is shown as %q", m.Text())
	}
	return m
}

// There was no way to ask in a channel that is not the bot's without mentioning it.
func TestAskIsAMessageOfWhoeverAsks(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "answer: bound\n"})
	if g.say("ada", "general", "say nobody is asked"); g.app == nil {
		t.Fatal("no bot")
	}
	asked := g.slashAsk("ada", "general", map[string]any{"prompt": "say here I am"})
	answer := g.message("answer", answers(asked.ID))
	g.hasReaction(asked.ID, "✅")
	if answer.Text() != "here I am" {
		t.Errorf("the answer is %q", answer.Text())
	}
	thread := g.threadOf("general", asked.ID)
	row, err := g.app.DB.Thread(t.Context(), thread)
	if err != nil || row.Owner.String() != "discord:"+g.User("ada").String() {
		t.Errorf("it belongs to %+v, %v", row.Owner, err)
	}
	again := g.reply("ada", answer.ID, "say and again")
	g.message("second answer", answers(again))
	if g.thread(asked.ID) != thread || g.countOwn("general") != 3 {
		t.Errorf("one question, two answers:\n%s", g.transcript())
	}

	value, err := g.Upload("general", "note.txt", []byte("the door is red"))
	if err != nil {
		t.Fatal(err)
	}
	withFile := g.slashAsk("bob", "general", map[string]any{"prompt": "say read", "file": value})
	g.hasReaction(withFile.ID, "✅")
	if sees := strings.Join(g.modelSees(g.thread(withFile.ID)), "\n"); !strings.Contains(sees, "note.txt") || !strings.Contains(sees, "say read") || strings.Contains(sees, "](http") {
		t.Errorf("the model sees %s", sees)
	}
	if i, err := g.Slash("ada", "general", "chorus", "ask", map[string]any{"prompt": strings.Repeat("x", 1501)}); err == nil {
		t.Errorf("Discord takes what is longer than the option: %+v", i)
	}
}

// In a room the question is part of the conversation, and where Chorus works in threads it opens one.
func TestAskGoesTheWayOfItsChannel(t *testing.T) {
	t.Parallel()
	for routing, check := range map[string]func(g *guildT, asked discordsim.Message){
		"room": func(g *guildT, asked discordsim.Message) {
			g.hasReaction(asked.ID, "✅")
			g.expect(g.room("general", "chorus"), "ada: !say noted", "(own): noted")
		},
		"thread": func(g *guildT, asked discordsim.Message) {
			g.hasReaction(asked.ID, "✅")
			if list, err := g.Messages(asked.ID.String()); err != nil || len(list) == 0 {
				g.Errorf("no thread was opened on the question: %v", err)
			}
		},
	} {
		t.Run(routing, func(t *testing.T) {
			t.Parallel()
			g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "routing: " + routing + "\nanswer: bound\n"})
			check(g, g.slashAsk("ada", "general", map[string]any{"prompt": "!say noted"}))
		})
	}
}

// What was acknowledged is answered once, also when the program ends right behind it.
func TestAskSurvivesARestart(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "answer: bound\n"})
	g.hasReaction(g.say("ada", "general", g.mention("chorus")+" say ready"), "✅") // the channel is read from here on
	goOn := g.pauseModel(1)
	asked := g.slashAsk("ada", "general", map[string]any{"prompt": "say survived"})
	g.end()
	goOn()
	g.start()
	g.hasReaction(asked.ID, "✅")
	g.message("answer", func(m discordsim.Message) bool { return answers(asked.ID)(m) && m.Text() == "survived" })
	if n := g.countOwn("general"); n != 3 {
		t.Errorf("a question and two answers, not %d:\n%s", n, g.transcript())
	}
	// The same for one that the process before never took: only its message is there.
	g.end()
	i, err := g.Slash("ada", "general", "chorus", "ask", map[string]any{"prompt": "say nobody heard that"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Post(g.API()+"/interactions/"+i.ID.String()+"/sim-interaction-"+i.ID.String()+"/callback", "application/json", strings.NewReader(`{"type":4,"data":{"content":"say nobody heard that"}}`))
	if err != nil || res.StatusCode >= 300 {
		t.Fatal(err, res)
	}
	res.Body.Close()
	missed := g.answered("/ask", i).Message
	g.start()
	g.hasReaction(missed, "✅")
	g.message("answer to it", func(m discordsim.Message) bool { return answers(missed)(m) && m.Text() == "nobody heard that" })
}

// Whoever is not heard, and wherever nothing is read, is told so; nothing is said in the channel.
func TestAskIsRefusedInPrivate(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "news"}}},
		map[string]string{"shared.yaml": "answer: bound\nblocked: [bob]\nchannels:\n  deny: [news]\n"})
	if got := g.command("bob", "general", "ask", map[string]any{"prompt": "say x"}); got.Text() != "You are not allowed to ask me anything." || got.Flags&discordsim.FlagEphemeral == 0 {
		t.Errorf("%+v", got)
	}
	if got := g.command("ada", "news", "ask", map[string]any{"prompt": "say x"}).Text(); !strings.Contains(got, "I do not answer in this channel") {
		t.Error(got)
	}
	g.commandShows("ada", "ask", map[string]any{"prompt": "  "}, "The prompt is empty")
}

// Nothing said what the bot can do and how to reach it.
func TestHelpSaysHowToReachUs(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "chorus"}}}, map[string]string{"shared.yaml": "answer: bound\n"})
	text := g.commandShows("ada", "help", nil, "when you mention me (<@"+g.User("chorus").String()+">)", "**talk**", "**More topics**: agent, settings, thread, context", "`/ask prompt:What changed since yesterday?`", "`/models`", "`/status`")
	if len(text) > 1900 {
		t.Errorf("it does not fit into a message: %d", len(text))
	}
	// Examples fit the channel, and whoever asks learns what is done on their word.
	for channel, want := range map[string][]string{
		"general":       {"<@" + g.User("chorus").String() + "> *list the files in your workspace*", "For you, `standard`: reads and writes its workspace", "The person who asked", "`/agent`: for people who may manage channels.", "`/settings`: for people who may manage the server."},
		"chorus":        {"this is my channel", "\n- *list the files in your workspace*"},
		g.direct("ada"): {"you do not need to mention me", "*explain this error to me*"},
	} {
		got := g.command("ada", channel, "help", nil).Text()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("in %s help says %q without %q", channel, got, w)
			}
		}
	}
	g.commandShows("ada", "help", map[string]any{"topic": "Settings"}, "`/settings model`", "for people who may manage the server", "`/settings model model:")
	g.commandShows("ada", "help", map[string]any{"topic": "nothing"}, "There is no topic", "talk, look")
}

// Each topic fits into a message, and every example names options that its command has.
func TestHelpExamplesAreTrue(t *testing.T) {
	t.Parallel()
	for _, c := range (&commands.Set{}).List() {
		checkExample(t, c, "/"+c.Name)
	}
}

func checkExample(t *testing.T, c platform.Command, path string) {
	for _, sub := range c.Sub {
		checkExample(t, sub, path+" "+sub.Name)
	}
	given := map[string]bool{}
	for _, part := range optionPart.FindAllStringSubmatch(c.Example, -1) {
		given[part[1]] = true
	}
	for _, o := range c.Options {
		if o.Required && !given[o.Name] {
			t.Errorf("the example of %s lacks %s", path, o.Name)
		}
		delete(given, o.Name)
	}
	if len(given) > 0 || len(c.Options) > 0 && c.Example == "" {
		t.Errorf("the example of %s is %q, with %v", path, c.Example, given)
	}
}
