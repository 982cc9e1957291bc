package discordtest

import (
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
	g := inOldGuild(t, discordsim.Options{}, roomFiles(), func(g *guildT) {
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
