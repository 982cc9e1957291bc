package connector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/activate"
)

// maxBatch limits a batch, so that in a storm the first message does not wait for the last.
const maxBatch = 50

// handleList takes events in order: those of channels in batches, all others
// one by one in their place. A failure is logged and does not affect the others.
func (b *Bot) handleList(ctx context.Context, list []any) {
	var events []room.Event
	flush := func() {
		for _, batch := range activate.Batches(events) {
			for part := range slices.Chunk(batch, maxBatch) {
				if ctx.Err() != nil {
					return
				}
				b.handleBatch(ctx, part)
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
		b.failed(ctx, b.handle(ctx, one, nil))
	}
	flush()
}

// handleBatch stores all of a batch before it wakes anybody: several prompts to an
// agent are then answered together.
func (b *Bot) handleBatch(ctx context.Context, events []room.Event) {
	waking := &waking{bot: b}
	for _, e := range events {
		if ctx.Err() != nil {
			break
		}
		b.failed(ctx, b.handle(ctx, e.Raw, waking))
	}
	waking.up(ctx)
}

// failed logs an event that could not be taken. It never stops the rest; the next history read
// finds a message again.
func (b *Bot) failed(ctx context.Context, err error) {
	if err == nil {
		return
	}
	b.queue.fail(err)
	if ctx.Err() == nil {
		b.Log.Error("could not take an event", "event", "event_failed", "error", err)
	}
}

// eventOf is an event in a channel, for batches; false: it is not in a channel.
func eventOf(data any) (room.Event, bool) {
	e := room.Event{Raw: data}
	at := func(kind room.Kind, channel, message string) {
		e.Kind, e.Message.ID, e.Message.In.ID = kind, message, channel
	}
	switch d := data.(type) {
	case platform.Said:
		at(room.Said, d.Message.In.ID, d.Message.ID)
	case platform.Edited:
		at(room.Edited, d.Message.In.ID, d.Message.ID)
	case platform.Deleted:
		at(room.Deleted, d.Channel, "")
	case platform.Reacted:
		at(room.Reacted, d.In.ID, d.Message)
	case platform.Cleared:
		at(room.Reacted, d.In.ID, d.Message)
	case Trigger:
		at(d.Kind, d.Channel, d.ID)
	default:
		return e, false
	}
	return e, true
}

// waking collects whom to wake when all of a batch is stored.
type waking struct {
	bot     *Bot
	wakes   []func()
	threads []chat.ThreadID
}

// arrive stores an arrival; those who must answer are woken with the rest.
func (w *waking) arrive(ctx context.Context, a journal.Arrival) (news bool, err error) {
	done, wake, err := w.bot.Backend.ArriveQuietly(ctx, a)
	if err != nil || done.Again {
		return false, err
	}
	w.wakes = append(w.wakes, wake)
	for _, c := range a.Commits {
		w.threads = append(w.threads, c.Thread)
	}
	return true, nil
}

func (w *waking) up(ctx context.Context) {
	for _, wake := range w.wakes {
		wake()
	}
	for _, thread := range w.threads {
		w.bot.publisher.Wake(ctx, thread)
	}
	w.wakes, w.threads = nil, nil
}

// Trigger is something in a room that no platform reports: its agent wants to speak on
// its own, or a timer fired.
type Trigger struct {
	Kind    room.Kind // SelfActivation, Timer or Internal
	ID      string    // the same id is taken once
	Channel string
	Agent   string
	By      chat.Principal // on whose authority
	Text    string         // what the agent is told

	done chan<- error // receives the result
}

// Trigger brings a trigger to its room, after earlier events, and waits until it is in the journal. A Refusal says
// why it never will be.
func (b *Bot) Trigger(ctx context.Context, t Trigger) error {
	switch {
	case t.Kind.FromPlatform() || !t.Kind.Known():
		return fmt.Errorf("a trigger of kind %q cannot come from Chorus", t.Kind)
	case t.ID == "" || t.Channel == "" || t.Agent == "":
		return errors.New("a trigger needs an id, a channel and an agent")
	}
	if err := b.waitConnected(ctx); err != nil {
		return err
	}
	done := make(chan error, 1)
	t.done = done
	b.queue.put(t)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("a trigger for the channel %s was not taken in time: %w", t.Channel, ctx.Err())
	}
}

// triggered lets an agent speak in its room although nobody has spoken.
func (b *Bot) triggered(ctx context.Context, t Trigger, w *waking) error {
	in, err := b.channelOf(ctx, t.Channel)
	if err != nil {
		return err
	}
	listeners, err := b.listeners(ctx, in)
	if err != nil {
		return err
	}
	l := ListenerOf(listeners, t.Agent)
	d := activate.Decide(room.Event{Kind: t.Kind, Message: room.Message{In: in}}, l.Agent, l.Rules, activate.Seen{}, nil)
	switch {
	case !l.IsRoom():
		return Refusal(fmt.Sprintf("the channel is not a room of %s", t.Agent))
	case !d.Answer:
		b.Log.Info("a trigger is ignored", "event", "trigger_ignored", "kind", t.Kind, "channel", t.Channel, "agent", t.Agent)
		return nil
	}
	thread, err := chat.NewThreadID(b.transport, in.Place(), in.ID, l.Name)
	if err != nil || !b.Backend.Serves(b.Name, thread) {
		return err
	}
	row, err := b.Backend.NewThread(ctx, thread, t.By, roomTitle(in))
	if err != nil {
		return err
	}
	body := chat.Received{From: chat.Participant{Kind: chat.System, Name: string(t.Kind)}, Principal: t.By, Blocks: chat.TextBlocks(cmp.Or(t.Text, goOn)), Silent: t.Text == "",
		Intake: l.Intake, Prompt: true, Together: true, Channel: in.ID}
	_, err = w.arrive(ctx, journal.Arrival{Platform: b.transport, Bot: b.Name, What: string(t.Kind), PlatformID: t.ID, Decision: d.String(),
		Commits: []journal.Commit{{Thread: thread, Create: &row, MaxWaiting: roomWaiting,
			Events: []chat.Event{{Thread: thread, Who: t.By.String(), Body: body, Platform: b.unmarked(), PlatformID: t.ID}}}}})
	return err
}

// roomTitle is the title of a room in lists.
func roomTitle(in room.Channel) string { return "#" + cmp.Or(in.Name, in.ID) }

// channelOf finds a channel, asking the platform for a limited time.
func (b *Bot) channelOf(ctx context.Context, id string) (room.Channel, error) {
	if c, ok := b.Platform.Known(id); ok {
		return c, nil
	}
	return callWithin(ctx, b, b.CallWait, "channel", func(ctx context.Context) (room.Channel, error) { return b.Platform.Channel(ctx, id) })
}
