package app

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
	g.signed(gone, "✅")
	other := g.say("bob", "general", "the heron is called Herbert\n!say a fine name")
	g.signed(other, "✅")
	if err := g.Delete("bob", gone); err != nil {
		t.Fatal(err)
	}
	if err := g.Edit("bob", other, "the heron is called Hilda\n!say a fine name"); err != nil {
		t.Fatal(err)
	}
	g.until("both are known", func() bool { return len(g.events(g.thread(gone))) > 0 && g.changes(gone) == 1 && g.changes(other) == 1 })
	search := func(query string) string {
		t.Helper()
		asked := g.say("ada", "general", `call search_channel {"query":"`+query+`","older":true}`+"\nend\nsay looked")
		g.signed(asked, "✅")
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

// changes is how often a message was edited or deleted.
func (g *guildT) changes(id discordsim.ID) (n int) {
	for _, ev := range g.events(g.thread(id)) {
		if k := string(ev.Body.Kind()); ev.PlatformID == id.String() && (k == "edited" || k == "deleted") {
			n++
		}
	}
	return n
}
