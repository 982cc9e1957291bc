package discord

import (
	"context"
	"errors"
	"fmt"

	"github.com/disgoorg/disgo/gateway"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/activate"
)

// manyTogether bounds a batch, so that in a storm the first is not kept waiting for the last.
const manyTogether = 50

// hearList takes events as they came: those of channels in batches, everything else (guilds,
// channels, roles) by itself and in its place. What fails is told of and costs nobody else anything.
func (b *Bot) hearList(ctx context.Context, list []any) {
	var events []room.Event
	flush := func() {
		for _, batch := range activate.Batches(events) {
			for from := 0; from < len(batch.Events) && ctx.Err() == nil; from += manyTogether {
				b.hearBatch(ctx, batch.Events[from:min(from+manyTogether, len(batch.Events))])
			}
		}
		events = nil
	}
	for _, one := range list {
		if e, ok := eventOf(one); ok {
			events = append(events, e)
			continue
		}
		flush()
		if ctx.Err() != nil {
			return
		}
		b.failed(ctx, b.hear(ctx, one, nil))
	}
	flush()
}

// hearBatch writes all that a batch says before anybody is woken: several wishes to hear
// an agent are then one.
func (b *Bot) hearBatch(ctx context.Context, events []room.Event) {
	waking := &waking{bot: b}
	for _, e := range events {
		if ctx.Err() != nil {
			break
		}
		b.failed(ctx, b.hear(ctx, e.Raw, waking))
	}
	waking.up(ctx)
}

// failed tells of an event that could not be taken. It never stops the rest; a message is
// found again by the next history read.
func (b *Bot) failed(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		b.Log.Error("could not take an event", "event", "event_failed", "error", err)
	}
}

// eventOf is what happened in a channel, as batches see it; false: it was elsewhere.
func eventOf(data any) (room.Event, bool) {
	e := room.Event{Raw: data}
	switch d := data.(type) {
	case gateway.EventMessageCreate:
		e.Kind, e.Message.ID, e.Message.In.ID = room.Said, d.ID.String(), d.ChannelID.String()
	case gateway.EventMessageUpdate:
		e.Kind, e.Message.ID, e.Message.In.ID = room.Edited, d.ID.String(), d.ChannelID.String()
	case gateway.EventMessageDelete:
		e.Kind, e.Message.ID, e.Message.In.ID = room.Deleted, d.ID.String(), d.ChannelID.String()
	case gateway.EventMessageDeleteBulk:
		e.Kind, e.Message.In.ID = room.Deleted, d.ChannelID.String()
	case gateway.EventMessageReactionAdd:
		e.Kind, e.Message.ID, e.Message.In.ID = room.Reacted, d.MessageID.String(), d.ChannelID.String()
	case gateway.EventMessageReactionRemove:
		e.Kind, e.Message.ID, e.Message.In.ID = room.Reacted, d.MessageID.String(), d.ChannelID.String()
	case gateway.EventMessageReactionRemoveAll:
		e.Kind, e.Message.ID, e.Message.In.ID = room.Reacted, d.MessageID.String(), d.ChannelID.String()
	case gateway.EventMessageReactionRemoveEmoji:
		e.Kind, e.Message.ID, e.Message.In.ID = room.Reacted, d.MessageID.String(), d.ChannelID.String()
	case Happening:
		e.Kind, e.Message.ID, e.Message.In.ID = d.Kind, d.ID, d.Channel
	default:
		return e, false
	}
	return e, true
}

// waking is whom to wake when all of a batch is written.
type waking struct {
	bot     *Bot
	tells   []func()
	threads []chat.ThreadID
}

// arrive writes an arrival; whoever must answer hears of it with the rest.
func (w *waking) arrive(ctx context.Context, a journal.Arrival) (news bool, err error) {
	done, tell, err := w.bot.Backend.ArriveQuietly(ctx, a)
	if err != nil || done.Again {
		return false, err
	}
	w.tells = append(w.tells, tell)
	for _, c := range a.Commits {
		w.threads = append(w.threads, c.Thread)
	}
	return true, nil
}

func (w *waking) up(ctx context.Context) {
	for _, tell := range w.tells {
		tell()
	}
	for _, thread := range w.threads {
		w.bot.wake(ctx, thread)
	}
	w.tells, w.threads = nil, nil
}

// Happening is something in a room that no platform tells of: its agent wants to speak
// by itself, or a timer rang.
type Happening struct {
	Kind    room.Kind // SelfActivation, Timer or Internal
	ID      string    // the same one is taken once
	Channel string
	Agent   string
	By      chat.Principal // on whose authority
	Text    string         // what the agent is told
}

// Happen brings a happening to the room, behind what came before it. It never waits.
func (b *Bot) Happen(h Happening) error {
	switch {
	case h.Kind.FromPlatform() || !h.Kind.Known():
		return fmt.Errorf("%q is not something of our own", h.Kind)
	case h.ID == "" || h.Channel == "" || h.Agent == "":
		return errors.New("a happening needs an id, a channel and an agent")
	}
	b.queue.put(h)
	return nil
}

// happened lets an agent speak in its room without anybody having spoken.
func (b *Bot) happened(ctx context.Context, h Happening, w *waking) error {
	in, err := b.channelOf(ctx, h.Channel)
	if err != nil {
		return err
	}
	listeners, err := b.listeners(ctx, in)
	if err != nil {
		return err
	}
	l := listenerOf(listeners, h.Agent)
	d := activate.Decide(room.Event{Kind: h.Kind, Message: room.Message{In: in}}, l.Agent, l.Rules, activate.Seen{}, nil)
	if !d.Answer || !l.IsRoom() {
		b.Log.Info("nothing is done about a happening", "event", "happening", "kind", h.Kind, "channel", h.Channel, "agent", h.Agent, "room", l.IsRoom())
		return nil
	}
	thread, err := chat.NewThreadID(room.Transport, in.Place(), in.ID, l.Name)
	if err != nil || !b.Backend.Serves(b.Name, thread) {
		return err
	}
	row, err := b.Backend.NewThread(ctx, thread, h.By, roomTitle(in))
	if err != nil {
		return err
	}
	body := chat.Received{From: chat.Participant{Kind: chat.System, Name: string(h.Kind)}, Principal: h.By, Blocks: chat.TextBlocks(first(h.Text, goOn)),
		Intake: l.Intake, Prompt: true, Together: true, Channel: in.ID}
	_, err = w.arrive(ctx, journal.Arrival{Platform: room.Transport, Bot: b.Name, What: string(h.Kind), PlatformID: h.ID, Decision: d.String(),
		Commits: []journal.Commit{{Thread: thread, Create: &row, MaxWaiting: roomWaiting,
			Events: []chat.Event{{Thread: thread, Who: h.By.String(), Body: body, Platform: orderPlatform, PlatformID: h.ID}}}}})
	return err
}

// roomTitle is what a room is called in lists.
func roomTitle(in room.Channel) string { return "#" + first(in.Name, in.ID) }
