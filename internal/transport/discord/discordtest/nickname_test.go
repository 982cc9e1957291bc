package discordtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/connector/host"
	"chorus/internal/sim/discordsim"
)

func TestDiscordNickname(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "innerName: Claire\n"})
	g.nick("Claire")
	g.write("bots/chorus.yaml", "innerName: Clara\n")
	if err := g.app.Settings.Reread(); err != nil {
		t.Fatal(err)
	}
	g.nick("Clara")
	// A bot that speaks for a second agent in the guild keeps the name it has.
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "is ready")
	g.write("bots/chorus.yaml", "innerName: Carla\n")
	if err := g.app.Settings.Reread(); err != nil {
		t.Fatal(err)
	}
	h := &host.Backend{App: g.app.Host, Bots: []host.Account{{Name: "chorus"}}}
	if got := h.BotName(t.Context(), "chorus", g.Guild().String(), nil); got != "Carla" {
		t.Errorf("alone it would be called %q", got)
	}
	g.hasReaction(g.say("bob", "helper", "say hello"), "✅")
	if got := g.Nick("chorus"); got != "Clara" {
		t.Errorf("with two agents it is called %q", got)
	}
}

func TestDiscordNicknameRefused(t *testing.T) {
	t.Parallel()
	few := []string{"view_channel", "send_messages", "read_message_history", "add_reactions", "use_application_commands"}
	g := kept(t, discordsim.Options{Roles: []discordsim.RoleSpec{{Name: "@everyone", Permissions: few}}, Bots: []discordsim.BotSpec{{Name: "chorus", Permissions: &few}}},
		map[string]string{"bots/chorus.yaml": "innerName: Claire\n"})
	found := ""
	g.until("the refusal is logged", func() bool {
		found = logged(g, "nickname_refused")
		return found != ""
	})
	if !strings.Contains(found, "Change Nickname") {
		t.Errorf("nobody is told what to do: %q", found)
	}
	for range 3 { // the same configuration again is no reason to try again
		if err := g.app.Settings.Reread(); err != nil {
			t.Fatal(err)
		}
	}
	g.hasReaction(g.say("bob", "general", "say hello"), "✅")
	if n := strings.Count(logged(g, "nickname_refused"), "\n"); n > 1 {
		t.Errorf("it was said %d times:\n%s", n, logged(g, "nickname_refused"))
	}
}

// logged are the lines of the log with a word in them.
func logged(g *guildT, word string) string {
	g.Helper()
	files, _ := filepath.Glob(filepath.Join(g.home, "logs", "*"))
	var out strings.Builder
	for _, name := range files {
		data, _ := os.ReadFile(name)
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, word) && !strings.Contains(out.String(), line) { // a file may have several names
				out.WriteString(line)
			}
		}
	}
	return out.String()
}
