package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/agents"
	"chorus/internal/app/apptest"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/settings"
	"chorus/internal/store/storetest"
)

const (
	oneGuild   = "110000000000000001"
	otherGuild = "110000000000000002"
)

func TestGuildSettingsAreALayer(t *testing.T) {
	t.Parallel()
	a, err := Open(t.Context(), Options{Home: storetest.FreshHome(t), Env: apptest.Env("USER", "tester")})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Settings.SetGuild(oneGuild, "continuationModel", "demo/script"); err != nil {
		t.Fatal(err)
	}
	if err := a.Settings.SetGuild(oneGuild, "permissions", "locked"); err != nil {
		t.Fatal(err)
	}
	model := func(agent, guild string) (string, config.Layer) {
		bot, err := a.Settings.BotIn(agent, guild)
		if err != nil {
			t.Fatal(err)
		}
		return bot.ContinuationModel, bot.Origin("continuationModel").Layer
	}
	if got, from := model("chorus", oneGuild); got != "demo/script" || from != config.GuildSettings {
		t.Errorf("in its guild: %q from %s", got, from)
	}
	if got, _ := model("chorus", otherGuild); got != "" {
		t.Errorf("in another guild: %q", got)
	}
	here := chat.ThreadID("discord:" + oneGuild + "/1:2@chorus")
	if bot, err := a.Settings.BotFor(journal.Thread{ID: here, Agent: "chorus"}); err != nil || bot.Permissions != "locked" {
		t.Errorf("a thread there: %v, %v", bot, err)
	}
	for _, elsewhere := range []chat.ThreadID{"cli:" + oneGuild + "/1:2@chorus", "discord:@me/1:2@chorus"} {
		if bot, err := a.Settings.BotFor(journal.Thread{ID: elsewhere, Agent: "chorus"}); err != nil || bot.Permissions != "standard" {
			t.Errorf("%s: %v, %v", elsewhere, bot, err)
		}
	}
	if _, err := a.Settings.Agents().Create(t.Context(), agents.Agent{Name: "helper", Model: "demo/echo"}); err != nil {
		t.Fatal(err)
	}
	if got, from := model("helper", oneGuild); got != "demo/echo" || from != config.AgentFile {
		t.Errorf("agent.json is stronger: %q from %s", got, from)
	}
	ask, err := settings.ConfigAsk(a.Env, a.Home.Dir(), "chorus", oneGuild)
	if err != nil || ask.GuildSettings["permissions"] != "locked" {
		t.Errorf("`config show --guild` does not know: %v, %v", ask.GuildSettings, err)
	}
	if err := a.Settings.SetGuild(oneGuild, "continuationModel", nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := model("chorus", oneGuild); got != "" {
		t.Errorf("taken away, and still %q", got)
	}
	for _, no := range []string{"", "@me", "../../etc", strings.Repeat("1", 40)} {
		if err := a.Settings.SetGuild(no, "permissions", "open"); err == nil {
			t.Errorf("guild %q was written", no)
		}
	}
	broken := filepath.Join(a.Home.Guilds(), oneGuild+".json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if bot, err := a.Settings.BotIn("chorus", oneGuild); err != nil || bot.Permissions != "standard" {
		t.Errorf("a broken file: %v, %v", bot, err)
	}
	if err := a.Settings.SetGuild(oneGuild, "permissions", "open"); err == nil || !strings.Contains(err.Error(), "fix the file") {
		t.Errorf("a broken file was written over: %v", err)
	}
}

func TestAgentFileHoldsSettings(t *testing.T) {
	t.Parallel()
	a, err := Open(t.Context(), Options{Home: storetest.FreshHome(t), Env: apptest.Env("USER", "tester")})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Gate.CreateAgent(t.Context(), agents.Agent{Name: "helper"}); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"temperature": "0.25", "recencyWindow.messages": "12", "innerName": "Helper", "continuationModel": "demo/echo", "mode": "chat"} {
		if _, err := a.Gate.ConfigureAgent(t.Context(), "helper", key, value); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
	bot, err := a.Settings.Bot("helper")
	if err != nil || bot.Temperature == nil || *bot.Temperature != 0.25 || bot.WindowMessages != 12 || bot.InnerName != "Helper" || bot.ContinuationModel != "demo/echo" {
		t.Errorf("%+v, %v", bot, err)
	}
	if at := bot.Origin("temperature"); at.Layer != config.AgentFile {
		t.Errorf("it comes from %s", at)
	}
	for key, wrong := range map[string]string{"temperature": "0 to 2", "vendors": "cannot be set in agent.json", "temprature": "did you mean"} {
		if _, err := a.Gate.ConfigureAgent(t.Context(), "helper", key, "9"); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", key, err)
		}
	}
	// However the key is spelt, rights are given by those alone who may.
	for _, key := range []string{"permissions", " permissions", "Permissions", "permissions.", "PERMISSIONS"} {
		_, err := operations.ConfigureAgent.Call(t.Context(), a.Service.Operations(), operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "x"}, Scopes: []operation.Scope{operation.Admin}}, operations.AgentSetting{Name: "helper", Key: key, Value: "open"})
		if now, _ := a.Settings.Agents().Get(t.Context(), "helper"); err == nil || now.Permissions != "standard" {
			t.Errorf("%q: %v, and it has %s", key, err, now.Permissions)
		}
	}
	for _, key := range []string{"temperature", "recencyWindow.messages", "model"} {
		if _, err := a.Settings.Agents().Unset(t.Context(), "helper", key); err != nil {
			t.Fatal(err)
		}
	}
	if bot, err := a.Settings.Bot("helper"); err != nil || bot.Temperature != nil || bot.WindowMessages != 0 || bot.ContinuationModel != "" || bot.Mode != "chat" {
		t.Errorf("%+v, %v", bot, err)
	}
}
