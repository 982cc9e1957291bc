package discordtest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/connector"
	connect "chorus/internal/connector/host"
	"chorus/internal/operations"
	"chorus/internal/sim/discordsim"
)

// countedOutbox notes from where on the journal is looked at for what is to be told.
type countedOutbox struct {
	connector.Outbox
	mu    *sync.Mutex
	marks *[]int64
}

func (h countedOutbox) BehindSince(ctx context.Context, reader, transport string, mark int64, others []chat.ThreadID) ([]chat.ThreadID, int64, error) {
	h.mu.Lock()
	*h.marks = append(*h.marks, mark)
	h.mu.Unlock()
	return h.Outbox.BehindSince(ctx, reader, transport, mark, others)
}

// All conversations are looked at once, at the start; then only those that have changed. What somebody in another process
// had an agent do in one of them is told all the same.
func TestDiscordLooksAtWhatChanged(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var marks []int64
	g := inOldGuild(t, discordsim.Options{}, map[string]string{}, func(g *guildT) {
		g.tune = func(o *connect.BotOptions) {
			o.Backend.Outbox, o.Idle = countedOutbox{o.Backend.Outbox, &mu, &marks}, 200*time.Millisecond
		}
	})
	looks := func() int { mu.Lock(); defer mu.Unlock(); return len(marks) }
	g.until("looked at", func() bool { return looks() > 0 })
	asked := g.say("ada", "general", "say one")
	g.hasReaction(asked, "✅")
	n := looks()
	g.until("looked at since", func() bool { return looks() > n })
	other, err := app.Open(t.Context(), app.Options{Home: g.home, Env: g.env, Warn: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	thread := g.threadOf("general", asked)
	if _, err := operations.Steer.Call(t.Context(), other.Service.GuestOperations(), other.Service.LocalCaller(), operations.SteerMessage{ID: string(thread), Message: "say two"}); err != nil {
		t.Fatal(err)
	}
	g.message("answer to what was said elsewhere", func(m discordsim.Message) bool { return m.Text() == "two" })
	mu.Lock()
	defer mu.Unlock()
	if i := slices.IndexFunc(marks, func(mark int64) bool { return mark > 0 }); i < 0 || slices.Contains(marks[i:], 0) {
		t.Errorf("the journal was looked at from %d on", marks)
	}
}
