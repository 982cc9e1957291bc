package discordtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/connector/host"
	"chorus/internal/sim/discordsim"
)

// talked lets people talk in a channel before anybody listens.
func (g *guildT) talked(from, to int) {
	g.Helper()
	for i := from; i <= to; i++ {
		g.say([]string{"ada", "bob"}[i%2], "aviary", fmt.Sprintf("bird %d flew by", i))
	}
}

func TestDiscordChannelHistory(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "aviary"}}},
		map[string]string{"bots/chorus.yaml": "channelHistory: true\nrouting: thread\n"})
	thread := func(id discordsim.ID) chat.ThreadID {
		return g.threadOf("aviary", id)
	}
	if err := g.stopped(func() { g.talked(1, 30) }); err != nil {
		t.Fatal(err)
	}
	first := g.say("ada", "aviary", "say one")
	g.hasReaction(first, "✅")
	text := toldOf(g.asked(thread(first)))
	if strings.Contains(text, "[from ada]: bird 16 ") || !strings.Contains(text, "[from bob]: bird 17 flew by\n[from ada]: bird 18") ||
		!strings.Contains(text, "bird 30 flew by") || !strings.Contains(text, "[CONVERSATION SUMMARY — earlier messages]") {
		t.Fatalf("the model was told:\n%s", text)
	}
	kept, err := g.app.DB.Recall(t.Context(), host.ChannelDigests, g.Channel("aviary").String())
	if err != nil || kept == nil {
		t.Fatalf("no summary was kept: %v", err)
	}
	// The next conversation has the same summary, and what came since.
	second := g.say("bob", "aviary", "say two")
	g.hasReaction(second, "✅")
	if text := toldOf(g.asked(thread(second))); !strings.Contains(text, "[from ada]: say one") || !strings.Contains(text, "bird 17 ") {
		t.Errorf("the model was told:\n%s", text)
	}
	if again, _ := g.app.DB.Recall(t.Context(), host.ChannelDigests, g.Channel("aviary").String()); string(again) != string(kept) {
		t.Errorf("it was paid for again: %s, then %s", kept, again)
	}
	var digest struct{ UpTo string }
	if err := json.Unmarshal(kept, &digest); err != nil {
		t.Fatal(err)
	}
	list, err := g.Messages("aviary")
	if err != nil || list[15].ID.String() != digest.UpTo {
		t.Fatalf("the boundary is %s, not bird 16: %v", digest.UpTo, err)
	}
	if lines, err := g.app.DB.LedgerEntries(t.Context(), "digest-"+list[16].ID.String()); err != nil || len(lines) != 1 || lines[0].Usage.Total() == 0 {
		t.Errorf("the summary stands in the ledger as %+v, %v", lines, err)
	}
}

// A summary that cannot be made keeps nothing back, and a conversation that is none of a
// dispatch channel knows nothing of it.
func TestDiscordChannelHistoryWithoutSummary(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general"}, {Name: "aviary"}}}, map[string]string{"bots/chorus.yaml": "channelHistory: true\n"})
	if err := g.stopped(func() {
		g.say("ada", "aviary", "!fail refused")
		g.talked(2, 30)
	}); err != nil {
		t.Fatal(err)
	}
	asked := g.say("ada", "aviary", "say alone")
	g.message("answer", func(m discordsim.Message) bool { return answers(asked)(m) && m.Text() == "alone" })
	text := toldOf(g.asked(g.threadOf("aviary", asked)))
	if strings.Contains(text, "SUMMARY") || !strings.Contains(text, "[from bob]: bird 17 ") || strings.Contains(text, "bird 16 ") {
		t.Errorf("the model was told:\n%s", text)
	}
	if kept, err := g.app.DB.Recall(t.Context(), host.ChannelDigests, g.Channel("aviary").String()); err != nil || kept != nil {
		t.Errorf("kept is %s, %v", kept, err)
	}
}
