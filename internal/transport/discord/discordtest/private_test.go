package discordtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"chorus/internal/config"
	"chorus/internal/gate"
	"chorus/internal/sim/discordsim"
)

// calls asks Discord as somebody, for what the simulator's own words do not reach.
func (g *guildT) calls(who, method, path string, body any) map[string]any {
	g.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		g.Fatal(err)
	}
	req, err := http.NewRequestWithContext(g.soon(), method, g.API()+path, bytes.NewReader(data))
	if err != nil {
		g.Fatal(err)
	}
	req.Header.Set("Authorization", g.Token(who))
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		g.Fatalf("%s %s: %s %s %v", method, path, res.Status, got, err)
	}
	out := map[string]any{}
	_ = json.Unmarshal(got, &out) // some answers are empty
	return out
}

// direct is the channel in which somebody is alone with the bot.
func (g *guildT) direct(who string) string {
	g.Helper()
	return g.calls(who, "POST", "/users/@me/channels", map[string]any{"recipient_id": g.User("chorus")})["id"].(string)
}

// hush opens a private thread of one person under a channel.
func (g *guildT) hush(who, channel, name string) string {
	g.Helper()
	return g.calls(who, "POST", "/channels/"+g.Channel(channel).String()+"/threads", map[string]any{"name": name, "type": discordsim.TypePrivateThread})["id"].(string)
}

func TestDiscordPrivateThreadsStayPrivate(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	place := g.hush("ada", "general", "hush")
	secret := g.say("ada", "hush", "the merger is on friday\n!say noted")
	g.hasReaction(secret, "✅")
	id := place
	if got := g.command("ada", "hush", "thread list", nil).Text(); !strings.Contains(got, "merger") {
		t.Errorf("in the thread itself it is not listed: %q", got)
	}
	if got := g.command("ada", "hush", "context save", map[string]any{"description": "quietly"}).Text(); !strings.Contains(got, "2 messages") {
		t.Errorf("it is not saved: %q", got)
	}
	hidden := func(what, text string) {
		t.Helper()
		for _, word := range []string{"merger", "noted", "quietly", id} {
			if strings.Contains(strings.ReplaceAll(text, "\""+id+"\"", ""), word) {
				t.Errorf("%s tells somebody outside of %q: %s", what, word, text)
			}
		}
	}
	for _, c := range []struct {
		command string
		options map[string]any
	}{
		{"thread list", nil}, {"thread history", nil}, {"thread history", map[string]any{"thread": id}}, {"thread fork", map[string]any{"thread": id}},
		{"why", nil}, {"why", map[string]any{"message": secret.String()}}, {"status", nil}, {"tasks", nil}, {"queue", nil},
		{"context save", nil}, {"context history", nil}, {"context restore", map[string]any{"session_id": "a"}},
	} {
		hidden("/"+c.command, g.command("bob", "general", c.command, c.options).Text())
	}
	i, err := g.Complete("bob", "general", "chorus", "thread history", map[string]any{"thread": "noted"}, "thread")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := g.WaitInteraction(g.soon(), i.ID); err != nil || string(got.Choices) != "[]" {
		t.Errorf("somebody outside is proposed %s, %v", got.Choices, err)
	}
	asked := g.say("bob", "general", `call search_channel {"query":"merger"}`+"\nend\nsay looked")
	g.hasReaction(asked, "✅")
	if text := g.result(g.thread(asked), "search_channel").Blocks.Text(); strings.Contains(text, "friday") {
		t.Errorf("a search from outside finds %q", text)
	}
	inside := g.say("ada", "hush", `call search_channel {"query":"merger"}`+"\nend\nsay looked")
	g.hasReaction(inside, "✅")
	if text := g.result(g.thread(discordID(t, id)), "search_channel").Blocks.Text(); !strings.Contains(text, "friday") {
		t.Errorf("a search from inside finds %q", text)
	}
}

func discordID(t *testing.T, s string) (id discordsim.ID) {
	t.Helper()
	if err := json.Unmarshal([]byte(`"`+s+`"`), &id); err != nil {
		t.Fatal(err)
	}
	return id
}

// What limits a channel limits the private threads under it, and a fork of one is not public.
func TestDiscordPrivateThreadsHaveTheirChannelsLimits(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "routing: thread\n"})
	id := g.hush("ada", "general", "hush")
	g.hasReaction(g.say("ada", "hush", "the merger is on friday\n!say noted"), "✅")
	row, err := g.app.Service.FindThread(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{g.Channel("general").String(), fmt.Sprintf("%s/%s", g.Guild(), g.Channel("general")), fmt.Sprintf("discord:%s/%s", g.Guild(), g.Channel("general")), id} {
		l := gate.LimitsOf(&config.Bot{Channels: []config.Channel{{Name: name, Permissions: "locked"}}}, row, nil)
		if len(l.Channels) != 1 {
			t.Errorf("the limit of %s does not hold in %s", name, row.ID)
		}
	}
	if got := g.command("ada", "hush", "thread fork", map[string]any{"thread": id}).Text(); !strings.Contains(got, "public thread") {
		t.Errorf("a fork out of a private thread: %q", got)
	}
	if got := g.app.Settings.ChannelOf(t.Context(), row.ID); got != id {
		t.Errorf("its pins are read in %s", got)
	}
}

// A message that somebody passes on from elsewhere is no reply: the conversation there goes
// on there, among those who may read it.
func TestDiscordForwardIsNoReply(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	asked := g.say("ada", "random", "the merger is on friday\n!say noted")
	g.hasReaction(asked, "✅")
	answer := g.message("answer", answers(asked))
	before := g.lines(g.thread(asked))
	g.calls("ada", "POST", "/channels/"+g.Channel("general").String()+"/messages", map[string]any{
		"message_reference": map[string]any{"type": 1, "message_id": answer.ID, "channel_id": g.Channel("random")}})
	g.hasReaction(g.say("bob", "general", "say after it"), "✅")
	if got := g.lines(g.thread(asked)); got != before {
		t.Errorf("what was passed on continues the conversation of another channel: %q", got)
	}
}

// A private thread that falls quiet is summed up in it, not in the channel above.
func TestDiscordPrivateThreadsAreQuietAmongThemselves(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "idleSummary: {enabled: true, afterMinutes: 2}\n"})
	id := g.hush("ada", "general", "hush")
	g.hasReaction(g.say("ada", "hush", "the merger is on friday\n!say noted"), "✅")
	g.end()
	g.quiet = 50 * time.Millisecond
	g.start()
	notice := g.message("notice", func(m discordsim.Message) bool { return strings.HasPrefix(m.Text(), "It has been quiet here") })
	if notice.ChannelID.String() != id || g.countOwn("general") != 0 {
		t.Errorf("%q is told in %s", notice.Text(), notice.ChannelID)
	}
}
