package discordtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/sim/discordsim"
)

func rowOf(thread chat.ThreadID) journal.Thread {
	return journal.Thread{ID: thread, Agent: thread.Agent(), Place: thread.Place()}
}

var roomFiles = func() map[string]string {
	return map[string]string{"bots/chorus.yaml": "routing: room\ninnerName: Cora\n"}
}

func TestRoomKnowsWhatWasSaidBefore(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{}, roomFiles(), func(g *guildT) {
		g.say("ada", "general", "one")
		two := g.say("bob", "general", "two")
		g.say("ada", "general", ".between people")
		g.reply("ada", two, "three "+g.mention("chorus"))
	})
	g.ask("ada", "general", "chorus", "here")
	g.expect(g.room("general", "chorus"), "ada: one", "bob: two", "ada: <reply:@bob> three <@Cora>", "ada: <@Cora>\n!say here", "(own): here")
	if n := g.countOwn("general"); n != 1 {
		t.Errorf("nobody waits for an answer to what was said before:\n%s", g.transcript())
	}
	g.end() // and it is not read twice
	g.start()
	g.ask("bob", "general", "chorus", "again")
	imports := 0
	for _, ev := range g.events(g.room("general", "chorus")) {
		if _, ok := ev.Body.(chat.Imported); ok {
			imports++
		}
	}
	if imports != 1 {
		t.Errorf("the past was read %d times", imports)
	}
}

func TestRoomInAThreadSeesItsParent(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{}, roomFiles(), func(g *guildT) {
		g.say("ada", "general", "above")
		on := g.say("bob", "general", "the start")
		g.say("ada", "general", "said later in the channel")
		thread, err := g.OpenThread("bob", on, "aside")
		if err != nil {
			g.Fatal(err)
		}
		g.say("bob", thread.String(), "in the thread")
	})
	g.ask("ada", "aside", "chorus", "here")
	thread := g.threadOf("general", g.Channel("aside"))
	g.expect(thread, "ada: above", "bob: the start", "bob: in the thread", "ada: <@Cora>\n!say here", "(own): here")
}

func TestRoomAnswersSeveralAtOnce(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	goOn := g.pauseModel(0)
	g.say("ada", "general", g.mention("chorus")+"\n!say slowly spoken")
	g.has(g.room("general", "chorus"), chat.KindAsked, 1)
	var asked []discordsim.ID
	for i := range 8 { // more than may wait elsewhere
		asked = append(asked, g.say("bob", "general", fmt.Sprintf("%s %d\n!say together", g.mention("chorus"), i)))
	}
	g.has(g.room("general", "chorus"), chat.KindReceived, 9)
	goOn()
	last := g.message("one answer to all", func(m discordsim.Message) bool { return strings.HasSuffix(m.Text(), "together") })
	for _, id := range asked {
		g.hasReaction(id, "✅")
	}
	if !answers(asked[7])(last) {
		t.Errorf("it does not answer the newest: %+v", last.Reference)
	}
	if n := g.countOwn("general"); n != 2 {
		t.Errorf("two answers, not %d:\n%s", n, g.transcript())
	}
}

func TestRoomShowsNoStatus(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	id := g.say("ada", "general", g.mention("chorus")+"\n!chunk 2\n!slow 100ms\n!say for more than a second")
	g.hasReaction(id, "✅")
	list, err := g.Messages("general")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.Author.Bot && (m.Edited != nil || m.Text() != "for more than a second") {
			t.Errorf("others have heard %q", m.Text())
		}
	}
	if n := g.countOwn("general"); n != 1 {
		t.Errorf("one answer, not %d:\n%s", n, g.transcript())
	}
}

func TestRoomOfTwoAgentsFallsSilent(t *testing.T) {
	t.Parallel()
	talk := "routing: room\nreplyOnRandom: 1\nmaxBotReplyChainDepth: 3\ncontinuationModel: demo/guide\n"
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "echo"}}}, map[string]string{
		"bots/chorus.yaml": talk, "bots/echo.yaml": talk + "discordToken: ${TOKEN_ECHO}\n"})
	if err := g.WaitConnected(g.soon(), "echo"); err != nil {
		t.Fatal(err)
	}
	g.say("ada", "general", "hello")
	silent := func(bot string) bool {
		got, err := database.List[string](g.Context(), g.app.DB.DB, `SELECT decision FROM arrivals WHERE platform = 'discord' AND bot = ? ORDER BY at DESC LIMIT 50`, bot)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(got, func(d string) bool { return strings.Contains(d, "too many programs") })
	}
	g.until("one of them falls silent", func() bool { return silent("chorus") || silent("echo") })
	if n := g.countOwn("general"); n < 3 || n > 12 {
		t.Errorf("they said %d things:\n%s", n, g.transcript())
	}
	for _, who := range []string{"chorus", "echo"} {
		if got := g.modelSees(g.room("general", who)); len(got) < 2 {
			t.Errorf("%s has heard only %q", who, got)
		}
	}
	// A person is answered again at once.
	asked := g.say("ada", "general", g.mention("echo")+" are you there?")
	g.message("answer to a person", answers(asked))
}

func TestRoomHearsItsOwnHappenings(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	by := chat.Principal{Kind: "discord", ID: g.User("ada").String(), Name: "ada"}
	trigger := func(kind room.Kind, id, channel, text string) error {
		return g.app.Host.Trigger(t.Context(), connector.Trigger{Kind: kind, ID: id, Channel: g.Channel(channel).String(), Agent: "chorus", By: by, Text: text})
	}
	for _, id := range []string{"t1", "t1", "t2"} { // each once
		if err := trigger(room.Timer, id, "general", "!say it is time "+id); err != nil {
			t.Fatal(err)
		}
	}
	if err := trigger(room.Internal, "i1", "general", "!say nobody hears this"); err != nil {
		t.Fatal(err)
	}
	if err := trigger(room.SelfActivation, "s1", "general", "!say by myself"); err != nil {
		t.Fatal(err)
	}
	g.message("what it says by itself", func(m discordsim.Message) bool {
		return strings.HasSuffix(m.Text(), "by myself") && m.Reference == nil
	})
	g.ask("ada", "general", "chorus", "enough")
	list, err := g.Messages("general")
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, m := range list {
		if m.Author.Bot {
			said += m.Text() + "\n"
		}
	}
	for words, n := range map[string]int{"time t1": 1, "time t2": 1, "nobody hears": 0} {
		if got := strings.Count(said, words); got != n {
			t.Errorf("%q is said %d times, not %d:\n%s", words, got, n, said)
		}
	}
	if err := trigger(room.Said, "x", "general", "no"); err == nil {
		t.Error("a message is not something of our own")
	}
	if err := g.app.Host.Trigger(t.Context(), connector.Trigger{Kind: room.Timer, ID: "x", Channel: g.Channel("general").String(), Agent: "chorus-2"}); err == nil || strings.Contains(err.Error(), "no connected bot") {
		t.Errorf("the first bot speaks for all that have none, and the channel is no room of theirs: %v", err)
	}
}

func TestRoomLongChains(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "tick"}, {Name: "tock"}}}, roomFiles())
	id := g.say("ada", "general", "begin")
	for i := range 50 { // programs, one answering the other
		id = g.reply([]string{"tick", "tock"}[i%2], id, fmt.Sprintf("level %d", i))
	}
	deep := g.reply("tick", id, g.mention("chorus")+" and you?")
	g.hasReaction(deep, "🔁")
	id = g.say("bob", "general", "people may go on")
	for i := range 50 {
		id = g.reply([]string{"ada", "bob"}[i%2], id, fmt.Sprintf("people %d", i))
	}
	asked := g.reply("ada", id, g.mention("chorus")+"\n!say of course")
	g.message("answer to people", func(m discordsim.Message) bool { return m.Text() == "of course" && answers(asked)(m) })
	// Few enough programs are answered.
	begin := g.say("ada", "general", "again")
	few := g.reply("tock", begin, g.mention("chorus")+"\n!say a short one")
	g.message("answer to a program", func(m discordsim.Message) bool { return m.Text() == "a short one" && answers(few)(m) })
	// A reply alone is no reason to answer a program.
	last := g.message("that answer", func(m discordsim.Message) bool { return m.Text() == "a short one" })
	before := g.countOwn("general")
	g.reply("tock", last.ID, "and what is this?")
	g.ask("bob", "general", "chorus", "the end")
	if n := g.countOwn("general"); n != before+2 { // tock's own and the last answer
		t.Errorf("a program was answered for a reply:\n%s", g.transcript())
	}
}

// TestRoomGoesOn: an event that cannot be taken costs only itself.
func TestRoomGoesOn(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	g.ask("ada", "general", "chorus", "well")
	// Of a happening in a channel that is not there nothing can be found out.
	if err := g.app.Host.Trigger(t.Context(), connector.Trigger{Kind: room.Timer, ID: "lost", Channel: "77", Agent: "chorus"}); err == nil {
		t.Fatal("it reached a channel that is not there")
	}
	g.ask("ada", "general", "chorus", "still well")
}

// TestRoomQuestionOfSeveral: whoever asked for a command allows it, whoever else waits.
func TestRoomQuestionOfSeveral(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	goOn := g.pauseModel(0)
	g.say("ada", "general", g.mention("chorus")+"\n!say slowly spoken")
	g.has(g.room("general", "chorus"), chat.KindAsked, 1)
	g.say("bob", "general", g.mention("chorus")+"\n!say first")
	asked := g.say("ada", "general", g.mention("chorus")+"\n!call bash {\"command\":\"echo one-two > proof.txt\"}\n!end\n!say it is done")
	last := g.say("bob", "general", g.mention("chorus")+"\n!say last")
	g.has(g.room("general", "chorus"), chat.KindReceived, 4)
	goOn()
	card := g.message("card", func(m discordsim.Message) bool {
		return strings.Contains(m.Text(), "May I ") && len(m.CustomIDs()) > 0
	})
	g.click("ada", card.ID, "c1:yes:"+approvalOf(t, card))
	g.message("answer", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "it is done") })
	g.hasReaction(asked, "✅")
	g.hasReaction(last, "✅")
}
