package discordtest

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
)

// listing waits until lists show a conversation in one way.
func (g *guildT) listing(thread chat.ThreadID, want string) {
	g.Helper()
	got := ""
	g.until("the conversation is listed as "+want, func() bool {
		row, err := g.app.DB.Thread(g.Context(), thread)
		if err != nil {
			g.Fatal(err)
		}
		got = row.Listing
		return got == want
	})
}

// words are all events of a conversation as the journal has them.
func (g *guildT) words(thread chat.ThreadID) string {
	g.Helper()
	var all strings.Builder
	for _, ev := range g.events(thread) {
		data, err := chat.EncodeBody(ev.Body)
		if err != nil {
			g.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// kept counts the rows of the database that have a word.
func (g *guildT) kept(word string) (n int64) {
	g.Helper()
	for _, query := range []string{`SELECT count(*) FROM events WHERE body LIKE ?`, `SELECT count(*) FROM outbox WHERE body LIKE ?`, `SELECT count(*) FROM threads WHERE title LIKE ?`} {
		found, err := g.app.DB.Count(g.Context(), query, "%"+word+"%")
		if err != nil {
			g.Fatal(err)
		}
		n += int64(found)
	}
	return n
}

// inThread is a guild in which bob and an agent talk in a thread of general.
func inThread(t *testing.T, more string) (*guildT, discordsim.ID) {
	t.Helper()
	g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: thread\n", "shared.yaml": more})
	asked := g.say("bob", "general", "!say first")
	g.hasReaction(asked, "✅")
	g.hasReaction(g.say("bob", asked.String(), "my password is hunter1\n!say second"), "✅")
	return g, asked
}

// A thread that was deleted on Discord left its words in the journal for ever. What people said in it is forgotten at once, as it is of
// single messages; the conversation is deleted, and erased after 30 days. What stands elsewhere stays.
func TestDiscordDeletedThread(t *testing.T) {
	t.Parallel()
	g, asked := inThread(t, "")
	thread := g.threadOf("general", asked)
	other := g.say("bob", "general", "the weather\n!say fine")
	g.hasReaction(other, "✅")
	if err := g.DeleteChannel(asked.String()); err != nil {
		t.Fatal(err)
	}
	g.listing(thread, store.Deleted)
	if got := g.words(thread); strings.Contains(got, "hunter1") || !strings.Contains(got, "first") || !strings.Contains(got, "second") {
		t.Errorf("the journal has %s", got)
	}
	if got := g.words(g.threadOf("general", other)); !strings.Contains(got, "the weather") {
		t.Errorf("of another conversation the journal has %s", got)
	}
	g.listing(g.threadOf("general", other), "")
	if n, err := g.app.Service.EraseDeleted(t.Context(), time.Now().AddDate(0, 0, 31)); n != 1 || err != nil {
		t.Fatalf("%d were erased, %v", n, err)
	}
	if n := g.kept("second"); n != 0 {
		t.Errorf("%d rows have words of it", n)
	}
	g.hasReaction(g.say("bob", "general", "!say and on"), "✅")
}

// A deletion while nobody was connected is noticed at the next start, and one that was being seen to when the program was killed is seen to its end.
func TestDiscordThreadDeletedWhileAway(t *testing.T) {
	t.Parallel()
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		g, asked := inThread(t, "")
		g.end()
		if err := g.DeleteChannel(asked.String()); err != nil {
			t.Fatal(err)
		}
		g.start()
		g.listing(g.threadOf("general", asked), store.Deleted)
		if g.kept("hunter1") != 0 {
			t.Error("the words are there")
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		g, asked := inThread(t, "")
		// All that the first process came to: it has noted the deletion.
		if err := g.app.DB.Remember(t.Context(), "removed/discord/chorus", asked.String(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		g.end()
		g.start()
		g.listing(g.threadOf("general", asked), store.Deleted)
		if g.kept("hunter1") != 0 {
			t.Error("the words are there")
		}
		g.until("nothing is left to be done", func() bool {
			memos, err := g.app.DB.Memos(t.Context(), "removed/discord/chorus")
			return err == nil && len(memos) == 0
		})
	})
}

// Where nobody shall bring deleted conversations back, one that is deleted on Discord is erased at once. Somebody who answers what the agent
// said in the channel above begins another one.
func TestDiscordDeletedThreadIsErasedAtOnce(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: thread\n", "shared.yaml": "keepDeleted: 0\n"})
	goOn := g.pauseModel(0)
	asked := g.say("bob", "general", "my secret is hunter2\n!say for the channel")
	thread := g.threadOf("general", asked)
	g.message("status", func(m discordsim.Message) bool { return m.ChannelID == asked && m.Text() != "" })
	if err := g.DeleteChannel(asked.String()); err != nil {
		t.Fatal(err)
	}
	g.listing(thread, store.Deleted)
	goOn()
	general := g.Channel("general")
	answer := g.message("answer in the channel", func(m discordsim.Message) bool { return m.ChannelID == general && m.Text() == "for the channel" })
	g.listing(thread, store.Erased)
	g.until("nothing is kept of it", func() bool { return g.kept("hunter")+g.kept("for the channel") == 0 })
	g.hasReaction(g.reply("bob", answer.ID, "!say another"), "✅")
}

// A channel that is deleted takes along its room and the threads below it. Where the words of deleted messages are kept they stay in the
// journal, and so does the conversation.
func TestDiscordDeletedChannel(t *testing.T) {
	t.Parallel()
	for _, retention := range []string{"forget", "keep"} {
		t.Run(retention, func(t *testing.T) {
			t.Parallel()
			files := roomFiles()
			files["shared.yaml"] = "retention: " + retention + "\n"
			g := inOldGuild(t, discordsim.Options{}, files, func(g *guildT) { g.say("bob", "general", "said before hunter0") })
			said := g.say("bob", "general", "my password is hunter1")
			g.ask("ada", "general", "chorus", "seen")
			thread := g.room("general", "chorus")
			if got := g.modelSees(thread); !strings.Contains(strings.Join(got, "|"), "hunter0") {
				t.Fatalf("nothing to forget in %q", got)
			}
			side, err := g.OpenThread("bob", said, "side")
			if err != nil {
				t.Fatal(err)
			}
			g.say("ada", side.String(), g.mention("chorus")+" hunter2\n!say below")
			g.message("answer below", func(m discordsim.Message) bool { return m.Text() == "below" })
			below := chat.ThreadID(strings.Replace(string(thread), ":"+g.Channel("general").String()+"@", ":"+side.String()+"@", 1))
			if err := g.DeleteChannel("general"); err != nil {
				t.Fatal(err)
			}
			g.has(thread, chat.KindDeleted, 2)
			g.has(below, chat.KindDeleted, 1)
			if retention == "keep" {
				g.listing(thread, "")
				if got := g.words(thread); !strings.Contains(got, "hunter1") {
					t.Errorf("the journal has %s", got)
				}
				return
			}
			g.listing(thread, store.Deleted)
			g.listing(below, store.Deleted)
			if n := g.kept("hunter"); n != 0 {
				t.Errorf("%d rows have the words", n)
			}
		})
	}
}

// In a thread that somebody opened on an answer people go on with that conversation. When the thread is deleted the conversation stays, without
// what was said there.
func TestDiscordDeletedThreadOfAnAnswer(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.say("bob", "general", "the weather\n!say fine")
	answer := g.message("answer", answers(asked))
	thread := g.thread(asked)
	side, err := g.OpenThread("bob", answer.ID, "side")
	if err != nil {
		t.Fatal(err)
	}
	g.hasReaction(g.say("bob", side.String(), "hunter1\n!say more"), "✅")
	if err := g.DeleteChannel(side.String()); err != nil {
		t.Fatal(err)
	}
	g.has(thread, chat.KindDeleted, 2) // what bob said, and the answer
	g.hasReaction(g.reply("bob", answer.ID, "!say and on"), "✅")
	if got := strings.Join(g.modelSees(thread), "|"); strings.Contains(got, "hunter1") || strings.Contains(got, "more") || !strings.Contains(got, "the weather") || !strings.Contains(got, "and on") {
		t.Errorf("the model sees %s", got)
	}
	if got := g.words(thread); strings.Contains(got, "hunter1") {
		t.Errorf("the journal has %s", got)
	}
}
