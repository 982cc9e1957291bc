package discordtest

import (
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/runsetup"
	"chorus/internal/sim/discordsim"
)

// notedThreads are what a thread's runs were told about the agent's other threads.
func (g *guildT) notedThreads(thread chat.ThreadID) (out []string) {
	g.Helper()
	for ev, err := range g.app.DB.AllEvents(g.Context(), thread, 0) {
		if err != nil {
			g.Fatal(err)
		}
		if n, ok := ev.Body.(chat.Noted); ok && n.What == runsetup.OtherThreads {
			out = append(out, n.Text)
		}
	}
	return out
}

func TestOtherThreadsAreNoted(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	alone := g.say("ada", "general", "say alone")
	g.hasReaction(alone, "✅")
	if got := g.notedThreads(g.thread(alone)); len(got) != 0 {
		t.Errorf("one that is alone was told %q", got)
	}
	running := g.say("ada", "general", "say begun\nwait")
	g.hasReaction(running, "⚙️")
	card := g.say("ada", "random", "call bash {\"command\":\"echo hi\"}")
	g.message("card", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "May I ") })
	second := g.say("bob", "general", "say beside it")
	g.hasReaction(second, "✅")
	got := strings.Join(g.notedThreads(g.thread(second)), "")
	for _, want := range []string{running.String() + ` "say begun wait": running, step 1, for `, "- one in another place: waiting for approval, step 1, for "} {
		if !strings.Contains(got, want) {
			t.Errorf("it was told %q without %q", got, want)
		}
	}
	if strings.Contains(got, "echo hi") || strings.Contains(got, card.String()) || strings.Contains(got, "workspace") {
		t.Errorf("another room's words or names were told, or that folders are shared which are not: %q", got)
	}
	// The same person may hear of their own where nobody else listens.
	own := g.say("ada", "general", "say mine")
	g.hasReaction(own, "✅")
	if got := strings.Join(g.notedThreads(g.thread(own)), ""); strings.Contains(got, "echo hi") {
		t.Errorf("ada's words of another room were told where all can ask for them: %q", got)
	}
	alone = g.say("ada", g.direct("ada"), "say mine")
	g.hasReaction(alone, "✅")
	if got := strings.Join(g.notedThreads(g.thread(alone)), ""); !strings.Contains(got, "echo hi") {
		t.Errorf("ada was not told of her own: %q", got)
	}
	g.commandShows("ada", "stop", map[string]any{"all": true}, "Stopped 1")
	g.hasReaction(running, "❌")
	if text := g.command("ada", "random", "stop", nil).Text(); !strings.Contains(text, "Stopped 1") {
		t.Fatal(text)
	}
	g.hasReaction(card, "❌")
	g.hasReaction(g.reply("bob", g.message("answer", answers(second)).ID, "say later"), "✅")
	if list := g.notedThreads(g.thread(second)); len(list) != 2 || list[1] != "None is active any more." {
		t.Errorf("later it was told %q", list)
	}
}
