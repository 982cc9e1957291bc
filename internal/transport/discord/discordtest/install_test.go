package discordtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"chorus/internal/sim/discordsim"
)

// registered is a bot's command as Discord keeps it.
func (g *guildT) registered(bot, name string) discordsim.Command {
	g.Helper()
	if err := g.WaitCommand(g.soon(), bot, name); err != nil {
		g.Fatal(err)
	}
	req, err := http.NewRequestWithContext(g.Context(), http.MethodGet, g.API()+"/applications/"+g.User(bot).String()+"/commands", nil)
	if err != nil {
		g.Fatal(err)
	}
	req.Header.Set("Authorization", "Bot "+g.Token(bot))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	defer res.Body.Close()
	var list []discordsim.Command
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		g.Fatal(err)
	}
	at := slices.IndexFunc(list, func(c discordsim.Command) bool { return c.Name == name })
	if at < 0 {
		g.Fatalf("%s has no command %s", bot, name)
	}
	return list[at]
}

// Commands had no words of other languages, and could not be taken along by a person.
func TestCommandsAreTranslatedAndInstalled(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus"}, {Name: "pia"}}}, map[string]string{"bots/pia.yaml": "discordToken: ${TOKEN_PIA}\n"})
	ask := g.registered("chorus", "ask")
	if ask.NameLocal["de"] != "frage" || ask.DescLocal["ja"] == "" || !slices.Equal(ask.IntegrationTypes, []int{0, 1}) || !slices.Equal(ask.Contexts, []int{0, 1, 2}) {
		t.Errorf("%+v", ask)
	}
	if agent := g.registered("chorus", "agent"); !slices.Equal(agent.Contexts, []int{0}) || !slices.Equal(agent.IntegrationTypes, []int{0}) || !strings.Contains(toJSON(t, agent.Options), `"anlegen"`) {
		t.Errorf("%+v", agent)
	}
	if pia := g.registered("pia", "pia-status"); pia.NameLocal["fr"] != "pia-statut" {
		t.Errorf("%+v", pia)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Whoever has installed the bot asks it where it is not; the answer comes by direct message, once.
func TestAskWhereTheBotIsNot(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "theirs", Deny: map[string][]string{"chorus": {"view_channel"}}}},
		Bots: []discordsim.BotSpec{{Name: "chorus", Permissions: &[]string{"view_channel", "send_messages", "read_message_history", "add_reactions"}}}}, map[string]string{"shared.yaml": "answer: bound\n"})
	if err := g.Install("bob", "chorus"); err != nil {
		t.Fatal(err)
	}
	if got := g.command("bob", "theirs", "help", nil).Text(); !strings.Contains(got, "I am not in this channel") {
		t.Error(got)
	}
	shown := g.command("bob", "theirs", "ask", map[string]any{"prompt": "say found you"})
	if !strings.Contains(shown.Text(), "by direct message") || shown.Flags&discordsim.FlagEphemeral == 0 {
		t.Errorf("%+v", shown)
	}
	at := g.direct("bob")
	g.message("answer", func(m discordsim.Message) bool { return m.GuildID == 0 && m.Text() == "found you" })
	list, err := g.Messages(at)
	if err != nil || len(list) != 1 {
		t.Errorf("bob was told %v, %v", list, err)
	}
	g.settledRows()
}
