package discordtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
)

// Deleted, hidden and edited-away messages went on to the model until the window rolled, in
// rooms and in conversations by reply.
func TestWhatIsTakenAwayIsGoneFromTheNextRequest(t *testing.T) {
	t.Parallel()
	var before discordsim.ID
	files := roomFiles()
	files["shared.yaml"] = "retention: keep\n" // so that all requests can be rebuilt
	g := inOldGuild(t, discordsim.Options{}, files, func(g *guildT) {
		before = g.say("bob", "general", "said before hunter0")
		g.say("bob", "general", "this stays")
	})
	thread := g.room("general", "chorus")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	deleted := g.say("bob", "general", "my password is hunter1")
	hidden := g.say("bob", "general", "and hunter2")
	edited := g.say("bob", "general", "also hunter3 here")
	g.ask("ada", "general", "chorus", "seen") // all of it was sent to the model
	for _, id := range []discordsim.ID{before, deleted} {
		do(g.Delete("bob", id))
	}
	do(g.React("ada", hidden, "\U0001FAE5"))
	do(g.Edit("bob", edited, "also here"))
	g.has(thread, chat.KindDeleted, 2)
	g.has(thread, chat.KindReacted, 1)
	g.has(thread, chat.KindEdited, 1)
	g.ask("ada", "general", "chorus", "again")
	if got := strings.Join(g.modelSees(thread), "|"); strings.Contains(got, "hunter") || !strings.Contains(got, "this stays") || !strings.Contains(got, "also here") {
		t.Errorf("the model sees %s", got)
	}
	g.replayed(thread)
}

func TestDeletedQuestionOfAConversation(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	question := g.say("ada", "general", "hunter2\n!say first")
	answer := g.message("answer", answers(question))
	thread := g.thread(question)
	if err := g.Delete("ada", question); err != nil {
		t.Fatal(err)
	}
	g.has(thread, chat.KindDeleted, 1)
	g.message("second answer", answers(g.reply("ada", answer.ID, "!say second")))
	if got := strings.Join(g.modelSees(thread), "|"); strings.Contains(got, "hunter2") || !strings.Contains(got, "second") {
		t.Errorf("the model sees %s", got)
	}
}

// replayed checks that every request of a thread is rebuilt as it was sent.
func (g *guildT) replayed(thread chat.ThreadID) {
	g.Helper()
	for r, err := range g.app.Service.Replay(g.Context(), thread) {
		if err != nil {
			g.Fatal(err)
		}
		if !r.Same {
			g.Errorf("event %d: sent %s, rebuilt %s %s", r.Seq, r.Digest, r.Rebuilt, r.Why)
		}
	}
}

// onDisk is everything a home keeps of a thread: its events, its row, and its files.
func (g *guildT) onDisk(thread chat.ThreadID) string {
	g.Helper()
	var all strings.Builder
	for _, ev := range g.events(thread) {
		data, err := chat.EncodeBody(ev.Body)
		if err != nil {
			g.Fatal(err)
		}
		all.Write(append(data, '\n'))
		if b, ok := ev.Body.(chat.Imported); ok {
			data, err := g.app.DB.Blob(g.Context(), b.Blob)
			if err != nil {
				g.Fatal(err)
			}
			all.Write(data)
		}
	}
	row, err := g.app.DB.Thread(g.Context(), thread)
	if err != nil {
		g.Fatal(err)
	}
	all.WriteString(row.Title)
	for _, name := range []string{"log.jsonl", "context.jsonl", ".mirror.json"} {
		data, err := os.ReadFile(filepath.Join(g.app.Home.ThreadDir(thread), name))
		if err != nil {
			g.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// The words of a deleted message stayed in the journal, its files and its title for ever.
func TestRetention(t *testing.T) {
	t.Parallel()
	for _, retention := range []string{"forget", "keep"} {
		t.Run(retention, func(t *testing.T) {
			t.Parallel()
			var before discordsim.ID
			files := roomFiles()
			files["shared.yaml"] = "retention: " + retention + "\n"
			g := inOldGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "desk"}}}, files, func(g *guildT) {
				before = g.say("bob", "general", "said before hunter0")
				g.say("bob", "general", "this stays")
			})
			thread := g.room("general", "chorus")
			deleted := g.say("bob", "general", "my password is hunter1")
			if err := g.Edit("bob", deleted, "my password is hunter1 or hunter2"); err != nil {
				t.Fatal(err)
			}
			g.has(thread, chat.KindEdited, 1)
			g.ask("ada", "general", "chorus", "seen")
			g.until("the files are written", func() bool {
				_, err := os.Stat(filepath.Join(g.app.Home.ThreadDir(thread), "context.jsonl"))
				return err == nil
			})
			if got := g.onDisk(thread); strings.Count(got, "hunter") < 4 {
				t.Fatalf("nothing to forget in %s", got)
			}
			for _, id := range []discordsim.ID{before, deleted} {
				if err := g.Delete("bob", id); err != nil {
					t.Fatal(err)
				}
			}
			g.has(thread, chat.KindDeleted, 2)
			g.ask("ada", "general", "chorus", "again")
			g.until("its files are up to date", func() bool {
				return strings.Contains(g.onDisk(thread), `"again"`) || strings.Contains(g.onDisk(thread), "again")
			})
			g.until("it is forgotten, or kept", func() bool { return strings.Contains(g.onDisk(thread), "hunter") == (retention == "keep") })
			if got := g.onDisk(thread); !strings.Contains(got, "this stays") {
				t.Errorf("more is gone than was deleted: %s", got)
			}
			for r, err := range g.app.Service.Replay(g.Context(), thread) {
				if err != nil {
					t.Fatal(err)
				}
				if retention == "keep" && !r.Same || retention == "forget" && !r.Same && !strings.Contains(r.Why, "were deleted and forgotten") {
					t.Errorf("event %d: %+v", r.Seq, r)
				}
			}
		})
	}
}
