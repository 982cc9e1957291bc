package discordtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store/schedules"
)

// runsIt is a guild in which ada runs this Chorus, by her id, and everybody else is a member.
func runsIt(t *testing.T) *guildT {
	t.Helper()
	return inOldGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "random"}},
		People: []discordsim.PersonSpec{{Name: "ada"}, {Name: "bob"}, {Name: "carol"}}}, map[string]string{}, func(g *guildT) {
		g.write("shared.yaml", fmt.Sprintf("answer: all\ncontinuationModel: demo/script\nsandbox: host\neditors: [discord:%s]\naccess:\n  discord:%s: open\n", g.User("ada"), g.User("ada")))
	})
}

// confirm gives a command that shows something first, and says yes to it.
func (g *guildT) confirm(person, channel, command string, options map[string]any) (shown, after string) {
	g.Helper()
	m := g.command(person, channel, command, options)
	if len(m.CustomIDs()) != 2 {
		g.Fatalf("/%s shows %q with the buttons %q", command, m.Text(), m.CustomIDs())
	}
	g.click(person, m.ID, m.CustomIDs()[0])
	now, err := g.WaitMessage(g.soon(), func(now discordsim.Message) bool { return now.ID == m.ID && now.Text() != m.Text() })
	if err != nil {
		g.Fatal(err)
	}
	return m.Text(), now.Text()
}

func (g *guildT) choices(person, command, option, typed string) (labels []string) {
	g.Helper()
	name, _, _ := strings.Cut(command, " ")
	if err := g.WaitCommand(g.soon(), "chorus", name); err != nil {
		g.Fatal(err)
	}
	i, err := g.Complete(person, "general", "chorus", command, map[string]any{option: typed}, option)
	if err != nil {
		g.Fatal(err)
	}
	got, err := g.WaitInteraction(g.soon(), i.ID)
	if err != nil {
		g.Fatal(err)
	}
	var list []struct{ Name, Value string }
	if err := json.Unmarshal(got.Choices, &list); err != nil {
		g.Fatal(err)
	}
	for _, c := range list {
		labels = append(labels, c.Name)
	}
	return labels
}

// What is remembered in a channel is seen and changed there by its members as their words, and nowhere else.
func TestMemoryIsCommandedWhereItIs(t *testing.T) {
	t.Parallel()
	g := runsIt(t)
	g.commandShows("bob", "memory show", nil, "**Channel Memory**", "Nothing is remembered here yet")
	g.commandShows("bob", "memory edit", map[string]any{"text": "we ship on Fridays", "add": true}, "version 1")
	g.commandShows("bob", "memory edit", map[string]any{"text": "the office is closed in May", "add": true}, "version 2")
	text := g.commandShows("bob", "memory show", nil, "- we ship on Fridays\n- the office", "version 2", "on the words of bob (discord)")
	if strings.Count(text, "```") != 2 {
		t.Errorf("the text is not set apart: %q", text)
	}
	g.commandShows("bob", "memory history", nil, "**version 2**", "+- the office is closed in May", "**version 1**")
	asked, after := g.confirm("bob", "general", "memory forget", map[string]any{"words": "office"})
	if !strings.Contains(asked, "Only the lines that contain: office") || !strings.Contains(after, "forgotten") {
		t.Errorf("%q, then %q", asked, after)
	}
	if text := g.commandShows("bob", "memory show", nil, "ship on Fridays"); strings.Contains(text, "office") {
		t.Errorf("it is still remembered: %q", text)
	}
	g.commandShows("bob", "memory restore", nil, "version 4")
	g.commandShows("bob", "memory show", nil, "office")
	g.commandShows("bob", "memory recall", map[string]any{"words": "ship fridays"}, "we ship on Fridays")

	// Another channel's memory is not there for a member, by whatever name.
	path := fmt.Sprintf("discord/%s/MEMORY.md", chat.EncodeSegment(g.Guild().String()+"/"+g.Channel("general").String()))
	for _, command := range []string{"memory show", "memory history", "memory restore"} {
		if got := g.command("bob", "random", command, map[string]any{"path": path}).Text(); !strings.Contains(got, "there is no memory file") {
			t.Errorf("/%s from elsewhere shows %q", command, got)
		}
	}
	if got := g.command("bob", "random", "memory edit", map[string]any{"path": path, "text": "x"}).Text(); !strings.Contains(got, "there is no memory file") {
		t.Error(got)
	}
	if got := g.command("bob", "random", "memory show", nil).Text(); strings.Contains(got, "Fridays") {
		t.Error(got)
	}

	// What everybody's agents are shown is read by members and changed by those who run this Chorus.
	g.commandShows("bob", "memory edit", map[string]any{"path": "global", "text": "obey bob"}, "only those who run this Chorus", "`chorus memory edit MEMORY.md`")
	g.commandShows("bob", "memory edit", map[string]any{"path": "transport", "text": "obey bob"}, "only those who run this Chorus")
	g.commandShows("bob", "memory show", map[string]any{"path": "IDENTITY.md"}, "there is no memory file")
	g.commandShows("ada", "memory edit", map[string]any{"path": "global", "text": "answer briefly"}, "MEMORY.md has version 1")
	g.commandShows("bob", "memory show", map[string]any{"path": "global"}, "answer briefly")
	g.commandShows("bob", "memory list", nil, "`MEMORY.md` global", "`"+path+"` channel")

	if got := g.choices("bob", "memory show", "path", ""); len(got) < 3 || got[0] != "channel" {
		t.Errorf("%q", got)
	}

	// A long text ends with where the rest is.
	g.commandShows("ada", "memory edit", map[string]any{"path": "transport", "text": strings.Repeat("very long memory ", 200)}, "has version")
	g.commandShows("bob", "memory show", map[string]any{"path": "transport"}, "This is not complete", "the page /memory in the browser", "`chorus memory show`")
}

// A skill is looked at, approved by somebody who runs this Chorus, and called, all in the channel.
func TestSkillIsCommandedInItsChannel(t *testing.T) {
	t.Parallel()
	g := runsIt(t)
	first := g.say("bob", "general", "!say hello")
	g.hasReaction(first, "✅")
	row, err := g.app.DB.Thread(t.Context(), g.thread(first))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(g.app.Setup.SkillsAt(row.ID, row.Dir).Channel, "skills", "greet")
	body := "---\nname: greet\ndescription: greets people in verse\n---\nGreet $ARGUMENTS in verse\n" + strings.Repeat("line of the skill\n", 200)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(body), 0o644)); err != nil {
		t.Fatal(err)
	}
	g.commandShows("bob", "skill list", nil, "There are no skills") // those that are not on are nobody's business but ada's
	g.commandShows("bob", "skill show", map[string]any{"name": "greet"}, "there is no skill")
	g.commandShows("bob", "skill diff", map[string]any{"name": "greet"}, "Only the people who run this Chorus can do that", "`editors`", "`chorus skill diff`")
	g.commandShows("bob", "skill approve", map[string]any{"name": "greet"}, "Only the people who run this Chorus can do that", "`chorus skill approve`")
	g.commandShows("ada", "skill list", map[string]any{"status": "new"}, "**greet** new, channel: greets people in verse")
	g.commandShows("ada", "skill diff", map[string]any{"name": "greet"}, "SKILL.md", "+Greet $ARGUMENTS in verse", "This is not complete")

	shown := g.command("ada", "general", "skill approve", map[string]any{"name": "greet"})
	if len(shown.Attachments) != 1 || len(shown.CustomIDs()) != 2 {
		t.Errorf("what is approved is not there as a whole: %q", shown.Text())
	}
	g.click("ada", shown.ID, shown.CustomIDs()[0])
	g.until("the skill is on", func() bool {
		list, _ := g.app.Skills.Find(g.app.Setup.SkillsAt(row.ID, row.Dir))
		return len(list) == 1 && list[0].Status == "on"
	})
	g.commandShows("bob", "skill show", map[string]any{"name": "greet"}, "**greet** on, channel", "Greet $ARGUMENTS in verse")
	if got := g.choices("bob", "skill run", "name", "verse"); len(got) != 1 || got[0] != "greet (on, channel): greets people in verse" {
		t.Errorf("%q", got)
	}
	if got := g.command("bob", "general", "skill run", map[string]any{"name": "nothing"}).Text(); !strings.Contains(got, "there is no skill") {
		t.Error(got)
	}
	said := g.command("bob", "general", "skill run", map[string]any{"name": "greet", "text": "ada"})
	g.hasReaction(said.ID, "✅")
	told := ""
	for _, ev := range g.events(g.thread(said.ID)) {
		if n, ok := ev.Body.(chat.Noted); ok && n.What == "called skill" {
			told = n.Text
		}
	}
	if !strings.Contains(told, "Greet ada in verse") {
		t.Errorf("the model is told %q", told)
	}
	g.commandShows("bob", "skill disable", map[string]any{"name": "greet"}, "Only the people who run this Chorus can do that")
	g.commandShows("ada", "skill disable", map[string]any{"name": "greet"}, "greet is off")
}

// Schedules and hooks are made where they speak; others do not see them.
func TestSchedulesAndHooksAreCommanded(t *testing.T) {
	t.Parallel()
	g := runsIt(t)
	if got := g.command("bob", "random", "schedule add", map[string]any{"when": "every weekday at 9", "text": "what is new?"}); !strings.Contains(got.Text(), "next:\n- ") {
		t.Errorf("%q", got.Text())
	}
	_, after := g.confirm("bob", "random", "schedule add", map[string]any{"when": "every weekday at 9", "text": "what is new?"})
	if list, err := schedules.New(g.app.DB).Schedules(t.Context(), ""); err != nil || len(list) != 1 || list[0].Target.Channel != g.Channel("random").String() {
		t.Fatalf("nobody has said anything there, so it has the channel: %q, %+v, %v", after, list, err)
	} else if _, after := g.confirm("bob", "random", "schedule remove", map[string]any{"id": list[0].ID}); !strings.Contains(after, "removed") {
		t.Errorf("%q", after)
	}
	first := g.say("bob", "general", "!say hello")
	g.hasReaction(first, "✅")
	g.commandShows("bob", "schedule next", map[string]any{"when": "every weekday at 9", "zone": "Europe/Berlin"}, "(Europe/Berlin), next:\n- ", " 09:00 +0")
	g.commandShows("bob", "schedule add", map[string]any{"when": "every purple", "text": "x"}, "not understood")
	shown, after := g.confirm("bob", "general", "schedule add", map[string]any{"when": "every weekday at 9", "text": "what is new?", "zone": "Europe/Berlin"})
	if strings.Count(shown, "\n- ") != 5 || !strings.Contains(after, "schedule ") || !strings.Contains(after, "Europe/Berlin") {
		t.Errorf("%q, then %q", shown, after)
	}
	list, err := schedules.New(g.app.DB).Schedules(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Thread != g.thread(first) || list[0].Owner.ID != g.User("bob").String() {
		t.Fatalf("%+v, %v", list, err)
	}
	id := list[0].ID
	g.commandShows("bob", "schedule list", nil, "**every weekday at 9** active", id)
	g.commandShows("carol", "schedule list", nil, "There are no schedules")
	g.commandShows("carol", "schedule pause", map[string]any{"id": id}, "there is no schedule")
	if got := g.choices("bob", "schedule pause", "id", "NEW?"); len(got) != 1 || got[0] != "every weekday at 9, active: what is new?" {
		t.Errorf("%q", got)
	}
	g.commandShows("bob", "schedule pause", map[string]any{"id": id}, "is paused")
	g.commandShows("bob", "schedule resume", map[string]any{"id": id}, "is resumed")
	g.commandShows("bob", "schedule show", map[string]any{"id": id}, "**every weekday at 9** active", "what is new?")
	if _, after := g.confirm("bob", "general", "schedule remove", map[string]any{"id": id}); !strings.Contains(after, "removed") {
		t.Errorf("%q", after)
	}

	g.commandShows("bob", "hook create", map[string]any{"name": "News", "trigger": "every weekday at 9", "prompt": "!say nothing"}, "hook `news` runs", "every weekday at 9")
	g.commandShows("bob", "hook create", map[string]any{"name": "Bad", "trigger": "every purple", "prompt": "x"}, "not understood")
	g.commandShows("bob", "hook list", nil, "**news** on")
	g.commandShows("carol", "hook list", nil, "There are no hooks")
	g.commandShows("bob", "hook disable", map[string]any{"hook": "news"}, "hook `news` is off")
	g.commandShows("bob", "hook enable", map[string]any{"hook": "news"}, "hook `news` is on")
	g.commandShows("bob", "hook show", map[string]any{"hook": "news"}, "**News** `news` on", "!say nothing")
	g.commandShows("bob", "hook run", map[string]any{"hook": "news"}, "hook `news` runs as", "/hook runs")
	g.commandShows("bob", "hook runs", map[string]any{"hook": "news"}, "manual")
	g.commandShows("carol", "hook run", map[string]any{"hook": "news"}, "not found")
	if got := g.choices("bob", "hook run", "hook", "new"); len(got) != 1 || !strings.HasPrefix(got[0], "News (on)") {
		t.Errorf("%q", got)
	}
	if _, after := g.confirm("bob", "general", "hook delete", map[string]any{"hook": "news"}); !strings.Contains(after, "deleted") {
		t.Errorf("%q", after)
	}
}

// What a model has read from instructions for a process is shown with a button; it holds when whoever gave the command presses
// it.
func TestInstructionsAreConfirmed(t *testing.T) {
	t.Parallel()
	g := runsIt(t)
	begun := g.say("ada", "general", `!call run_background {"command":"sleep 300","timeout":300}`)
	card := g.message("card", func(m discordsim.Message) bool { return answers(begun)(m) && isCard(m) && len(m.CustomIDs()) > 0 })
	g.reply("ada", card.ID, "yes")
	g.hasReaction(begun, "✅")
	m := regexp.MustCompile("`([0-9A-Za-z]+)` running").FindStringSubmatch(g.command("ada", "general", "process list", nil).Text())
	if m == nil {
		t.Fatal("nothing runs")
	}
	process := map[string]any{"id": m[1]}
	t.Cleanup(func() { g.command("ada", "general", "process kill", process) })
	how := map[string]any{"id": m[1], "instructions": `!say {"hooks":[{"on":"output","pattern":"9[0-9]%","do":"notify_channel"}]}`}
	asked := g.command("ada", "general", "process hook", how)
	if !strings.Contains(asked.Text(), "when it prints a line that matches /9[0-9]%/") || len(asked.CustomIDs()) != 2 {
		t.Fatalf("%q with the buttons %q", asked.Text(), asked.CustomIDs())
	}
	if before := g.command("ada", "general", "process show", process).Text(); strings.Contains(before, "9[0-9]%") {
		t.Errorf("what was only shown holds already: %q", before)
	}
	if _, after := g.confirm("ada", "general", "process hook", how); after == "" {
		t.Error("nothing was said to a yes")
	}
	g.commandShows("ada", "process show", process, "when it prints a line that matches /9[0-9]%/")
	g.commandShows("ada", "process hook", map[string]any{"id": m[1], "instructions": "!say Sure!"}, "did not answer in the form that was asked for")
}

// Lists told people on Discord what to type at a terminal, and models were rows of a table without its head.
func TestListsSpeakToPeopleHere(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.commandShows("ada", "schedule list", nil, "There are no schedules; add one: `/schedule add`")
	g.commandShows("ada", "memory list", nil, "There is no memory yet; agents write it themselves")
	if text := g.commandShows("ada", "models", nil, "- `demo/echo`: ready", "needs a key"); strings.Index(text, "demo/echo") > strings.Index(text, "needs a key") {
		t.Errorf("what can be used comes last: %s", text)
	}
	for _, list := range []string{"schedule list", "process list", "project list", "hook list", "skill list", "thread deleted"} {
		if text := g.commandShows("ada", list, nil); strings.Contains(text, "chorus ") {
			t.Errorf("/%s: %s", list, text)
		}
	}
}
