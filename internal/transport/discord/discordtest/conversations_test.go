package discordtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/sim/discordsim"
)

// withKeepers is a guild in which ada runs this Chorus, dan may manage messages, and bob and carol talk.
func withKeepers(t *testing.T) *guildT {
	t.Helper()
	return inOldGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "random"}},
		Roles:  []discordsim.RoleSpec{{Name: "keepers", Permissions: []string{"manage_messages"}}},
		People: []discordsim.PersonSpec{{Name: "ada"}, {Name: "bob"}, {Name: "carol"}, {Name: "dan", Roles: []string{"keepers"}}}}, map[string]string{}, func(g *guildT) {
		g.write("shared.yaml", fmt.Sprintf("answer: all\ncontinuationModel: demo/script\nsandbox: host\npublicUrl: https://chorus.example.org/\neditors: [discord:%s]\naccess:\n  discord:%s: open\n", g.User("ada"), g.User("ada")))
	})
}

const notTheirs = "only the person who started this conversation"

// A conversation of a channel is renamed, pinned and archived where it is held, by whoever began it and by those who may manage
// messages; others who talk there are refused. What is archived comes back with the next words.
func TestDiscordConversationsAreListedAsPeopleWant(t *testing.T) {
	t.Parallel()
	g := withKeepers(t)
	g.commandShows("bob", "thread rename", map[string]any{"title": "nothing"}, "choose one with the option thread")
	first := g.say("bob", "general", "!say the first")
	g.hasReaction(first, "✅")
	second := g.say("carol", "general", "!say the second")
	g.hasReaction(second, "✅")
	mine := map[string]any{"thread": g.thread(first).Thread()}

	for _, command := range []string{"rename", "pin", "unpin", "archive", "unarchive", "share"} {
		options := map[string]any{"thread": g.thread(first).Thread()}
		if command == "rename" {
			options["title"] = "carol was here"
		}
		g.commandShows("carol", "thread "+command, options, notTheirs)
	}
	g.commandShows("carol", "thread rename", map[string]any{"title": "Seconds"}, "called **Seconds**") // without an id: the newest here, which is hers
	g.commandShows("bob", "thread rename", map[string]any{"title": "  Release\n 2.1 ", "thread": mine["thread"]}, "called **Release 2.1**")
	if got := g.choices("bob", "thread pin", "thread", "RELEASE"); len(got) != 1 || !strings.HasPrefix(got[0], "Release 2.1 · ") {
		t.Errorf("%q are suggested", got)
	}
	g.commandShows("dan", "thread pin", mine, "Release 2.1", "is pinned")
	if got := g.commandShows("bob", "thread list", nil, "📌", "**Release 2.1**", "**Seconds**"); strings.Index(got, "Release 2.1") > strings.Index(got, "Seconds") {
		t.Errorf("what is pinned is not first: %q", got)
	}
	g.commandShows("bob", "thread unpin", mine, "no longer pinned")
	g.commandShows("bob", "thread archive", mine, "is archived")
	if got := g.commandShows("bob", "thread list", nil, "1 archived", "**Seconds**"); strings.Contains(got, "Release 2.1") {
		t.Errorf("it is still listed: %q", got)
	}
	g.hasReaction(g.reply("bob", g.message("answer", answers(first)).ID, "!say again"), "✅")
	if got := g.commandShows("bob", "thread list", nil, "**Release 2.1**"); strings.Contains(got, "archived") {
		t.Errorf("somebody has said something in it: %q", got)
	}
	g.commandShows("dan", "thread archive", mine, "is archived")
	g.commandShows("dan", "thread unarchive", mine, "back in lists")

	// Not from elsewhere, and not by an id of somebody else's.
	if got := g.command("carol", "random", "thread rename", map[string]any{"thread": string(g.thread(first)), "title": "x"}).Text(); !strings.Contains(got, "there is no session") {
		t.Errorf("from another channel: %q", got)
	}
}

// A link to a conversation is shown to whoever asked for it alone, with what readers see and how it is ended.
func TestDiscordConversationIsShared(t *testing.T) {
	t.Parallel()
	g := withKeepers(t)
	said := g.say("bob", "general", "!say the red door")
	g.hasReaction(said, "✅")
	g.commandShows("carol", "thread share", nil, notTheirs)
	m := g.command("bob", "general", "thread share", map[string]any{"days": 7})
	token := regexp.MustCompile(`https://chorus\.example\.org/shared/([A-Z0-9]+)`).FindStringSubmatch(m.Text())
	if token == nil || m.Flags&discordsim.FlagEphemeral == 0 || !strings.Contains(m.Text(), "Readers see what was said and done") || !strings.Contains(m.Text(), "/thread unshare link:") || !strings.Contains(m.Text(), "expires at") {
		t.Fatalf("%q with the flags %d", m.Text(), m.Flags)
	}
	read := func() bool {
		shown, err := g.app.Service.Handler().Shares().Shared(t.Context(), token[1], 0)
		return err == nil && strings.Contains(fmt.Sprint(shown.Items), "the red door")
	}
	if !read() {
		t.Error("the link shows nothing")
	}
	list := g.commandShows("carol", "thread shares", nil, "can be read with")
	if !strings.Contains(list, "by bob (discord)") {
		t.Errorf("who made the link is not named: %q", list)
	}
	if strings.Contains(list, token[1]) {
		t.Errorf("the address is shown again: %q", list)
	}
	labels := g.choices("bob", "thread unshare", "link", "")
	if len(labels) != 1 || !strings.Contains(labels[0], "can be read with") {
		t.Errorf("%q are suggested", labels)
	}
	link, _, _ := strings.Cut(labels[0], " ")
	g.commandShows("carol", "thread unshare", map[string]any{"link": link}, notTheirs)
	if !read() {
		t.Error("somebody who only talks here has ended the link")
	}
	g.commandShows("bob", "thread unshare", map[string]any{"link": link}, "is revoked")
	if read() {
		t.Error("the link can still be read with")
	}
	g.commandShows("bob", "thread shares", nil, "has ended")
}

// pressed clicks and gives what the message that was clicked shows then.
func (g *guildT) pressed(who string, m discordsim.Message, button int) string {
	g.Helper()
	g.click(who, m.ID, m.CustomIDs()[button])
	now, err := g.WaitMessage(g.soon(), func(now discordsim.Message) bool { return now.ID == m.ID && now.Text() != m.Text() })
	if err != nil {
		g.Fatal(err)
	}
	return now.Text()
}

// Whoever runs this Chorus deletes a conversation of its page from a chat, is asked first, and brings it back. The yes counts once,
// and also when the program was started again since the question. Others do not know that there is such a conversation, and what is
// held on Discord is deleted there.
func TestDiscordConversationIsDeletedAndBroughtBack(t *testing.T) {
	t.Parallel()
	g := withKeepers(t)
	said := g.say("bob", "general", "!say hello")
	g.hasReaction(said, "✅")
	owner := operation.Caller{Principal: chat.Principal{Kind: chat.LocalUser, ID: "web"}, Scopes: operation.Scopes()}
	ops := g.app.Service.Operations()
	made, err := operations.CreateSession.Call(t.Context(), ops, owner, operations.NewSession{Title: "Old plans"})
	if err != nil {
		t.Fatal(err)
	}
	plans := map[string]any{"thread": made.SessionID}
	there := func() bool {
		_, err := operations.GetSession.Call(t.Context(), g.app.Service.Operations(), owner, operations.SessionRef{ID: made.SessionID})
		return err == nil
	}

	for _, who := range []string{"bob", "carol", "dan"} {
		if m := g.command(who, "general", "thread delete", plans); !strings.Contains(m.Text(), "there is no session") || len(m.CustomIDs()) != 0 {
			t.Errorf("%s is told %q", who, m.Text())
		}
	}
	for who, want := range map[string]string{"carol": notTheirs, "bob": "also exists on discord", "dan": "also exists on discord", "ada": "also exists on discord"} {
		if m := g.command(who, "general", "thread delete", nil); !strings.Contains(m.Text(), want) || len(m.CustomIDs()) != 0 {
			t.Errorf("of the conversation here %s is told %q", who, m.Text())
		}
	}
	if got := g.choices("ada", "thread delete", "thread", "old pl"); len(got) != 1 || !strings.HasPrefix(got[0], "Old plans (") {
		t.Errorf("%q are suggested", got)
	}

	m := g.command("ada", "general", "thread delete", plans)
	if !strings.Contains(m.Text(), "Delete Old plans (") || !strings.Contains(m.Text(), "`/thread restore`") || !strings.Contains(fmt.Sprint(m.Components), "label:Delete") || !strings.Contains(fmt.Sprint(m.Components), "label:Keep") {
		t.Fatalf("%q with %v", m.Text(), m.Components)
	}
	if got := g.pressed("ada", m, 1); got != "Nothing was changed." || !there() {
		t.Errorf("a no is answered with %q", got)
	}
	m = g.command("ada", "general", "thread delete", plans)
	button := m.CustomIDs()[0]
	if got := g.pressed("ada", m, 0); !strings.Contains(got, "Old plans") || !strings.Contains(got, "/thread restore thread:"+made.SessionID) || there() {
		t.Fatalf("a yes is answered with %q", got)
	}
	g.commandShows("bob", "thread deleted", nil, "There are no deleted conversations")
	g.commandShows("bob", "thread restore", plans, "there is no session")
	g.commandShows("ada", "thread deleted", nil, "Old plans", made.SessionID, "until ")
	if got := g.choices("ada", "thread restore", "thread", "plans"); len(got) != 1 || !strings.HasPrefix(got[0], "Old plans (") {
		t.Errorf("%q are suggested", got)
	}
	g.commandShows("ada", "thread restore", plans, "is restored")
	if !there() {
		t.Error("it is not back")
	}
	if _, err := g.Click("ada", m.ID, button); err == nil { // a second press of the same button, which came late
		g.message("answered", func(now discordsim.Message) bool { return strings.Contains(now.Text(), "already answered") })
	}
	if !there() {
		t.Error("a second press of a button from before deleted it again")
	}

	m = g.command("ada", "general", "thread delete", plans)
	g.end()
	if err := g.WaitGone(g.soon(), "chorus"); err != nil { // else the press could go to the connection that ends
		t.Fatal(err)
	}
	g.start()
	if got := g.pressed("ada", m, 0); !strings.Contains(got, "is deleted") || there() {
		t.Errorf("the yes to a question from before the restart is answered with %q", got)
	}
}
