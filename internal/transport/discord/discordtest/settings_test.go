package discordtest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/room"
	"chorus/internal/sim/discordsim"
)

// proposes looks at what ada is offered while she types into an option: these, or nothing at all.
func (g *guildT) proposes(command string, options map[string]any, focus string, want ...string) {
	g.Helper()
	name, _, _ := strings.Cut(command, " ")
	if err := g.WaitCommand(g.soon(), "chorus", name); err != nil {
		g.Fatal(err)
	}
	i, err := g.Complete("ada", "general", "chorus", command, options, focus)
	if err != nil {
		g.Fatal(err)
	}
	got := g.answered("/"+command, i)
	var list []struct{ Value string }
	if err := json.Unmarshal(got.Choices, &list); err != nil {
		g.Fatal(err)
	}
	var values []string
	for _, c := range list {
		values = append(values, c.Value)
	}
	if len(want) == 0 && len(values) > 0 {
		g.Errorf("/%s %v offers %v", command, options, values)
	}
	for _, w := range want {
		if !slices.Contains(values, w) {
			g.Errorf("/%s %v offers %v and not %s", command, options, values, w)
		}
	}
}

func roomChannel(g *guildT, name string) room.Channel {
	return room.Channel{Guild: g.Guild().String(), ID: "1", Name: name}
}

func TestDiscordSettings(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("ada", "settings show", nil, "- model: `demo/script` (config/shared.yaml:", "- permissions: `standard` (built in)", "**demo**: needs none")
	g.hasReaction(g.say("bob", "general", "say by the script"), "✅")
	g.commandShows("ada", "settings model", map[string]any{"model": "ech"}, "model of this server is now `demo/echo`", "set with `/settings` here; effective from the next run")
	asked := g.say("bob", "general", "say this again")
	g.message("echo", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "say this again" })
	g.hasReaction(asked, "✅")
	g.commandShows("ada", "settings model", map[string]any{"model": "nonsense"}, "unknown model")
	g.commandShows("ada", "settings permissions", map[string]any{"profile": "locked"}, "permissions of this server is now `locked`")
	asked = g.say("bob", "general", "say under new rules")
	g.hasReaction(asked, "✅")
	started := g.started(g.thread(asked))
	if started.Settings.Profile != "locked" || started.Model != "demo/echo" {
		t.Errorf("the next run had %s on %s", started.Settings.Profile, started.Model)
	}
	g.commandShows("ada", "settings permissions", map[string]any{"profile": "lokced"}, `did you mean "locked"?`)
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "permissions `locked`")
	g.commandShows("ada", "settings permissions", map[string]any{"profile": "guarded"}, "These agents keep their own value: dispatcher, helper.")
	g.end()
	g.start() // it is durable
	g.commandShows("ada", "settings show", nil, "- model: `demo/echo` (set with `/settings` here)", "- permissions: `guarded`")
	g.commandShows("ada", "settings model", map[string]any{"model": "default"}, "`demo/script`", "config/shared.yaml")
	g.commandShows("ada", "settings permissions", map[string]any{"profile": "default"}, "`standard`")
	g.proposes("settings model", map[string]any{"model": "demo"}, "model", "demo/echo", "demo/guide")
	g.proposes("settings permissions", map[string]any{"profile": ""}, "profile", "open", "standard", "locked")
}

// started is how a thread's last run began.
func (g *guildT) started(thread chat.ThreadID) chat.RunStarted {
	g.Helper()
	events, err := g.app.DB.Events(g.Context(), thread, 0, 1000)
	if err != nil {
		g.Fatal(err)
	}
	var out chat.RunStarted
	for _, e := range events {
		if s, ok := e.Body.(chat.RunStarted); ok {
			out = s
		}
	}
	return out
}

// Who keeps the server on Discord is not thereby somebody who may give rights: nobody gives
// more than they have. Nobody but an editor could take rights away, either; everybody who has
// the command can.
func TestDiscordNobodyGivesMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	o := discordsim.Options{Roles: []discordsim.RoleSpec{{Name: "warden", Permissions: []string{"manage_guild", "manage_channels"}}},
		People: []discordsim.PersonSpec{{Name: "ada", Owner: true}, {Name: "bob", Roles: []string{"warden"}}}}
	g := inGuild(t, o, map[string]string{"shared.yaml": "permissions: open\naccess:\n  discord/role:warden: standard\neditors: ['discord/role:warden']\n"})
	for _, c := range []struct{ who, command, option, value, want string }{
		{"bob", "settings permissions", "profile", "open", "you have the rights of standard and cannot give open"},
		{"ada", "settings permissions", "profile", "guarded", "is now `guarded`"},
		{"ada", "settings permissions", "profile", "standard", "you may not change permissions"},
		{"bob", "settings permissions", "profile", "standard", "is now `standard`"},
		{"bob", "settings permissions", "profile", "guarded", "cannot give guarded"},
		{"ada", "settings permissions", "profile", "locked", "is now `locked`"},
		{"ada", "settings permissions", "profile", "standard", "you may not change permissions"},
		{"bob", "settings permissions", "profile", "default", "cannot give open"},
	} {
		g.commandShows(c.who, c.command, map[string]any{c.option: c.value}, c.want)
	}
	g.commandShows("bob", "agent init", map[string]any{"name": "helper", "permissions": "open"}, "cannot give open")
	g.commandShows("bob", "agent init", map[string]any{"name": "helper", "permissions": "standard"}, "permissions `standard`")
	g.commandShows("bob", "agent config", map[string]any{"name": "helper", "key": "permissions", "value": "open"}, "cannot give open")
	lines := g.commandShows("ada", "access", map[string]any{"person": g.User("bob").String()}, "may give agents: `standard`, `locked`.")
	if strings.Contains(lines, "You") {
		t.Errorf("%s", lines)
	}
}

func TestDiscordAccess(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{"shared.yaml": "channels:\n  \"*\": guarded\n"})
	g.commandShows("bob", "access", nil, "**What chorus does when you say so here**", "- `standard`: reads and writes its workspace", "- `guarded`:",
		"Each of these must allow an action", "the agent chorus: `standard` (built in)", "this channel: `guarded` (`channels` of the configuration: *)",
		"the person who asks: `standard` (built in for everybody on Discord", "Approvals are answered by: the person who asked, the person at the terminal.", "You have no right to give agents more permissions.")
	g.commandShows("dan", "access", nil, "- `locked`: reads its workspace and changes nothing", "access` of the configuration: discord/role:guest", "roles that count: builder, guest")
	g.commandShows("ada", "access", nil, "the person who asks: `open`", "You may give agents: `open`, `standard`, `guarded`, `locked`.")
	g.commandShows("bob", "access", map[string]any{"person": g.User("dan").String()}, "Only people who may manage the server")
	g.commandShows("ada", "access", map[string]any{"person": g.User("dan").String()}, "<@"+g.User("dan").String()+"> has no right", "when they say so")
}

func TestDiscordValidateKeys(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{"shared.yaml": "vendors:\n  local:\n    config:\n      openai_api_key: test-key\n      api_base: http://127.0.0.1:1/v1\n    provides: [mine]\n"})
	text := g.commandShows("ada", "settings validate-keys", nil, "- **local**: ", "- **demo**: needs none")
	if strings.Contains(text, "test-key") {
		t.Errorf("the key is shown: %s", text)
	}
}

// An agent on Discord changes itself only as far as whoever asked may, and asks first.
func TestDiscordSelfEdit(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("carol", "agent init", map[string]any{"name": "helper", "model": "demo/script"}, "is ready")
	asked := g.say("bob", "helper", "call self_edit_permissions {\"profile\":\"open\"}\nend\nsay {{last}}")
	g.hasReaction(asked, "✅")
	g.message("refusal", func(m discordsim.Message) bool {
		return answers(asked)(m) && strings.Contains(m.Text(), "may not change permissions")
	})
	asked = g.say("ada", "helper", "call self_edit_system_prompt {\"new_prompt\":\"You sing.\"}\nend\nsay I sing")
	card := g.message("card", func(m discordsim.Message) bool {
		return strings.Contains(m.Text(), "self_edit:system_prompt") && strings.Contains(m.Text(), "+You sing.") && len(m.CustomIDs()) > 0
	})
	g.click("ada", card.ID, "c1:yes:"+approvalOf(t, card))
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "I sing" })
	g.hasReaction(asked, "✅")
	again := g.say("bob", "helper", "say la la")
	g.hasReaction(again, "✅")
	head, err := g.app.Setup.Head(g.started(g.thread(again)).Head)
	if err != nil || !strings.Contains(head.System, "You sing.") {
		t.Errorf("the next run begins with %v, %v", head, err)
	}
}
