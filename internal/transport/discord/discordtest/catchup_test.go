package discordtest

import (
	"fmt"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
)

// What people changed while nobody listened is noticed, once.
func TestDiscordNoticesChangesMadeMeanwhile(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: room\n"})
	kept := g.say("bob", "general", "stays as it is")
	edited := g.say("bob", "general", "a typo")
	before := g.say("bob", "general", "edited before it was heard twice")
	gone := g.say("bob", "general", "never mind")
	asked := g.say("ada", "general", "<@"+g.User("chorus").String()+">\n!say heard you")
	g.hasReaction(asked, "✅")
	if err := g.Edit("bob", before, "seen in time"); err != nil {
		t.Fatal(err)
	}
	room := g.room("general", "chorus")
	g.changesIn(room, 1)
	g.end()
	if err := g.Edit("bob", edited, "no typo"); err != nil {
		t.Fatal(err)
	}
	if err := g.Delete("bob", gone); err != nil {
		t.Fatal(err)
	}
	g.start()
	list := g.changesIn(room, 3)[1:]
	words := map[string]bool{}
	for _, b := range list {
		switch e := b.(type) {
		case chat.Edited:
			words["edited "+e.Blocks.Text()] = true
		case chat.Deleted:
			ev, err := g.app.DB.Event(t.Context(), room, e.Seq)
			if err != nil {
				t.Fatal(err)
			}
			words["deleted "+ev.PlatformID] = true
		}
	}
	if !words["edited no typo"] || !words["deleted "+gone.String()] {
		t.Errorf("noticed: %v (kept %s)", words, kept)
	}
	g.end()
	g.start() // and not once more
	again := g.say("ada", "general", "<@"+g.User("chorus").String()+">\n!say still here")
	g.hasReaction(again, "✅")
	events, err := g.app.DB.Events(t.Context(), room, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, ev := range events {
		switch ev.Body.(type) {
		case chat.Edited, chat.Deleted:
			n++
		}
	}
	if n != 3 {
		t.Errorf("three changes are noticed once each, not %d times", n)
	}
}

// What is said in a thread that was opened while nobody listened is answered.
func TestDiscordReadsWhatWasOpenedMeanwhile(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	first := g.say("ada", "general", "say one")
	g.hasReaction(first, "✅")
	g.end()
	thread, err := g.OpenThread("bob", first, "aside")
	if err != nil {
		t.Fatal(err)
	}
	aside := g.say("bob", thread.String(), "say heard in the thread")
	g.start()
	g.message("answer in the thread", func(m discordsim.Message) bool {
		return m.ChannelID == thread && m.Text() == "heard in the thread"
	})
	g.hasReaction(aside, "✅")
}

// A long backlog is read in order, and what is said meanwhile comes behind it.
func TestDiscordReadsALongBacklogInOrder(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: room\n"})
	mention := g.mention("chorus")
	g.hasReaction(g.say("ada", "general", mention+"\n!say here"), "✅")
	g.end()
	const many = 230 // three pages
	for i := range many {
		g.say("bob", "general", fmt.Sprintf("line %d", i))
	}
	g.fault(discordsim.Fault{Kind: discordsim.FaultSlow, Route: "GET /channels/{channel}/messages", Millis: 100})
	g.start()
	for i := range 5 {
		g.say("bob", "general", fmt.Sprintf("line %d", many+i)) // while the backlog is read
	}
	g.hasReaction(g.say("ada", "general", mention+"\n!say all heard"), "✅")
	room := g.room("general", "chorus")
	events, err := g.app.DB.Events(t.Context(), room, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, ev := range events {
		if e, ok := ev.Body.(chat.Received); ok && strings.HasPrefix(e.Blocks.Text(), "line ") {
			lines = append(lines, e.Blocks.Text())
		}
	}
	if len(lines) != many+5 {
		t.Fatalf("%d of %d lines were heard", len(lines), many+5)
	}
	for i, line := range lines {
		if line != fmt.Sprintf("line %d", i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// A gateway that is connected and deaf, not even acknowledging heartbeats, is let go of.
func TestDiscordLetsGoOfADeadGateway(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{TimeScale: 100}, map[string]string{}) // a heartbeat takes 400 ms
	g.hasReaction(g.say("ada", "general", "say one"), "✅")
	id := g.fault(discordsim.Fault{Kind: discordsim.FaultDeaf})
	unheard := g.say("ada", "general", "say heard late")
	if err := g.WaitGone(g.soon(), "chorus"); err != nil { // cleared before that, it would hear without ever having let go
		t.Fatal(err)
	}
	g.Clear(id)
	g.message("answer", func(m discordsim.Message) bool { return answers(unheard)(m) && m.Text() == "heard late" })
	g.hasReaction(unheard, "✅")
}

// A platform thread belongs to the agent of the channel that it hangs under.
func TestDiscordThreadIsItsChannelsAgents(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "planner"}}},
		map[string]string{"../agents/planner/agent.json": `{"name":"planner","model":"demo/script","routing":"thread"}`})
	asked := g.say("ada", "planner", "say in a thread")
	g.message("answer in the thread", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() == "in a thread" })
	g.hasReaction(asked, "✅")
	g.hasReaction(g.say("bob", asked.String(), "say and on"), "✅")
	rows, _, err := g.app.DB.BehindSince(t.Context(), "discord/none", "discord", 0, nil)
	if err != nil || len(rows) != 1 || rows[0].Agent() != "planner" {
		t.Fatalf("one conversation of planner's: %v, %v", rows, err)
	}
}

// Before the first connection nobody knows whom a mention is for: what was said meanwhile waits, however
// often its channel could be read already.
func TestDiscordMissingItsNameReadsNothing(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, roomFiles())
	if err := g.WaitConnected(g.soon(), "chorus"); err != nil {
		t.Fatal(err)
	}
	g.ask("ada", "general", "chorus", "here")
	g.end()
	g.fault(discordsim.Fault{Kind: discordsim.FaultError, Route: "GET /gateway", Status: 503, Count: 12})
	asked := g.say("ada", "general", g.mention("chorus")+"\n!say said while you were away")
	g.start()
	g.message("answer", func(m discordsim.Message) bool { return m.Text() == "said while you were away" })
	g.hasReaction(asked, "✅")
}

// What somebody said while we were away counts as theirs, roles and all, though history does not tell these.
func TestDiscordKnowsTheRolesOfWhatItMissed(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Roles: []discordsim.RoleSpec{{Name: "keeper"}},
		People: []discordsim.PersonSpec{{Name: "ada", Roles: []string{"keeper"}}}}, map[string]string{})
	g.hasReaction(g.say("ada", "general", "say here"), "✅")
	g.end()
	missed := g.say("ada", "general", "say heard late")
	g.start()
	g.hasReaction(missed, "✅")
	places, err := g.app.DB.Places(t.Context(), "discord", missed.String())
	if err != nil || len(places) == 0 {
		t.Fatal(places, err)
	}
	for _, ev := range g.events(places[0].Thread) {
		if said, ok := ev.Body.(chat.Received); ok && ev.PlatformID == missed.String() {
			if got := said.Principal.Roles; len(got) != 1 || got[0] != "keeper" {
				t.Errorf("it was said by somebody with the roles %q", got)
			}
			return
		}
	}
	t.Error("it was not heard")
}
