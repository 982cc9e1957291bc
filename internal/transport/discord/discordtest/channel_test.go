package discordtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
)

func TestDiscordSearchChannel(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	if err := g.stopped(func() { g.say("bob", "general", "the old kingfisher") }); err != nil {
		t.Fatal(err)
	}
	heard := g.say("ada", "general", "say the heron stands in the reeds")
	g.hasReaction(heard, "✅")
	asked := g.say("bob", "general", `call search_channel {"query":"heron reeds"}`+"\nend\nsay found")
	g.hasReaction(asked, "✅")
	ran := g.result(g.threadOf("general", asked), "search_channel")
	link := fmt.Sprintf("https://discord.com/channels/%s/%s/%s", g.Guild(), g.Channel("general"), heard)
	if text := ran.Blocks.Text(); !strings.Contains(text, " ada: say the heron stands in the reeds\n  "+link) || !strings.Contains(text, chat.DefaultAgent+": the heron stands") || ran.UntrustedFrom == "" {
		t.Errorf("found %q, foreign %q", text, ran.UntrustedFrom)
	}
	// What was said before anybody listened is found only where somebody asks for it.
	far := g.say("bob", "general", `call search_channel {"query":"kingfisher","from":"bob","older":true}`+"\nend\nsay found")
	g.hasReaction(far, "✅")
	if text := g.result(g.threadOf("general", far), "search_channel").Blocks.Text(); !strings.Contains(text, "bob: the old kingfisher") {
		t.Errorf("found %q", text)
	}
}

// stopped does something while the program is away, before it has ever seen the channel.
func (g *guildT) stopped(do func()) error {
	g.end()
	if err := os.RemoveAll(filepath.Join(g.home, "chorus.db")); err != nil {
		return err
	}
	for _, name := range []string{"chorus.db-wal", "chorus.db-shm", "guard-chorus.db"} { // whichever are there
		_ = os.Remove(filepath.Join(g.home, name))
	}
	do()
	g.start()
	return nil
}

func TestDiscordUpload(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.say("ada", "general", `call write {"path":"report.csv","content":"a,b\n1,2\n"}`+"\nend\n"+
		`call upload {"path":"report.csv","text":"as you wished"}`+"\nend\nsay there it is")
	file := g.message("file", func(m discordsim.Message) bool { return len(m.Attachments) == 1 })
	if file.Text() != "as you wished" || file.Attachments[0].Filename != "report.csv" || file.Attachments[0].Size != 8 {
		t.Errorf("posted %+v", file)
	}
	g.hasReaction(asked, "✅")
	thread := g.threadOf("general", asked)
	if text := g.result(thread, "upload").Blocks.Text(); text != fmt.Sprintf("Posted report.csv https://discord.com/channels/%s/%s/%s", g.Guild(), g.Channel("general"), file.ID) {
		t.Errorf("the model reads %q", text)
	}
	// Whoever replies to it goes on with its thread.
	again := g.reply("ada", file.ID, "say thanks")
	g.message("answer", func(m discordsim.Message) bool { return answers(again)(m) && m.Text() == "thanks" })
	if places, err := g.app.DB.Places(t.Context(), "discord", again.String()); err != nil || len(places) != 1 || places[0].Thread != thread {
		t.Errorf("the reply belongs to %v, %v", places, err)
	}
	number := g.fault(discordsim.Fault{Kind: discordsim.FaultError, Status: 403, Route: "POST /channels/{channel}/messages", Count: 1})
	refused := g.reply("ada", file.ID, `call upload {"path":"report.csv"}`+"\nend\nsay well")
	g.hasReaction(refused, "✅")
	g.Clear(number)
	var last chat.ToolRan
	for _, ev := range g.events(thread) {
		if ran, ok := ev.Body.(chat.ToolRan); ok && ran.Name == "upload" {
			last = ran
		}
	}
	if !last.Failed || !strings.Contains(last.Blocks.Text(), "I may not attach files") {
		t.Errorf("refused, the model reads %q, failed: %v", last.Blocks.Text(), last.Failed)
	}
}

// An answer that would be many messages is a file, with its beginning as the message.
func TestDiscordLongAnswersAreFiles(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	var script strings.Builder
	for i := range 400 {
		fmt.Fprintf(&script, "!say line %d %s\n", i, strings.Repeat("heron ", 7))
	}
	asked := g.post("ada", "general", discordsim.Said{Text: "play this", Files: map[string][]byte{"script.txt": []byte(script.String())}})
	g.hasReaction(asked, "✅")
	answer := g.message("file", func(m discordsim.Message) bool { return answers(asked)(m) && len(m.Attachments) == 1 })
	if !strings.HasPrefix(answer.Text(), "line 0 heron") || len([]rune(answer.Text())) > 2000 || answer.Attachments[0].Size < 15_000 {
		t.Errorf("the answer is %q with %+v", answer.Text(), answer.Attachments)
	}
	if n := g.countOwn("general"); n != 1 {
		t.Errorf("%d messages of ours:\n%s", n, g.transcript())
	}
}

// A name that a model writes is the person again, and nobody is rung by it.
func TestDiscordMentionsAreResolvedBack(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	bob := "<@" + g.User("bob").String() + ">"
	g.hasReaction(g.say("bob", "general", "say hello"), "✅")
	asked := g.say("ada", "general", "say I told @bob and @nobody-here and @everyone")
	answer := g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && strings.Contains(m.Text(), "I told") })
	g.hasReaction(asked, "✅")
	if !strings.Contains(answer.Text(), "I told "+bob+" and @nobody-here") || answer.MentionEveryone {
		t.Errorf("the answer is %q, notifies %v and everybody: %v", answer.Text(), answer.Mentions, answer.MentionEveryone)
	}
	for _, rung := range answer.Mentions {
		if rung.ID != g.User("ada") { // a reply may name whom it answers
			t.Errorf("%s was rung", rung.Username)
		}
	}
	// What people write by number the model reads by name.
	other := g.say("ada", "general", "say do you know "+bob)
	g.hasReaction(other, "✅")
	if text := toldOf(g.asked(g.threadOf("general", other))); !strings.Contains(text, "@bob") {
		t.Errorf("the model was told %s", text)
	}
}
