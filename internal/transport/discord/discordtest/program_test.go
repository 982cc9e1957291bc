package discordtest

import (
	"fmt"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
)

func TestDiscordReplyRouting(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.say("ada", "general", "say first answer")
	first := g.message("answer", answers(asked))
	if first.Text() != "first answer" {
		t.Fatalf("the answer is %q", first.Text())
	}
	g.hasReaction(asked, "✅")
	again := g.reply("ada", first.ID, "say second answer")
	g.message("second answer", func(m discordsim.Message) bool { return answers(again)(m) && m.Text() == "second answer" })
	other := g.say("bob", "general", "say another thread")
	g.message("third answer", answers(other))
	g.hasReaction(other, "✅")

	rows, _, err := g.app.DB.BehindSince(t.Context(), "discord/none", "discord", 0, nil)
	if err != nil || len(rows) != 2 {
		t.Fatalf("a reply goes on with its thread, so there are two: %v, %v", rows, err)
	}
	row, err := g.app.Service.FindThread(t.Context(), string(g.threadOf("general", asked)))
	if err != nil {
		t.Fatal(err)
	}
	if row.Owner.String() != "discord:"+g.User("ada").String() || row.Owner.Name != "ada" {
		t.Errorf("it belongs to %+v", row.Owner)
	}
	if n := g.countOwn("general"); n != 3 {
		t.Errorf("three answers, not %d:\n%s", n, g.transcript())
	}
}

func TestDiscordSurvivesTheConnection(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.hasReaction(g.say("ada", "general", "say one"), "✅")
	for _, fault := range []discordsim.Fault{
		{Kind: discordsim.FaultDrop}, {Kind: discordsim.FaultReconnect}, {Kind: discordsim.FaultInvalidate}, {Kind: discordsim.FaultDuplicate, Count: 3},
	} {
		g.fault(fault)
		id := g.say("ada", "general", "say after "+fault.Kind)
		g.message("answer after "+fault.Kind, answers(id))
		g.hasReaction(id, "✅")
	}
	if n := g.countOwn("general"); n != 5 {
		t.Errorf("five answers, not %d:\n%s", n, g.transcript())
	}
}

func TestDiscordAnswersOnceAcrossRestarts(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	goOn := g.pauseModel(5)
	running := g.say("ada", "general", "chunk 3\nsay a long answer that is still being written when the program ends\nsay and it goes on")
	g.message("preview", func(m discordsim.Message) bool { return works(running)(m) && strings.Contains(m.Text(), "a long") })
	g.end()
	goOn()
	missed := g.say("bob", "general", "say said while nobody listened")
	g.start()
	g.message("answer to what was missed", func(m discordsim.Message) bool {
		return answers(missed)(m) && m.Text() == "said while nobody listened"
	})
	g.hasReaction(missed, "✅")
	g.hasReaction(running, "✅")
	g.message("whole answer", func(m discordsim.Message) bool {
		return answers(running)(m) && strings.HasSuffix(m.Text(), "and it goes on") && !strings.Contains(m.Text(), "step")
	})
	if n := g.countOwn("general"); n != 2 {
		t.Errorf("two answers, not %d:\n%s", n, g.transcript())
	}
}

func TestDiscordApprovalByButton(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	script := "call bash {\"command\":\"echo one-two > proof.txt\"}\nend\nsay it is done"
	asked := g.say("ada", "general", script)
	card := g.message("card", func(m discordsim.Message) bool { return isCard(m) && len(m.CustomIDs()) > 0 })
	g.end() // the question outlives the process that asked it
	g.start()
	g.click("ada", card.ID, "c1:yes:"+approvalOf(t, card))
	decided := "**Allowed** by <@" + g.User("ada").String() + ">"
	g.message("decision on the card", func(m discordsim.Message) bool {
		return m.ID == card.ID && len(m.CustomIDs()) == 0 && strings.Contains(m.Text(), decided)
	})
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "it is done" })
	g.hasReaction(asked, "✅")

	if _, err := g.Click("ada", card.ID, "c1:no:"+approvalOf(t, card)); err == nil {
		t.Error("what is decided can still be clicked")
	}
}

// approvalOf reads the question's id off its card.
func approvalOf(t *testing.T, m discordsim.Message) string {
	t.Helper()
	text := fmt.Sprint(m.CustomIDs())
	_, rest, ok := strings.Cut(text, "c1:yes:")
	if !ok {
		t.Fatalf("no button on %v", text)
	}
	return rest[:26]
}

func TestDiscordCrossStops(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.say("ada", "general", "say begun\nwait")
	g.hasReaction(asked, "⚙️")
	if err := g.React("bob", asked, "❌"); err != nil {
		t.Fatal(err)
	}
	if err := g.React("ada", asked, "❌"); err != nil {
		t.Fatal(err)
	}
	g.message("word about the end", func(m discordsim.Message) bool { return answers(asked)(m) && strings.Contains(m.Text(), "topped") })
	for _, ev := range g.events(g.threadOf("general", asked)) {
		if ev.Body.Kind() == chat.KindAbortAsked && ev.Who != "discord:"+g.User("ada").String() {
			t.Errorf("it was stopped by %s", ev.Who)
		}
	}
}

func TestDiscordCommands(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.hasReaction(g.say("ada", "general", "say hello"), "✅")
	for _, c := range []struct {
		command string
		options map[string]any
		want    string
	}{
		{"status", nil, "**" + chat.DefaultAgent + "** answers here"},
		{"agent list", nil, "- **" + chat.DefaultAgent + "**"},
		{"cost", nil, "Spent on this server since"},
		{"stop", nil, "Nothing is running"},
		{"steer", map[string]any{"message": "hurry"}, "Nothing is running"},
		{"why", nil, "demo/script"},
		{"bob: cost", nil, "You spent"},
	} {
		person := "ada" // who owns the server; bob is anybody
		if rest, ok := strings.CutPrefix(c.command, "bob: "); ok {
			person, c.command = "bob", rest
		}
		g.commandShows(person, c.command, c.options, c.want)
	}
}

func TestDiscordThreadRouting(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: thread\n"})
	asked := g.say("ada", "general", "say into the thread")
	g.message("answer in the thread", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() == "into the thread" })
	g.hasReaction(asked, "✅")
	if _, err := g.Say("bob", asked.String(), "say and on in it"); err != nil {
		t.Fatal(err)
	}
	g.message("second answer in the thread", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() == "and on in it" })
	rows, _, err := g.app.DB.BehindSince(t.Context(), "discord/none", "discord", 0, nil)
	if err != nil || len(rows) != 1 {
		t.Fatalf("a platform thread is one thread: %v, %v", rows, err)
	}
	if n := g.countOwn("general"); n != 0 {
		t.Errorf("nothing is said in the channel itself:\n%s", g.transcript())
	}
}

func TestDiscordRoomRouting(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: room\n"})
	g.say("bob", "general", "only between us")
	mention := g.mention("chorus")
	asked := g.say("ada", "general", mention+" hello\n!say heard you")
	g.message("answer", func(m discordsim.Message) bool { return m.Text() == "heard you" })
	g.hasReaction(asked, "✅")
	order := g.say("ada", "general", "m continue")
	if _, err := g.WaitEvent(g.soon(), func(h discordsim.Happening) bool {
		return h.Name == "MESSAGE_DELETE" && strings.Contains(string(h.Data), order.String())
	}); err != nil {
		t.Fatalf("the command was not taken away: %v", err)
	}
	thread := g.room("general", "chorus")
	g.has(thread, chat.KindRunEnded, 2)
	events, err := g.app.DB.Events(t.Context(), thread, 0, 3)
	if err != nil || len(events) == 0 {
		t.Fatalf("the room has no events: %v", err)
	}
	heard, ok := events[0].Body.(chat.Received)
	if !ok || heard.Prompt || heard.From.Name != "bob" {
		t.Errorf("the room began with %+v", events[0].Body)
	}
}

func TestDiscordChanges(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.say("ada", "general", "say before")
	g.hasReaction(asked, "✅")
	if err := g.Edit("ada", asked, "say after"); err != nil {
		t.Fatal(err)
	}
	if err := g.Delete("ada", asked); err != nil {
		t.Fatal(err)
	}
	thread := g.threadOf("general", asked)
	var kinds []chat.Kind
	for item, err := range g.app.Running().Watch(g.soon(), thread, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event != nil {
			kinds = append(kinds, item.Event.Body.Kind())
		}
		if n := len(kinds); n > 0 && kinds[n-1] == chat.KindDeleted {
			break
		}
	}
	if n := len(kinds); n < 2 || kinds[n-2] != chat.KindEdited {
		t.Errorf("an edit and a deletion are events: %v", kinds)
	}
}

func TestDiscordNoticesADeafConnection(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.hasReaction(g.say("ada", "general", "say one"), "✅")
	g.fault(discordsim.Fault{Kind: discordsim.FaultMute, Event: "MESSAGE_CREATE"})
	unheard := g.say("ada", "general", "say found all the same")
	g.message("answer", func(m discordsim.Message) bool { return answers(unheard)(m) && m.Text() == "found all the same" })
	g.hasReaction(unheard, "✅")
	if n := g.countOwn("general"); n != 2 {
		t.Errorf("two answers, not %d:\n%s", n, g.transcript())
	}
}

func TestDiscordMissingIntent(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus", Intents: &[]string{}}}}, map[string]string{})
	select {
	case text := <-g.warned:
		if !strings.Contains(text, "Message Content Intent") {
			t.Errorf("people are told %q", text)
		}
	case <-g.soon().Done():
		t.Fatal("nobody was told")
	}
}

// Whatever goes wrong on the way, each message is answered, and once.
func TestDiscordAnswersOnceInAStorm(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.hasReaction(g.say("ada", "general", "say calm"), "✅")
	for _, f := range []discordsim.Fault{
		{Kind: discordsim.FaultError, Route: "POST /channels", Rate: 0.15, Seed: 1, After: true},
		{Kind: discordsim.FaultError, Route: "PATCH /channels", Rate: 0.15, Seed: 2},
		{Kind: discordsim.FaultHangup, Route: "POST /channels", Rate: 0.1, Seed: 3, After: true},
		{Kind: discordsim.FaultLimit, Rate: 0.1, Seed: 4, Millis: 100},
		{Kind: discordsim.FaultLose, Event: "MESSAGE_CREATE", Rate: 0.15, Seed: 5},
		{Kind: discordsim.FaultDuplicate, Rate: 0.2, Seed: 6},
	} {
		g.fault(f)
	}
	const many = 30
	var asked []discordsim.ID
	for i := range many {
		asked = append(asked, g.say([]string{"ada", "bob"}[i%2], []string{"general", "random"}[i%3%2], fmt.Sprintf("say answer %d", i)))
		if i%7 == 3 {
			g.fault(discordsim.Fault{Kind: discordsim.FaultDrop})
		}
		if i == 15 {
			g.end()
			g.start()
		}
	}
	for i, id := range asked {
		g.message(fmt.Sprintf("answer %d", i), func(m discordsim.Message) bool { return answers(id)(m) && m.Text() == fmt.Sprintf("answer %d", i) })
	}
	g.Clear(0)
	for _, id := range asked {
		g.hasReaction(id, "✅")
	}
	if n := g.countOwn("general") + g.countOwn("random"); n != many+1 {
		t.Errorf("%d answers to %d messages:\n%s", n, many+1, g.transcript())
	}
}

// Whoever takes their question back while it is answered, is answered all the same.
func TestDiscordAnswersATakenBackQuestion(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.fault(discordsim.Fault{Kind: discordsim.FaultLose, Event: "MESSAGE_DELETE"})
	goOn := g.pauseModel(0)
	asked := g.say("ada", "general", "say too late to take back")
	g.hasReaction(asked, "⚙️")
	if err := g.Delete("ada", asked); err != nil {
		t.Fatal(err)
	}
	goOn()
	g.message("answer", func(m discordsim.Message) bool { return m.Text() == "too late to take back" })
}
