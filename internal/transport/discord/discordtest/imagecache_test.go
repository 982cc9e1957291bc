package discordtest

import (
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/polltest"
	"chorus/internal/sim/discordsim"
)

// Fetched pictures were kept nowhere, so that each bot fetched them anew. They lie in
// cache/images for a day, and go with their message.
func TestFetchedPicturesAreKept(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.post("ada", "general", discordsim.Said{Text: "look\n!say seen", Files: map[string][]byte{"a.png": aPicture(t), "b.txt": []byte("words")}})
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Content == "seen" })
	kept := func() []string {
		names, err := filepath.Glob(filepath.Join(g.app.Home.Images(), "*"))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	names := kept()
	if len(names) != 1 || filepath.Ext(names[0]) != ".png" {
		t.Fatalf("kept: %v", names)
	}
	data, err := os.ReadFile(names[0])
	if err != nil || len(data) != len(aPicture(t)) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if err := g.Delete("ada", asked); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "the picture goes with its message", func() bool { return len(kept()) == 0 })
}
