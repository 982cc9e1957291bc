package connector

import (
	"context"
	"errors"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/route"
)

// handleAll writes events to the journal, one after the other, until ctx ends.
func (b *Bot) handleAll(ctx context.Context) {
	for {
		list, ok := b.queue.Take(ctx)
		if !ok {
			return
		}
		b.handleList(ctx, list)
		b.queue.finished(len(list))
	}
}

// handle takes one event. w collects whom to wake; nil for events that wake nobody.
func (b *Bot) handle(ctx context.Context, data any, w *waking) error {
	switch e := data.(type) {
	case Trigger:
		e.done <- b.triggered(ctx, e, w)
	case platform.Connected:
		return b.connected(ctx, e)
	case platform.Joined:
		return b.joined(ctx, e)
	case platform.Listed:
		return b.channelsListed(ctx, e)
	case platform.Opened:
		return b.opened(ctx, e.Channel)
	case platform.Removed:
		return b.removed(ctx, e.Channel)
	case platform.Pinned:
		return b.pinsChanged(ctx, e.Channel)
	case platform.Missed:
		return b.touch(ctx, e.Channel, e.Message)
	case platform.Said:
		if err := b.touch(ctx, e.Message.In.ID, e.Message.ID); err != nil {
			return err
		}
		_, err := b.message(ctx, e.Message, w)
		return err
	case platform.Edited:
		return b.edited(ctx, e.Message)
	case platform.Deleted:
		for _, id := range e.IDs {
			if err := b.deleted(ctx, e.Channel, id); err != nil {
				return err
			}
		}
	case platform.Reacted:
		return b.reacted(ctx, e)
	case platform.Cleared:
		return b.reactionsCleared(ctx, e)
	}
	return nil
}

// connected stores who we are. The platform lists its channels with separate events.
func (b *Bot) connected(ctx context.Context, e platform.Connected) error {
	if e.Resumed {
		return b.catchUp(ctx, b.activeChannels())
	}
	b.mu.Lock()
	if b.self.ID == "" {
		close(b.greeted)
	}
	b.self, b.listed = e.Self, false
	register := !b.registered && b.can.commands != nil
	b.registered = true
	b.mu.Unlock()
	b.forgetPins() // they may have changed while nobody was connected
	// From now on our other bots know whom a mention of this one is for.
	if _, err := b.Backend.Listeners(ctx, b.Name, b.Self(), room.Channel{Guild: room.Direct}); err != nil {
		return err
	}
	if register {
		b.work.Go(func() { b.register(ctx) })
	}
	return nil
}

// known looks up earlier messages. A store error stops the processing of this message.
type known struct {
	ctx context.Context
	b   *Bot
	err error
}

func (k *known) places(message string) []journal.Place {
	got, err := k.b.Backend.Places(k.ctx, k.b.transport, message)
	if err != nil {
		k.err = err
	}
	return got
}

func (k *known) rules() route.Known {
	return route.Known{
		Platform: k.b.transport,
		Produced: func(message string) (chat.ThreadID, bool) {
			for _, p := range k.places(message) {
				if p.Ours && k.there(p.Thread) {
					return p.Thread, true
				}
			}
			return "", false
		},
		Joined: k.there,
	}
}

// there reports whether a thread exists and was not deleted.
func (k *known) there(thread chat.ThreadID) bool {
	row, err := k.b.Backend.Thread(k.ctx, thread)
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		k.err = err
	}
	return err == nil && !row.Gone()
}

// message takes a message. It reports whether it was new to us.
func (b *Bot) message(ctx context.Context, m room.Message, w *waking) (bool, error) {
	in := m.In
	if m.Own {
		if m.Aside {
			return false, nil
		}
		b.recent.spoke(in.ID, recentOf(m))
		return false, b.echo(ctx, m)
	}
	b.people.Spoke(in.Guild, m.Author)
	for _, who := range m.Named {
		b.people.Mentioned(in.Guild, who)
	}
	if answered, err := b.replied(ctx, m); answered || err != nil {
		return answered, err
	}
	m = b.spoken(m)
	if taken, err := b.textCommand(ctx, m); taken || err != nil {
		return taken, err
	}
	b.taking.Lock() // the first message that enters a room reads the earlier ones, and no other does
	defer b.taking.Unlock()
	listeners, err := b.listeners(ctx, in)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(listeners, Listener.IsRoom) {
		defer b.recent.add(in.ID, recentOf(m))
	}
	if room.IsDotCommand(m.Text) {
		return b.historyCommand(ctx, m, listeners, w)
	}
	k := &known{ctx: ctx, b: b}
	targets, err := route.Message(m, plain(listeners), k.rules())
	if err == nil {
		err = k.err
	}
	if err != nil || len(targets) == 0 {
		return false, err
	}
	arrival := journal.Arrival{Platform: b.transport, Bot: b.Name, What: string(room.Said), PlatformID: m.ID}
	for _, h := range targets {
		if !b.Backend.Serves(b.Name, h.Thread) {
			continue // another bot of ours takes it
		}
		c, why, err := b.commitFor(ctx, m, h, listeners, k)
		if err != nil {
			return false, err
		}
		if c == nil {
			continue
		}
		arrival.Decision += why + "; "
		arrival.Commits = append(arrival.Commits, *c)
	}
	if len(arrival.Commits) == 0 {
		return false, nil
	}
	// First record the pending downloads, so that they happen whatever comes next.
	files, err := b.wants(ctx, m)
	if err != nil {
		return false, err
	}
	news, err := w.arrive(ctx, arrival)
	if news && files {
		b.files.put(download{channel: in.ID, message: m.ID, at: m.At})
	}
	return news, err
}

// echo handles a message of ours that the platform reports.
func (b *Bot) echo(ctx context.Context, m room.Message) error {
	if m.Nonce == "" {
		return nil
	}
	_, err := b.outbox.Echo(ctx, m.Nonce, m.ID)
	return err
}

// commitFor is what a thread is told of a message; nil: nothing.
func (b *Bot) commitFor(ctx context.Context, m room.Message, h route.Heard, all []Listener, k *known) (*journal.Commit, string, error) {
	l := ListenerOf(all, h.Agent.Name)
	why := string(h.Way) + " " + h.Agent.Name
	d := delivery{msg: m, target: h, to: l}
	if l.Blocks(m.Author) {
		return nil, "", nil
	}
	if h.Way != route.InRoom && !b.cooldowns.ask(l.Name, m, l.Cooldown) {
		return nil, "", b.react(ctx, m.In.ID, m.ID, signLater)
	}
	if h.Way != route.InRoom && m.Author.Program() && activate.Depth(b.chain(ctx, m, l.Rules.Deepest())) >= l.Rules.MaxBotReplyChainDepth {
		b.Log.Info("a program is not answered any more", "event", "activation", "agent", l.Name, "message", m.ID, "decision", activate.TooDeep)
		if l.Rules.ChainEmote == "" {
			return nil, "", nil
		}
		return nil, "", b.react(ctx, m.In.ID, m.ID, l.Rules.ChainEmote)
	}
	if h.Way == route.InRoom {
		decision, err := b.decideInRoom(ctx, &d, all, k)
		if err != nil || decision.Drop && !decision.Answer {
			return nil, "", err
		}
		why += ": " + decision.String()
		if d.target.Prompt && !d.command && !b.cooldowns.ask(l.Name, m, l.Cooldown) {
			d.target.Prompt = false // it is heard, and not answered
			if err := b.react(ctx, m.In.ID, m.ID, signLater); err != nil {
				return nil, "", err
			}
		}
	}
	c, err := b.commit(ctx, d)
	return &c, why, err
}

func plain(list []Listener) []route.Listener {
	out := make([]route.Listener, len(list))
	for i, l := range list {
		out[i] = l.Listener
	}
	return out
}

// ListenerOf finds an agent among those that read a channel; without a name there is none.
func ListenerOf(list []Listener, agent string) Listener {
	for _, l := range list {
		if l.Name == agent {
			return l
		}
	}
	return Listener{}
}

// Principal is the authority behind an author's messages.
func (b *Bot) Principal(a room.Author) chat.Principal {
	p := chat.Principal{Kind: chat.PrincipalKind(b.transport), ID: a.ID, Name: a.Name, Roles: a.Roles}
	if a.Webhook != "" {
		p.ID = "webhook/" + a.Webhook
	}
	return p
}
