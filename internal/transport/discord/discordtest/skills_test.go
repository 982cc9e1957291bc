package discordtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/sim/discordsim"
)

// A channel's skill is called by its name there, and nowhere else.
func TestSkillIsCalledInItsChannel(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	first := g.say("ada", "general", "!say hello")
	g.hasReaction(first, "✅")
	row, err := g.app.DB.Thread(t.Context(), g.thread(first))
	if err != nil {
		t.Fatal(err)
	}
	where := g.app.Setup.SkillsAt(row.ID, row.Dir)
	dir := filepath.Join(where.Channel, "skills", "greet")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: greet\ndescription: greets\ndisable-model-invocation: true\n---\nGreet $ARGUMENTS in verse\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	list, _ := g.app.Skills.Find(where)
	if len(list) != 1 || list[0].Source.Scope != "channel" {
		t.Fatalf("%+v", list)
	}
	if err := g.app.Skills.Approve(list[0], list[0].Tree.Digest, "local:ada"); err != nil {
		t.Fatal(err)
	}
	told := func(message discordsim.ID) string {
		g.hasReaction(message, "✅")
		for _, ev := range g.events(g.thread(message)) {
			if n, ok := ev.Body.(chat.Noted); ok && n.What == "called skill" {
				return n.Text
			}
		}
		return ""
	}
	for _, text := range []string{"/greet ada\n!say hi", g.mention("chorus") + " /greet ada\n!say hi"} {
		if got := told(g.say("ada", "general", text)); !strings.Contains(got, "Greet ada") {
			t.Errorf("%q: the model is told %q", text, got)
		}
	}
	if got := told(g.say("ada", "random", "/greet ada\n!say hi")); got != "" {
		t.Errorf("elsewhere it is told %q", got)
	}
}
