package discordtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/app"
	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	connect "chorus/internal/connector/host"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store/storetest"
)

// A card could only be refused without a reason, unless somebody knew that a reply is one.
func TestCardRefusedWithAReason(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked, card := g.asks("ada", "echo one > one.txt")
	if card.Flags&discordsim.FlagComponentsV2 == 0 || card.Content != "" {
		t.Errorf("the card is no panel: %+v", card)
	}
	id := approvalOf(t, card)
	i, err := g.Click("ada", card.ID, "c1:because:"+id)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.answered("the click", i); !strings.Contains(string(got.Modal), "Deny with a reason") {
		t.Fatalf("no form is opened: %+v", got)
	}
	if _, err := g.Submit("ada", "c1:because:"+id, map[string]string{"text": ""}); err == nil {
		t.Error("nothing is taken for a reason")
	}
	i, err = g.Submit("ada", "c1:because:"+id, map[string]string{"text": "use two.txt instead"})
	if err != nil {
		t.Fatal(err)
	}
	g.answered("the form", i)
	g.decided(card.ID, "**Denied** by <@"+g.User("ada").String()+">: use two.txt instead")
	g.hasReaction(asked, "✅")
	if sees := strings.Join(g.modelSees(g.thread(asked)), "\n"); !strings.Contains(sees, "use two.txt instead") && !g.toldTheModel(asked, "use two.txt instead") {
		t.Errorf("the agent is not told why: %s", sees)
	}

	// Somebody who may not answer is told so, and a form that is sent twice changes nothing.
	_, second := g.asks("ada", "echo two > two.txt")
	because := "c1:because:" + approvalOf(t, second)
	if i, err = g.Click("bob", second.ID, because); err != nil {
		t.Fatal(err)
	}
	g.answered("bob's click", i)
	if _, err := g.Submit("bob", because, map[string]string{"text": "I do not like it"}); err != nil {
		t.Fatal(err)
	}
	g.message("refusal", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "You cannot answer this") })
	g.click("ada", second.ID, "c1:no:"+approvalOf(t, second))
	g.decided(second.ID, "**Denied**")
}

// On Discord a yes held for one call, and the same was asked again and again.
func TestYesHoldsAsFarAsChosen(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked, card := g.asks("ada", "echo one")
	id := approvalOf(t, card)
	g.click("bob", card.ID, "c1:always:"+id)
	g.message("word to bob", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "You cannot answer this") })
	g.click("ada", card.ID, "c1:always:"+id)
	list := g.message("list", func(m discordsim.Message) bool {
		return strings.Contains(m.Text(), "What should be allowed from now on?")
	})
	if list.Flags&discordsim.FlagEphemeral == 0 || !slices.Equal(list.CustomIDs(), []string{"c1:keep:" + id}) {
		t.Fatalf("%+v", list)
	}
	values := g.Choices(list.ID, "c1:keep:"+id)
	if len(values) < 2 || values[0] != "once" {
		t.Fatalf("there is only %v", values)
	}
	i, err := g.Click("ada", list.ID, "c1:keep:"+id, values[1])
	if err != nil {
		t.Fatal(err)
	}
	g.answered("the choice", i)
	g.decided(card.ID, "**Allowed**")
	g.hasReaction(asked, "✅")
	g.message("what is kept", func(m discordsim.Message) bool {
		return m.ID == list.ID && strings.Contains(m.Text(), "Allowed from now on")
	})
	again := g.reply("ada", g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && !isCard(m) }).ID, "call bash {\"command\":\"echo one\"}\nend\nsay not asked")
	g.hasReaction(again, "✅")
	if n := len(g.cards()); n != 1 {
		t.Errorf("it was asked %d times:\n%s", n, g.transcript())
	}
}

// cards are the questions in a channel.
func (g *guildT) cards() []discordsim.Message {
	g.Helper()
	list, err := g.Messages("general")
	if err != nil {
		g.Fatal(err)
	}
	return slices.DeleteFunc(list, func(m discordsim.Message) bool { return !isCard(m) })
}

// toldTheModel reports whether a result that the model saw has some words.
func (g *guildT) toldTheModel(asked discordsim.ID, words string) bool {
	for _, ev := range g.events(g.thread(asked)) {
		if ran, ok := ev.Body.(chat.ToolRan); ok && strings.Contains(ran.Blocks.Text(), words) {
			return true
		}
	}
	return false
}

// A card that an earlier version posted, with buttons below a text, is answered, and becomes a panel by it.
func TestCardOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked, card := g.asks("ada", "echo one > one.txt")
	g.end()
	id := approvalOf(t, card)
	g.asBefore(card, `{"content":"**May I?** bash","components":[{"type":1,"components":[{"type":2,"style":3,"label":"Yes","custom_id":"c1:yes:`+id+`"},{"type":2,"style":4,"label":"No","custom_id":"c1:no:`+id+`"}]}]}`)
	g.start()
	g.click("ada", card.ID, "c1:yes:"+id)
	g.hasReaction(asked, "✅")
	g.message("decided card", func(m discordsim.Message) bool {
		return m.ID == card.ID && m.Content == "" && strings.Contains(m.Text(), "**Allowed**") && len(m.CustomIDs()) == 0
	})
}

// asBefore puts a message of an earlier version in the place of one.
func (g *guildT) asBefore(m discordsim.Message, body string) {
	g.Helper()
	if err := g.Restore(m.ID, []byte(body)); err != nil {
		g.Fatal(err)
	}
}

// What can be chosen from is more than buttons have room for: a list.
func TestHelpIsChosenFrom(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	help := g.command("ada", "general", "help", nil)
	if help.Flags&discordsim.FlagComponentsV2 == 0 || !slices.Equal(help.CustomIDs(), []string{"c1:topic:help"}) {
		t.Fatalf("%+v", help)
	}
	for topic, want := range map[string]string{"context": "`/context save`", "overview": "**talk**"} {
		if _, err := g.Click("ada", help.ID, "c1:topic:help", topic); err != nil {
			t.Fatal(err)
		}
		g.message(topic, func(m discordsim.Message) bool { return m.ID == help.ID && strings.Contains(m.Text(), want) })
	}
	if _, err := g.Click("ada", help.ID, "c1:topic:help", "no such"); err == nil {
		t.Error("Discord takes what is not in the list")
	}
	if status := g.command("ada", "general", "status", nil); status.Flags&discordsim.FlagComponentsV2 == 0 || status.Content != "" {
		t.Errorf("the status is no panel: %+v", status)
	}
}

// More conversations than buttons fit into a row are stopped from a list.
func TestTasksAreChosenFrom(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	var last discordsim.ID
	for n := range 6 {
		last = g.say("ada", "general", fmt.Sprintf("say begun %d\nwait", n))
		g.hasReaction(last, "⚙️")
	}
	list := g.command("ada", "general", "tasks", nil)
	if !slices.Equal(list.CustomIDs(), []string{"c1:halt:chosen"}) {
		t.Fatalf("%v", list.CustomIDs())
	}
	if _, err := g.Click("ada", list.ID, "c1:halt:chosen", last.String()+"@chorus"); err != nil {
		t.Fatal(err)
	}
	g.hasReaction(last, "❌")
	g.message("the rest of the list, with buttons", func(m discordsim.Message) bool {
		return m.ID == list.ID && strings.Contains(m.Text(), "Stopped: ") && !strings.Contains(m.Text(), "begun 5** (") && len(m.CustomIDs()) == 5
	})
	g.commandShows("ada", "stop", nil, "Stopped 5.")
}

// In rooms nobody saw how the work goes, because other agents would have taken it for words.
func TestStatusInARoomIsNotHeard(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "pia"}, {Name: "mia"}}}, map[string]string{
		"shared.yaml": "answer: bound\nrouting: room\n", "bots/chorus.yaml": "innerName: Cora\n", "bots/pia.yaml": "innerName: Pia\ndiscordToken: ${TOKEN_PIA}\n"},
		func(g *guildT) { g.tune = func(o *connect.BotOptions) { o.Preview = 20 * time.Millisecond } })
	other := g.otherHome("mia", "routing: room\nanswer: bound\ncontinuationModel: demo/script\nsandbox: host\n")
	if err := g.WaitConnected(g.soon(), "pia"); err != nil {
		t.Fatal(err)
	}
	goOn := g.pauseModel(1)
	asked := g.say("ada", "general", g.mention("chorus")+"\n!chunk 3\n!say begun and ended")
	live := g.message("status", works(asked))
	g.say("bob", "general", ".seen by people only")
	goOn()
	g.hasReaction(asked, "✅")
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Content == "begun and ended" })
	g.until("the status is gone", func() bool {
		list, err := g.Messages("general")
		return err == nil && !slices.ContainsFunc(list, func(m discordsim.Message) bool { return m.ID == live.ID })
	})
	// A card in the room is no words either, also when it is decided.
	card := g.say("ada", "general", g.mention("chorus")+"\n!call bash {\"command\":\"echo hi > x\"}\n!end\n!say after the card")
	question := g.message("card", func(m discordsim.Message) bool { return answers(card)(m) && isCard(m) })
	g.click("ada", question.ID, "c1:no:"+approvalOf(t, question))
	g.decided(question.ID, "**Denied**")
	g.hasReaction(card, "✅")
	for who, room := range map[string]func() string{
		"pia": func() string { return strings.Join(g.modelSees(g.room("general", "pia")), "|") },
		"mia": func() string { return other(g.room("general", "mia")) },
	} {
		g.until(who+" hears the answers", func() bool {
			return strings.Contains(room(), ": begun and ended") && strings.Contains(room(), ": after the card")
		})
		for _, never := range []string{"step 1", "thinking", "working", "May I "} {
			if sees := room(); strings.Contains(sees, never) {
				t.Errorf("%s heard %q: %s", who, never, sees)
			}
		}
	}
}

// otherHome runs a bot in another home, as another process would, and gives what its model sees.
func (g *guildT) otherHome(bot, settings string) (sees func(chat.ThreadID) string) {
	g.Helper()
	second := &guildT{T: g.T, Sim: g.Sim, home: storetest.FreshHome(g.T), warned: make(chan string, 16)}
	second.write("bots/"+bot+".yaml", settings)
	a, err := app.Open(g.Context(), app.Options{Home: second.home, Warn: second.warn, Env: func(name string) string {
		return apptest.Env("DISCORD_API_URL", g.API(), "DISCORD_BOT_TOKEN", g.Token(bot), "BOT_NAME", bot, "USER", "tester")(name)
	}})
	if err != nil {
		g.Fatal(err)
	}
	second.app = a
	a.Service.Handler()
	if second.stop, err = a.Host.Connect(); err != nil {
		g.Fatal(err)
	}
	g.Cleanup(second.end)
	if err := g.WaitConnected(g.soon(), bot); err != nil {
		g.Fatal(err)
	}
	return func(thread chat.ThreadID) string { return strings.Join(second.modelSees(thread), "|") }
}
