package discordtest

import (
	"strings"
	"testing"

	"chorus/internal/sim/discordsim"
)

// What somebody took back or changed is not found by its old words.
func TestDiscordSearchForgetsWhatWasTakenBack(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	gone := g.say("bob", "general", "the password is swordfish\n!say noted")
	g.hasReaction(gone, "✅")
	other := g.say("bob", "general", "the heron is called Herbert\n!say a fine name")
	g.hasReaction(other, "✅")
	if err := g.Delete("bob", gone); err != nil {
		t.Fatal(err)
	}
	if err := g.Edit("bob", other, "the heron is called Hilda\n!say a fine name"); err != nil {
		t.Fatal(err)
	}
	title := func(id discordsim.ID) string {
		row, err := g.app.DB.Thread(t.Context(), g.thread(id))
		if err != nil {
			t.Fatal(err)
		}
		return row.Title
	}
	g.until("both are known", func() bool { return title(gone) == "(deleted)" && strings.Contains(title(other), "Hilda") })
	for _, c := range []struct{ command, message string }{{"thread list", ""}, {"why", gone.String()}, {"why", other.String()}, {"status", ""}} {
		options := map[string]any{}
		if c.message != "" {
			options["message"] = c.message
		}
		if got := g.command("ada", "general", c.command, options).Text(); strings.Contains(got, "swordfish") || strings.Contains(got, "Herbert") {
			t.Errorf("/%s tells old words: %q", c.command, got)
		}
	}
	if got := g.commandShows("ada", "thread list", nil, "(deleted)", "Hilda"); got == "" {
		t.Error("nothing is listed")
	}
	search := func(query string) string {
		t.Helper()
		asked := g.say("ada", "general", `call search_channel {"query":"`+query+`","older":true}`+"\nend\nsay looked")
		g.hasReaction(asked, "✅")
		return g.result(g.thread(asked), "search_channel").Blocks.Text()
	}
	if text := search("password"); strings.Contains(text, "swordfish") {
		t.Errorf("what was taken back is found: %q", text)
	}
	if text := search("Herbert"); strings.Contains(text, "is called Herbert") {
		t.Errorf("old words are found: %q", text)
	}
	if text := search("Hilda"); !strings.Contains(text, "bob: the heron is called Hilda") {
		t.Errorf("new words are not found: %q", text)
	}
}
