package discordtest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector/host"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/service/savedcontext"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
)

func TestDiscordQuietIsSummedUp(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "idleSummary: {enabled: true, afterMinutes: 2}\n"})
	asked := g.say("ada", "general", "the red door\n!say it is red")
	g.hasReaction(asked, "✅")
	g.hasReaction(g.say("bob", "general", "the blue door\n!say it is blue"), "✅")
	if found, err := g.app.DB.SavedContexts(t.Context(), store.ContextFilter{}); err != nil || len(found) != 0 {
		t.Fatalf("summed up at once: %+v, %v", found, err)
	}
	// The clock goes on while nobody is there: it is read off the journal.
	g.end()
	g.quiet = 50 * time.Millisecond
	g.start()
	notice := g.message("notice", func(m discordsim.Message) bool { return strings.HasPrefix(m.Text(), "It has been quiet here") })
	if !strings.Contains(notice.Text(), "(4 messages)") || !strings.Contains(notice.Text(), "/context restore") {
		t.Errorf("the notice is %q", notice.Text())
	}
	found, err := g.app.DB.SavedContexts(t.Context(), store.ContextFilter{})
	if err != nil || len(found) != 1 || found[0].Quiet.IsZero() || found[0].Messages != 4 || found[0].By != "system:"+chat.DefaultAgent {
		t.Fatalf("kept are %+v, %v", found, err)
	}
	if got := g.lines(g.thread(asked)); got != "" {
		t.Errorf("left in the window: %q", got)
	}
	sums, err := g.app.DB.Spend(t.Context(), store.SpendFilter{By: store.ByPayer})
	if err != nil || !strings.Contains(keysOf(sums), "system:"+chat.DefaultAgent) {
		t.Errorf("the ledger has %+v, %v", sums, err)
	}
	// Once for each quiet time: the next one comes only after somebody has spoken.
	g.quiet = 20 * time.Millisecond
	g.end()
	g.start()
	g.hasReaction(g.say("ada", "general", "the green door\n!say it is green"), "✅")
	g.message("second notice", func(m discordsim.Message) bool {
		return m.ID > notice.ID && strings.HasPrefix(m.Text(), "It has been quiet here") && strings.Contains(m.Text(), "(2 messages)")
	})
	if found, err = g.app.DB.SavedContexts(t.Context(), store.ContextFilter{}); err != nil || len(found) != 2 {
		t.Errorf("kept are %d, %v", len(found), err)
	}
	g.commandShows("ada", "context history", nil, "automatically after a quiet time")
}

func keysOf(sums []store.Sum) string {
	var out []string
	for _, s := range sums {
		out = append(out, s.Key)
	}
	return strings.Join(out, " ")
}

// One that was cut off between keeping and clearing is brought to its end, without another summary.
func TestDiscordQuietGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{"shared.yaml": "idleSummary: {enabled: true, afterMinutes: 1}\n"})
	asked := g.say("ada", "general", "the red door\n!say it is red")
	g.hasReaction(asked, "✅")
	thread := g.thread(asked)
	row, err := g.app.DB.Thread(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	h := g.app.Host.Backend("discord")
	saved, err := g.app.Host.Contexts.Save(t.Context(), savedcontext.Saving{Rows: idleRows(t, h, thread.Place()), By: row.Owner, Quiet: row.LastActive})
	if err != nil {
		t.Fatal(err)
	}
	g.end()
	g.quiet = 20 * time.Millisecond
	g.start()
	g.message("notice", func(m discordsim.Message) bool { return strings.Contains(m.Text(), "`"+saved.ID[:8]+"`") })
	if got := g.lines(thread); got != "" {
		t.Errorf("left in the window: %q", got)
	}
	if found, err := g.app.DB.SavedContexts(t.Context(), store.ContextFilter{}); err != nil || len(found) != 1 {
		t.Errorf("kept are %+v, %v", found, err)
	}
	// And between clearing and telling: the notice is said once all the same.
	p := host.IdlePlace{PlaceActivity: store.PlaceActivity{Agent: row.Agent, Place: row.Place, Last: row.LastActive}}
	data, _ := json.Marshal(host.SeenIdle{Since: row.LastActive, Until: row.LastActive, Saved: saved.ID, Count: 2, Text: saved.Summary})
	g.end()
	g.start()
	if err := g.app.DB.SetSetting(t.Context(), host.IdleScope, p.Key(), string(data)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.app.Host.Backend("discord").SummarizeIdle(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	g.settledRows()
	notices := 0
	list, _ := g.Messages("general")
	for _, m := range list {
		if strings.HasPrefix(m.Text(), "It has been quiet here") {
			notices++
		}
	}
	if notices != 1 {
		t.Errorf("%d notices:\n%s", notices, g.transcript())
	}
	if n, err := g.app.DB.Spend(t.Context(), store.SpendFilter{By: store.ByAgent}); err != nil || len(n) == 0 || n[0].Settled != ledger.Nanos(0) {
		t.Errorf("spent %+v, %v", n, err)
	}
}

func idleRows(t *testing.T, h *host.Backend, place string) []journal.Thread {
	t.Helper()
	rows, err := h.IdleRows(t.Context(), host.IdlePlace{PlaceActivity: store.PlaceActivity{Agent: chat.DefaultAgent, Place: place}})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
