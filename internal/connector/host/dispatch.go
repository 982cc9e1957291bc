package host

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/journal"
	past "chorus/internal/room/digest"
	"chorus/internal/room/route"
	"chorus/internal/service"
	"chorus/internal/service/summary"
	"chorus/internal/settings"
	"chorus/internal/transcript"
)

// ChannelDigests is the kind of memo for the summary of each channel.
const ChannelDigests = "channel-digest"

// recallTime limits how long a conversation waits for the history of its channel.
const recallTime = 75 * time.Second

// RecallChannel tells a new conversation what was said in its channel before.
// It is stored as an arrival, so it happens once; the caller notices that its thread has moved. An unreadable
// history holds nothing up.
func (h *Host) RecallChannel(ctx context.Context, row journal.Thread, bot *config.Bot, log *transcript.Log, prompt transcript.Waiting) {
	if !bot.ChannelHistory || !row.ID.OnPlatform() || route.Routing(bot.Routing) == route.Room || log.Places() > 0 || log.Ended() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	err := h.recall(ctx, row, bot, prompt)
	if err != nil && context.Cause(ctx) == nil {
		h.Log.Warn("a conversation begins without its channel's history", "component", row.ID.Transport(), "event", "history_failed", "thread", row.ID, "error", err)
	}
}

func (host *Host) recall(ctx context.Context, row journal.Thread, bot *config.Bot, prompt transcript.Waiting) error {
	h := host.Backend(row.ID.Transport())
	c := platformChannel{host, row.ID}
	live := c.bot()
	if h == nil || live == nil {
		return nil
	}
	events, err := host.DB.Events(ctx, row.ID, 0, maxFirst)
	if err != nil {
		return err
	}
	for _, ev := range events {
		if _, done := ev.Body.(chat.Imported); done {
			return nil
		}
	}
	i := slices.IndexFunc(events, func(ev chat.Event) bool { return ev.Seq == prompt.Seq })
	if i < 0 {
		return nil
	}
	said, ok := events[i].Body.(chat.Received)
	if !ok || said.Channel == "" {
		return nil
	}
	found, err := live.Older(ctx, said.Channel, events[i].PlatformID, past.Fetched, func(connector.Found) bool { return true })
	if err != nil {
		return err
	}
	slices.Reverse(found)
	list := make([]past.Message, len(found))
	for n, f := range found {
		list[n] = past.Message{ID: f.ID, From: f.From, Ours: f.Ours, Text: service.Clipped(f.Text, maxPastMessage)}
	}
	plan, err := host.summed(ctx, h, said.Channel, row, prompt.Principal, list)
	if err != nil {
		return err
	}
	lines := plan.Lines(settings.NamesParticipants(bot))
	if len(lines) == 0 {
		return nil
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return err
	}
	blob := chat.NewBlob(data)
	id := events[i].PlatformID
	_, err = h.Arrive(ctx, journal.Arrival{Platform: row.ID.Transport(), Bot: row.Agent, What: "channel history", PlatformID: id, Commits: []journal.Commit{{
		Thread: row.ID, Blobs: []chat.Blob{blob}, Events: []chat.Event{{Thread: row.ID, Platform: row.ID.Transport(), PlatformID: id,
			Body: chat.Imported{Source: "the channel", Blob: blob.Hash, Count: len(lines)}}}}}})
	return err
}

const (
	maxFirst       = 50   // events in which to find the beginning of a first run
	maxPastMessage = 2000 // characters: the maximum length of a person's message
)

// summed makes the plan for a channel, and pays for a summary if one is due. Concurrent
// callers wait for it. If it fails, the newest messages are used without one.
func (host *Host) summed(ctx context.Context, h *Backend, in string, row journal.Thread, payer chat.Principal, list []past.Message) (past.Plan, error) {
	done, err := h.digests.take(ctx, in)
	if err != nil {
		return past.Plan{}, err
	}
	defer done()
	var kept past.Kept
	data, err := host.DB.Recall(ctx, ChannelDigests, in)
	if err != nil {
		return past.Plan{}, err
	}
	if data != nil && json.Unmarshal(data, &kept) != nil {
		kept = past.Kept{} // of another Chorus
	}
	plan := past.Make(list, kept)
	if len(plan.Older) == 0 {
		return plan, nil
	}
	text, err := host.Contexts.Summaries.Write(ctx, summary.Request{Agent: row.Agent, Thread: row.ID, Payer: payer, Run: "digest-" + plan.Recent[0].ID, Conversations: [][]chat.Line{plan.Excerpt()}})
	if err != nil {
		host.Log.Warn("no summary of a channel could be made; its newest messages go without", "component", h.Platform.Name, "event", "summary_failed", "channel", in, "error", err)
		return plan, nil
	}
	fresh := plan.Boundary(text)
	if data, err = json.Marshal(fresh); err == nil {
		err = host.DB.Remember(ctx, ChannelDigests, in, data)
	}
	plan.Summary, plan.Older = text, nil
	return plan, err
}

// turns serializes work on named things.
type turns struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the holder is done
}

func (t *turns) take(ctx context.Context, name string) (done func(), err error) {
	for {
		t.mu.Lock()
		busy, taken := t.held[name]
		if !taken {
			if t.held == nil {
				t.held = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			t.held[name] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.held, name)
				t.mu.Unlock()
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, errors.Join(errors.New("somebody else is at it"), ctx.Err())
		}
	}
}
