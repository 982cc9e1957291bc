package discordtest

import (
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/settings"
	"chorus/internal/sim/discordsim"
)

// pin says something and pins it.
func (g *guildT) pin(who, channel, text string) discordsim.ID {
	g.Helper()
	id := g.say(who, channel, text)
	if err := g.Pin("own", id, true); err != nil {
		g.Fatal(err)
	}
	return id
}

func TestPinsChangeHowThingsAreDone(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, withSecrets(), map[string]string{"bots/chorus.yaml": "innerName: Cora\n"}, func(g *guildT) {
		g.pin("bob", "general", ".config\n---\nrouting: room\nreplyOnName: true\n")
		g.pin("bob", "general", ".config somebody-else\n---\nroutting: nonsense\n") // not for us
	})
	g.say("bob", "general", "only between people")
	asked := g.say("ada", "general", "what does cora say?\n!say my name")
	g.message("answer by name", func(m discordsim.Message) bool { return m.Text() == "my name" })
	g.hasReaction(asked, "✅")
	if n := g.countOwn("general"); n != 1 {
		t.Errorf("a room answers only who asks:\n%s", g.transcript())
	}
	other := g.say("ada", "other", "say elsewhere all is as it was")
	g.message("answer", answers(other))

	// A new pin counts at once, a changed one too, and one that is gone no more.
	id := g.pin("bob", "general", ".config Cora other\n---\nroutting: thread\n")
	g.noted(id, "did you mean")
	if err := g.Edit("bob", id, ".config Cora other\n---\nreplyOnName: false\ncontinuationModel: demo/guide\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.WaitEvent(g.soon(), func(h discordsim.Happening) bool { return h.Name == "MESSAGE_DELETE" }); err != nil {
		t.Fatalf("the note about the mistake still stands: %v\n%s", err, g.transcript())
	}
	g.say("ada", "general", "cora again, to no avail")
	heard := g.say("ada", "general", g.mention("chorus")+" hello")
	g.message("another model", func(m discordsim.Message) bool { return answers(heard)(m) && m.Text() != "" })
	g.hasReaction(heard, "✅")
	if n := g.countOwn("general"); n != 2 {
		t.Errorf("by its name it is no longer called:\n%s", g.transcript())
	}
	if err := g.Pin("own", id, false); err != nil {
		t.Fatal(err)
	}
	g.until("the pin is forgotten", func() bool {
		bot, err := g.app.Settings.BotFor(rowOf(g.room("general", "chorus")))
		return err == nil && bot.ReplyOnName
	})
}

func TestPinsThatDoNotCount(t *testing.T) {
	t.Parallel()
	files := roomFiles()
	files["bots/chorus.yaml"] += "authorizedRoles: [keeper]\npermissions: locked\n"
	g := inOldGuild(t, withSecrets(), files, func(g *guildT) {
		g.pin("bob", "general", ".config\n---\nreplyOnRandom: 1\n")
	})
	stranger := g.pin("bob", "general", ".config\n---\nreplyOnName: true\n")
	g.noted(stranger, "bob, who wrote it, may not configure here; it needs the role keeper")
	mine := g.pin("ada", "general", ".config\n---\npermissions: open\nbudgets:\n  guild:\n    day: 1000000\n")
	g.noted(mine, "open takes none away")
	broken := g.pin("ada", "general", ".config\n---\nreplyOnRandom: [1\n")
	g.noted(broken, "left out")
	fine := g.pin("ada", "general", ".config\n---\nmaxBotReplyChainDepth: 7\n")
	g.until("the good one counts", func() bool {
		bot, err := g.app.Settings.BotFor(rowOf(g.room("general", "chorus")))
		return err == nil && bot.MaxBotReplyChainDepth == 7 && bot.Origin("maxBotReplyChainDepth").File == "pinned message "+fine.String()
	})
	bot, err := g.app.Settings.BotFor(rowOf(g.room("general", "chorus")))
	if err != nil || bot.Permissions != "locked" || bot.ReplyOnRandom != 0 || bot.ReplyOnName || len(bot.Budgets) > 0 {
		t.Errorf("pins changed what they may not: %+v, %v", bot, err)
	}
	// Two processes: who asks without a connection has the copy.
	stored, err := settings.PinsAt(t.Context(), g.app.Settings, "chorus", g.Guild().String(), g.Channel("general").String())
	if err != nil || len(stored.Pins) != 3 || len(stored.Notes) != 2 || !strings.Contains(stored.Notes[0], "keeper") {
		t.Errorf("the copy is %+v: %v", stored, err)
	}
	g.ask("ada", "general", "chorus", "well")
	if got := g.modelSees(g.room("general", "chorus")); len(got) == 0 || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, ".config") || strings.Contains(s, ".note") }) {
		t.Errorf("the model sees nothing, or configuration: %q", got)
	}
	thread := g.room("general", "chorus")
	if n := slices.IndexFunc(g.events(thread), func(ev chat.Event) bool { return ev.Body.Kind() == chat.KindRunStarted }); n < 0 {
		t.Error("no run")
	}
}

// With authorizedRoles a bot spoke about pins that were for others, and refused whoever owns or
// administers the server; and what may be done in a channel could not be lowered there.
func TestPinsOfOthersAndOfTheOwner(t *testing.T) {
	t.Parallel()
	o := withSecrets()
	o.Roles = append(o.Roles, discordsim.RoleSpec{Name: "chief", Permissions: []string{"administrator"}})
	o.People = []discordsim.PersonSpec{{Name: "own", Owner: true}, {Name: "ada", Roles: []string{"chief"}}, {Name: "bob"}}
	files := roomFiles()
	files["bots/chorus.yaml"] += "authorizedRoles: [keeper]\npermissions: open\naccess: {discord: open}\n"
	g := inOldGuild(t, o, files, func(*guildT) {})
	g.pin("bob", "general", ".config pia\n---\nreplyOnRandom: 1\n")
	owners := g.pin("own", "general", ".config\n---\nmaxBotReplyChainDepth: 7\npermissions: locked\n")
	g.until("the owner's counts", func() bool {
		bot, err := g.app.Settings.BotFor(rowOf(g.room("general", "chorus")))
		return err == nil && bot.MaxBotReplyChainDepth == 7 && bot.Permissions == "open"
	})
	g.pin("ada", "general", ".config\n---\nreplyOnName: true\n")
	g.until("an administrator's counts", func() bool {
		bot, err := g.app.Settings.BotFor(rowOf(g.room("general", "chorus")))
		return err == nil && bot.ReplyOnName
	})
	g.commandShows("bob", "access", nil, "this channel: `locked` (pinned message "+owners.String()+")")
	stranger := g.pin("bob", "general", ".config chorus\n---\nreplyOnRandom: 1\n")
	g.noted(stranger, "bob, who wrote it, may not configure here")
	if n := g.countOwn("general"); n != 2 { // the answer to /access and this note
		t.Errorf("it spoke about what is for others:\n%s", g.transcript())
	}
}
