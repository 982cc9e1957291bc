package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/operation"
	"chorus/internal/room"
	"chorus/internal/schedule"
	"chorus/internal/service/schedules"
	schedulestore "chorus/internal/store/schedules"
)

var _ schedules.Channels = (*Host)(nil)

// CheckTarget implements schedules.Channels. A process that is not connected to the platform can only check that
// the adapter exists.
func (h *Host) CheckTarget(ctx context.Context, t schedule.Target, by operation.Caller) (schedules.Place, error) {
	i := slices.IndexFunc(h.Platforms, func(p Platform) bool { return p.Name == t.Adapter })
	if i < 0 {
		var names []string
		for _, p := range h.Platforms {
			names = append(names, p.Name)
		}
		return schedules.Place{}, operation.InvalidField("adapterId", "there is no adapter %.40q; choose one of %s", t.Adapter, strings.Join(names, ", "))
	}
	p := h.Platforms[i]
	accounts, err := p.Accounts()
	if err != nil {
		return schedules.Place{}, err
	}
	if len(accounts) == 0 {
		return schedules.Place{}, operation.InvalidField("adapterId", "no bot is configured on %s; see docs/guides/discord.md", p.Label)
	}
	b := h.Backend(t.Adapter)
	if b == nil || len(b.Bots) == 0 {
		if !by.May(operation.Admin) {
			return schedules.Place{}, operation.Errorf(operation.Unavailable, "%s is not connected here%s, so it cannot be checked whether you may post there; ask where it is connected", p.Label, h.elsewhere(p.Name))
		}
		t.Agent = cmp.Or(t.Agent, accounts[0].Name)
		return schedules.Place{Target: t}, nil
	}
	bot := b.botOf(cmp.Or(t.Agent, b.Bots[0].Name))
	if bot == nil {
		return schedules.Place{}, operation.InvalidField("agent", "no bot of this server posts for the agent %.64q on %s", t.Agent, p.Label)
	}
	in, listeners, err := bot.FindChannel(ctx, t.Channel)
	if refused, ok := errors.AsType[connector.Refusal](err); ok {
		return schedules.Place{}, operation.InvalidField("channelId", "%s", refused)
	}
	if err != nil {
		return schedules.Place{}, fmt.Errorf("look for the channel %s on %s: %w", t.Channel, p.Label, err)
	}
	if err := mayTarget(ctx, bot, in, by, p); err != nil {
		return schedules.Place{}, err
	}
	if t.Agent == "" {
		t.Agent = b.answering(ctx, bot.Name, in)
	}
	if connector.ListenerOf(listeners, t.Agent).Name == "" {
		return schedules.Place{}, operation.InvalidField("channelId", "the agent %s does not read this channel", t.Agent)
	}
	thread, err := chat.NewThreadID(t.Adapter, in.Place(), in.ID, t.Agent)
	return schedules.Place{Target: t, Thread: thread}, err
}

// mayTarget checks that a person may have an agent post in a channel: somebody who may do everything here, anywhere; people of the platform where they can read
// themselves.
func mayTarget(ctx context.Context, bot *connector.Bot, in room.Channel, by operation.Caller, p Platform) error {
	if by.May(operation.Admin) {
		return nil
	}
	if string(by.Principal.Kind) == p.Name {
		if may, err := bot.MayRead(ctx, in.Guild, in.ID, by.Principal.ID); may || err != nil {
			return err
		}
	}
	return operation.Errorf(operation.Forbidden, "you cannot read this channel on %s, so nothing is posted there for you", p.Label)
}

// OpenThread implements schedules.Channels.
func (h *Host) OpenThread(ctx context.Context, o schedules.Opening) error {
	bot, err := h.speaks(o.Target)
	if err != nil {
		return err
	}
	return bot.Open(ctx, connector.Opening{Key: o.Key, Channel: o.Target.Channel, Agent: o.Target.Agent, By: o.By, From: o.From, Post: o.Post, Words: o.Words})
}

// Announce implements schedules.Channels.
func (h *Host) Announce(ctx context.Context, t schedule.Target, key, text string) error {
	bot, err := h.speaks(t)
	if err != nil {
		return err
	}
	return bot.Announce(ctx, t.Channel, key, text)
}

func (h *Host) speaks(t schedule.Target) (*connector.Bot, error) {
	if b := h.Backend(t.Adapter); b != nil {
		if bot := b.botOf(t.Agent); bot != nil {
			return bot, nil
		}
	}
	return nil, fmt.Errorf("no bot of this process speaks for the agent %s on %s%s", t.Agent, t.Adapter, h.elsewhere(t.Adapter))
}

// elsewhere names the node with the bots of a platform, in parentheses for a message; "": unknown.
func (h *Host) elsewhere(platform string) string {
	if h.NodeOf == nil {
		return ""
	}
	if node := h.NodeOf(platform); node != "" {
		return " (node " + node + " has it)"
	}
	return ""
}

// WakeRoom implements schedules.Channels.
func (h *Host) WakeRoom(ctx context.Context, w schedules.RoomWake) error {
	b := h.Backend(w.Thread.Transport())
	if b == nil {
		return fmt.Errorf("%s is not connected here%s", w.Thread.Transport(), h.elsewhere(w.Thread.Transport()))
	}
	bot := b.botOf(w.Thread.Agent())
	if bot == nil {
		return fmt.Errorf("no bot of this process speaks for the agent %s%s", w.Thread.Agent(), h.elsewhere(w.Thread.Transport()))
	}
	ctx, cancel := context.WithTimeout(ctx, triggerTime)
	defer cancel()
	err := bot.Trigger(ctx, connector.Trigger{Kind: room.Kind(w.Kind), ID: w.Key, Channel: w.Thread.Thread(), Agent: w.Thread.Agent(), By: w.By, Text: w.Text})
	if refused, ok := errors.AsType[connector.Refusal](err); ok {
		return operation.Errorf(operation.Conflict, "%s", refused)
	}
	return err
}

// triggerTime is how long a timer waits for earlier events.
const triggerTime = 10 * time.Second

// Opened implements connector.Openings. The keys come from schedules.OpeningKey.
func (h *Backend) Opened(ctx context.Context, key string, thread chat.ThreadID, seq int64, why string) error {
	id, due, ok := schedules.ReadOpeningKey(key)
	if !ok {
		return nil // of an event file, which has no history
	}
	run := schedule.Run{Due: due, State: schedule.Said, Thread: thread, Seq: seq, At: h.App.Service.Now()}
	if why != "" {
		run.State, run.Why = schedule.Refused, why
	}
	return schedulestore.New(h.DB).ScheduleOpened(ctx, id, run)
}
