package discordtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/agents"
	"chorus/internal/connector/host"
	"chorus/internal/runsetup"
	"chorus/internal/sim/discordsim"
)

// kept is a guild with somebody who keeps it (ada), somebody who may make channels (carol),
// a guest who may as well (dan), and anybody (bob).
func kept(t *testing.T, o discordsim.Options, files map[string]string) *guildT {
	t.Helper()
	o.Roles = append(o.Roles, discordsim.RoleSpec{Name: "keeper", Permissions: []string{"manage_guild", "manage_channels"}},
		discordsim.RoleSpec{Name: "builder", Permissions: []string{"manage_channels"}}, discordsim.RoleSpec{Name: "guest"})
	o.People = []discordsim.PersonSpec{{Name: "ada", Owner: true, Roles: []string{"keeper"}}, {Name: "bob"},
		{Name: "carol", Roles: []string{"builder"}}, {Name: "dan", Roles: []string{"builder", "guest"}}}
	if o.Channels == nil {
		o.Channels = []discordsim.ChannelSpec{{Name: "lab", Type: "category"}, {Name: "general", Parent: "lab"}, {Name: "random"}}
	}
	files["shared.yaml"] += "access:\n  discord/role:keeper: open\n  discord/role:guest: locked\neditors: [local, 'discord/role:keeper']\n"
	return inGuild(t, o, files)
}

func TestDiscordAgentInit(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	text := g.commandShows("carol", "agent init", map[string]any{"name": "helper", "model": "demo/script", "prompt": "You are kind."},
		"**helper** is ready in <#", "model `demo/script`, permissions `standard`")
	channel := g.Channel("helper")
	if channel == 0 || !strings.Contains(text, "<#"+channel.String()+">") {
		t.Fatalf("no channel in %q", text)
	}
	if parent := g.Parent("helper"); parent != g.Channel("lab") {
		t.Errorf("the channel stands in %v", parent)
	}
	asked := g.say("bob", "helper", "say at your service")
	g.message("answer in the agent's channel", answers(asked))
	row, err := g.app.Service.FindThread(t.Context(), asked.String())
	if err != nil || row.Agent != "helper" || row.Dir != g.app.Settings.Agents().Workspace("helper") {
		t.Errorf("answered by %q in %s: %v", row.Agent, row.Dir, err)
	}
	a, err := g.app.Settings.Agents().Get(t.Context(), "helper")
	if err != nil || a.SystemPrompt != "You are kind." || a.Model != "demo/script" {
		t.Errorf("%+v, %v", a, err)
	}
	if err := g.Rename("helper", "front-desk"); err != nil {
		t.Fatal(err)
	}
	renamed := g.say("bob", "front-desk", "say still here")
	g.message("answer in the renamed channel", answers(renamed))
	if got := g.thread(renamed).Agent(); got != "helper" {
		t.Errorf("in its renamed channel %s answers", got)
	}
	if err := g.Rename("front-desk", "helper"); err != nil {
		t.Fatal(err)
	}
	// The same again, as after a crash between any two steps.
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "already existed", "the agent was not changed")
	if err := g.DeleteChannel("helper"); err != nil {
		t.Fatal(err)
	}
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "The agent already existed and now has a channel")
	if at := g.app.Host.LivesIn("helper"); at.Channel != g.Channel("helper").String() || at.Guild != g.Guild().String() {
		t.Errorf("it lives in %+v", at)
	}
	g.commandShows("carol", "agent init", map[string]any{"name": "random"}, "The channel already existed and is used.")
	g.commandShows("carol", "agent list", nil, "**helper** in <#", "You are kind.", "**random**")
}

func TestDiscordAgentInitRefuses(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{Bots: []discordsim.BotSpec{{Name: "chorus", Permissions: &[]string{"view_channel", "send_messages", "read_message_history", "add_reactions"}}}}, map[string]string{})
	if _, err := g.app.Gate.CreateAgent(t.Context(), agents.Agent{Name: "house"}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.app.Gate.CreateAgent(t.Context(), agents.Agent{Name: "foreign"}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.app.Settings.Agents().Mark(t.Context(), "foreign", host.GuildMark, "110000000000000002"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who     string
		options map[string]any
		want    string
	}{
		{"carol", map[string]any{"name": "Not_Good"}, "cannot be an agent's name"},
		{"carol", map[string]any{"name": "x1", "model": "zzz"}, "unknown model"},
		{"carol", map[string]any{"name": "x1", "permissions": "opne"}, `did you mean "open"?`},
		{"carol", map[string]any{"name": "x1", "permissions": "/etc/passwd"}, "there is no profile"},
		{"carol", map[string]any{"name": "x1", "permissions": "open"}, "you may not change permissions"},
		{"carol", map[string]any{"name": "house"}, "the name house is taken"},
		{"ada", map[string]any{"name": "foreign"}, "the name foreign is taken"},
		{"dan", map[string]any{"name": "x1"}, "you have the rights of locked here"},
		{"carol", map[string]any{"name": "x1"}, "Give my role the permission **Manage Channels**"},
	} {
		g.commandShows(c.who, "agent init", c.options, c.want)
	}
	if runsetup.IsDir(g.app.Home.AgentDir("x1")) || g.Channel("x1") != 0 {
		t.Error("something was made all the same")
	}
	if err := g.WaitCommand(g.soon(), "chorus", "agent"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Slash("bob", "general", "chorus", "agent list", nil); err == nil {
		t.Error("Discord lets anybody at the agents")
	}
	if _, err := g.Slash("carol", "general", "chorus", "settings show", nil); err == nil {
		t.Error("Discord lets people at the settings who do not manage the server")
	}
	list := g.commandShows("ada", "agent list", nil, "**house**")
	if strings.Contains(list, "foreign") {
		t.Errorf("another server's agent is told of: %s", list)
	}
	// A channel that is called like another server's agent is not that agent's.
	if got := (&host.Backend{App: g.app.Host, Bots: []host.Account{{Name: "chorus"}}}).ChannelAgent(roomChannel(g, "foreign")); got != "" {
		t.Errorf("the channel is %s's", got)
	}
}

func TestDiscordAgentDestroy(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	for _, name := range []string{"helper", "scribe"} {
		g.commandShows("carol", "agent init", map[string]any{"name": name}, "is ready")
	}
	asked := g.command("carol", "general", "agent destroy", map[string]any{"name": "helper"})
	if !strings.Contains(asked.Text(), "its folder and everything in it is deleted") || len(asked.CustomIDs()) == 0 {
		t.Fatalf("the question is %q", asked.Text())
	}
	button := func(keep, name string) string {
		return "c1:retire:" + g.User("carol").String() + ":" + keep + ":" + name
	}
	g.click("carol", asked.ID, button("leave", "helper"))
	g.message("answer", func(m discordsim.Message) bool {
		return m.ID == asked.ID && m.Text() == "**helper** stays." && len(m.CustomIDs()) == 0
	})
	if !runsetup.IsDir(g.app.Home.AgentDir("helper")) {
		t.Fatal("left, and gone")
	}
	asked = g.command("carol", "general", "agent destroy", map[string]any{"name": "helper"})
	g.click("carol", asked.ID, button("gone", "helper"))
	g.message("answer", func(m discordsim.Message) bool {
		return m.ID == asked.ID && m.Text() == "**helper** is gone." && len(m.CustomIDs()) == 0
	})
	if runsetup.IsDir(g.app.Home.AgentDir("helper")) || g.Channel("helper") != 0 {
		t.Error("it is still there")
	}
	// A crash after the channel went: the same order ends it. Files are kept where that was wanted.
	if err := g.DeleteChannel("scribe"); err != nil {
		t.Fatal(err)
	}
	asked = g.command("carol", "general", "agent destroy", map[string]any{"name": "scribe", "keep_files": true})
	if !strings.Contains(asked.Text(), "is moved to `.trash`") {
		t.Errorf("the question is %q", asked.Text())
	}
	g.click("carol", asked.ID, button("keep", "scribe"))
	g.message("answer", func(m discordsim.Message) bool { return m.ID == asked.ID && m.Text() == "**scribe** is gone." })
	if _, err := os.Stat(filepath.Join(g.app.Home.Trash(), "scribe", "agent.json")); err != nil {
		t.Error(err)
	}
	g.commandShows("carol", "agent destroy", map[string]any{"name": "scribe"}, `there is no agent "scribe" on this server`)
	g.commandShows("carol", "agent destroy", map[string]any{"name": "chorus"}, "has no file of its own yet")
	if _, err := g.app.Gate.CreateAgent(t.Context(), agents.Agent{Name: "house", Permissions: "open"}); err != nil {
		t.Fatal(err)
	}
	g.commandShows("carol", "agent destroy", map[string]any{"name": "house"}, "belongs to all servers")
	g.commandShows("ada", "agent destroy", map[string]any{"name": "house"}, "Delete **house**?")
}

func TestDiscordAgentConfig(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "is ready")
	set := func(who, key, value string, want ...string) {
		t.Helper()
		g.commandShows(who, "agent config", map[string]any{"name": "helper", "key": key, "value": value}, want...)
	}
	set("carol", "temperature", "0.3", "temperature of **helper** is now `0.3`", "agents/helper/agent.json; effective from the next run")
	set("carol", "temperature", "9", "temperature must be 0 to 2, not 9")
	set("carol", "temprature", "1", `unknown key "temprature"; did you mean "temperature"?`)
	set("carol", "vendors", "1", "vendors cannot be set in agent.json")
	set("carol", "discordToken", "1", "discordToken cannot be set in agent.json")
	set("carol", "routing", "thread", "routing of **helper** is now `thread`")
	set("carol", "model", "demo/echo", "model of **helper** is now `demo/echo`")
	set("carol", "model", "zzz", "unknown model")
	set("carol", "tools", "read, bash", "is now `read, bash`")
	set("carol", "permissions", "locked", "is now `locked`") // less, which needs no editor
	set("carol", "permissions", "standard", "you may not change permissions", "`editors`")
	set("ada", "permissions", "guarded", "is now `guarded`")
	set("ada", "permissions", "lokced", `did you mean "locked"?`)
	set("dan", "temperature", "1", "you have the rights of locked here")
	g.commandShows("carol", "agent config", map[string]any{"name": "helper", "key": "temperature"}, "is `0.3`", "agents/helper/agent.json")
	g.commandShows("carol", "agent config", map[string]any{"name": "helper", "key": "maxTokens"}, "is `not set`", "built in")
	g.commandShows("carol", "agent config", map[string]any{"key": "routing"}, "routing of **chorus** is `reply`", "built in")
	g.commandShows("carol", "agent config", map[string]any{"key": "routing", "value": "room"}, "has no file of its own yet")
	if text := g.command("carol", "helper", "agent config", map[string]any{"key": "routing"}).Text(); !strings.Contains(text, "routing of **helper** is `thread`") {
		t.Errorf("in its own channel: %q", text)
	}
	set("carol", "temperature", "default", "is now `not set`")
	bot, err := g.app.Settings.Bot("helper")
	if err != nil || bot.Temperature != nil || bot.Routing != "thread" || bot.ContinuationModel != "demo/echo" || bot.Permissions != "guarded" {
		t.Errorf("%+v, %v", bot, err)
	}
	// It holds from the next run on, without a restart: an echo says what was said.
	asked := g.say("bob", "helper", "say this again")
	g.message("echo", func(m discordsim.Message) bool { return m.Text() == "say this again" && m.ChannelID == asked })

	g.proposes("agent config", map[string]any{"key": "mod"}, "key", "model")
	g.proposes("agent config", map[string]any{"key": "routing", "value": ""}, "value", "reply", "thread", "room", "default")
	g.proposes("agent config", map[string]any{"key": "model", "value": "ech"}, "value", "demo/echo")
	g.proposes("agent config", map[string]any{"key": "permissions", "value": "gua"}, "value", "guarded")
	g.proposes("agent config", map[string]any{"key": "model", "name": "hel"}, "name", "helper")
	g.proposes("agent destroy", map[string]any{"name": ""}, "name", "chorus", "helper")
	g.proposes("agent init", map[string]any{"name": "x1", "model": "scr"}, "model", "demo/script")
}

// Discord makes the channel, and its answer is lost: there is one channel all the same.
func TestDiscordAgentInitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	if err := g.WaitCommand(g.soon(), "chorus", "agent"); err != nil {
		t.Fatal(err)
	}
	for _, f := range []discordsim.Fault{
		{Kind: discordsim.FaultHangup, Route: "POST /guilds/{guild}/channels", Count: 1, After: true},
		{Kind: discordsim.FaultError, Route: "GET /guilds/{guild}/channels", Count: 1, Status: 502},
	} {
		g.fault(f)
	}
	text := g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "**helper** is ready in <#")
	if strings.Contains(text, "there already") {
		t.Errorf("it was we who made the channel: %s", text)
	}
	if n := g.Count("helper"); n != 1 {
		t.Errorf("there are %d channels of that name", n)
	}
}

// The question whether to end an agent is for whoever asked it, and is forgotten.
func TestDiscordAgentDestroyByOthers(t *testing.T) {
	t.Parallel()
	g := kept(t, discordsim.Options{}, map[string]string{})
	g.commandShows("carol", "agent init", map[string]any{"name": "helper"}, "is ready")
	g.commandShows("dan", "agent destroy", map[string]any{"name": "helper"}, "you have the rights of locked here")
	asked := g.command("carol", "general", "agent destroy", map[string]any{"name": "helper"})
	if _, err := g.Click("ada", asked.ID, "c1:retire:"+g.User("carol").String()+":gone:helper"); err == nil {
		t.Error("others see the question")
	}
	running := g.say("bob", "helper", "say begun\nwait")
	g.hasReaction(running, "⚙️")
	g.commandShows("carol", "agent destroy", map[string]any{"name": "helper"}, "helper is running")
	g.click("carol", asked.ID, "c1:retire:"+g.User("carol").String()+":gone:helper")
	g.message("refusal", func(m discordsim.Message) bool {
		return m.ID != asked.ID && strings.Contains(m.Text(), "helper is running") && m.ID > running
	})
	if !runsetup.IsDir(g.app.Home.AgentDir("helper")) || g.Channel("helper") == 0 {
		t.Error("it was ended in the middle of its work")
	}
}
