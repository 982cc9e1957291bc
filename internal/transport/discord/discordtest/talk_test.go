package discordtest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/service/savedcontext"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
)

func TestDiscordContext(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.commandShows("ada", "context save", nil, "nothing to save")
	g.commandShows("ada", "context history", nil, "Nothing is saved here yet")
	g.commandShows("ada", "context clear", nil, "nothing to clear")

	asked := g.say("ada", "general", "remember the red door\n!say remembered")
	g.hasReaction(asked, "✅")
	other := g.say("bob", "general", "remember the blue door\n!say noted")
	g.hasReaction(other, "✅")
	one, two := g.thread(asked), g.thread(other)
	before := g.lines(one)

	text := g.commandShows("bob", "context save", map[string]any{"description": "doors"}, "4 messages", "Nothing was cleared")
	id := regexp.MustCompile("`([0-9a-f-]{36})`").FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("no id in %q", text)
	}
	if g.lines(one) != before {
		t.Error("a save cleared something")
	}
	found, err := g.app.DB.SavedContexts(t.Context(), store.ContextFilter{Agent: chat.DefaultAgent})
	if err != nil || len(found) != 1 || found[0].ID != id[1] || found[0].Messages != 4 || found[0].Description != "doors" || found[0].Summary == "" || found[0].Summary == savedcontext.NoSummary {
		t.Fatalf("the row is %+v, %v", found, err)
	}
	data, err := os.ReadFile(found[0].File)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil || file["session_id"] != id[1] || file["message_count"] != 4.0 || len(file["messages"].([]any)) != 4 {
		t.Errorf("the file is %s, %v", data, err)
	}
	if sums, err := g.app.DB.LedgerEntries(t.Context(), "save-"+id[1]); err != nil || len(sums) != 1 || sums[0].How == "" || sums[0].Payer.ID != g.User("bob").String() {
		t.Errorf("the summary stands in the ledger as %+v, %v", sums, err)
	}
	g.commandShows("ada", "context history", nil, "`"+id[1][:8]+"`", "doors", "4 messages")

	// Whoever keeps no order clears their own conversations only.
	g.commandShows("bob", "context clear", nil, "2 messages of 1 conversation")
	if g.lines(two) != "" || g.lines(one) != before {
		t.Errorf("left are %q and %q", g.lines(one), g.lines(two))
	}
	g.hasReaction(g.reply("ada", g.message("answer", answers(asked)).ID, "and the green one\n!say that too"), "✅")
	later := g.say("ada", "general", "something else\n!say yes")
	g.hasReaction(later, "✅")
	g.commandShows("ada", "context restore", map[string]any{"session_id": "zzz"}, "no context saved here", "/context history")
	g.commandShows("ada", "context restore", map[string]any{"session_id": id[1][:6]}, "4 messages in 2 conversations", "1 conversation began later")
	if g.lines(one) != before || !strings.Contains(g.lines(two), "blue door") || g.lines(g.thread(later)) != "" {
		t.Errorf("restored are %q, %q and %q", g.lines(one), g.lines(two), g.lines(g.thread(later)))
	}
	g.hasReaction(g.reply("bob", g.message("answer", answers(other)).ID, "go on\n!say on it goes"), "✅")
	if got := g.lines(two); !strings.Contains(got, "blue door") || !strings.HasSuffix(got, "on it goes") {
		t.Errorf("the restored conversation goes on as %q", got)
	}

	// Whoever saved it deletes it, and is asked first.
	choices := g.choices("bob", "context delete", "context", "doors")
	if len(choices) != 1 || !strings.Contains(choices[0], "doors") {
		t.Errorf("%q are suggested", choices)
	}
	named := map[string]any{"context": id[1][:8]}
	if got := g.pressed("ada", g.command("ada", "general", "context delete", named), 0); !strings.Contains(got, "only whoever saved it") {
		t.Errorf("somebody else is told %q", got)
	}
	m := g.command("bob", "general", "context delete", named)
	if !strings.Contains(m.Text(), id[1][:8]) || !strings.Contains(m.Text(), "doors") {
		t.Errorf("the question is %q", m.Text())
	}
	if got := g.pressed("bob", m, 1); got != "Nothing was changed." {
		t.Errorf("a no is answered with %q", got)
	}
	if got := g.pressed("bob", g.command("bob", "general", "context delete", named), 0); !strings.Contains(got, "is deleted") {
		t.Errorf("a yes is answered with %q", got)
	}
	g.commandShows("bob", "context history", nil, "Nothing is saved here yet")
	if _, err := os.Stat(found[0].File); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// A summary that fails costs the summary, not what is saved; what runs is not touched.
func TestDiscordContextWithoutSummary(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "retry: {baseDelayMs: 1}\n"})
	g.hasReaction(g.say("ada", "general", "hello\n!fail overloaded once\n!say hi"), "✅")
	g.commandShows("ada", "context save", nil, "2 messages", savedcontext.NoSummary)
	running := g.say("ada", "general", "say begun\nwait")
	g.hasReaction(running, "⚙️")
	g.commandShows("ada", "context clear", nil, "2 messages of 1 conversation", "1 conversation is still running")
	g.commandShows("ada", "context restore", map[string]any{"session_id": firstSaved(g)}, "is running")
	g.commandShows("ada", "stop", nil, "Stopped 1")
}

func firstSaved(g *guildT) string {
	found, err := g.app.DB.SavedContexts(g.Context(), store.ContextFilter{})
	if err != nil || len(found) == 0 {
		g.Fatalf("nothing saved: %v", err)
	}
	return found[0].ID
}

func TestDiscordContextProposals(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.say("ada", "general", "the red door\n!say yes")
	g.hasReaction(asked, "✅")
	g.commandShows("ada", "context save", nil, "Saved")
	g.proposes("context restore", map[string]any{"session_id": firstSaved(g)[:3]}, "session_id", firstSaved(g))
	g.proposes("context clear", map[string]any{"thread": "red"}, "thread", asked.String())
	g.proposes("context clear", map[string]any{"thread": "nothing like it"}, "thread")
}
