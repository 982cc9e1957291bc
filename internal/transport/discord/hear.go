package discord

import (
	"context"
	"encoding/json"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/mention"
	"chorus/internal/room/route"
	"chorus/internal/room/split"
)

// take hands on what the gateway says. Clicks and commands cannot wait behind history
// that is being read: they go their own way.
func (b *Bot) take(data gateway.EventData) {
	if e, ok := data.(gateway.EventInteractionCreate); ok {
		b.mu.Lock()
		ctx := b.running
		b.mu.Unlock()
		b.work.Go(func() { b.interact(ctx, e.Interaction) })
		return
	}
	b.queue.put(data)
}

// hearAll brings events to the journal, one after the other, until ctx ends.
func (b *Bot) hearAll(ctx context.Context) {
	for {
		list, ok := b.queue.take(ctx)
		if !ok {
			return
		}
		for _, e := range list {
			if ctx.Err() != nil {
				return
			}
			if err := b.hear(ctx, e); err != nil && ctx.Err() == nil {
				// One event that fails never stops the rest; a message is found again by the next history read.
				b.Log.Error("could not take an event", "event", "event_failed", "error", err)
			}
		}
	}
}

func (b *Bot) hear(ctx context.Context, data gateway.EventData) error {
	switch e := data.(type) {
	case gateway.EventReady:
		return b.ready(ctx, e)
	case gateway.EventResumed:
		return b.catchUp(ctx, b.stirredChannels(0))
	case gateway.EventGuildCreate:
		return b.guild(ctx, e)
	case gateway.EventChannelCreate:
		return b.opened(ctx, e.GuildChannel)
	case gateway.EventChannelUpdate:
		b.world.channel(e.GuildChannel)
	case gateway.EventChannelDelete:
		b.world.forget(e.GuildChannel.ID().String())
	case gateway.EventThreadCreate:
		return b.opened(ctx, e.GuildThread)
	case gateway.EventThreadUpdate:
		b.world.channel(e.GuildThread)
	case gateway.EventThreadDelete:
		b.world.forget(e.ID.String())
	case gateway.EventGuildRoleCreate:
		b.world.role(e.GuildID.String(), e.Role.ID.String(), e.Role.Name)
	case gateway.EventGuildRoleUpdate:
		b.world.role(e.GuildID.String(), e.Role.ID.String(), e.Role.Name)
	case gateway.EventGuildRoleDelete:
		b.world.role(e.GuildID.String(), e.RoleID.String(), "")
	case gateway.EventMessageCreate:
		if err := b.stir(ctx, e.ChannelID.String(), e.ID.String()); err != nil {
			return err
		}
		_, err := b.message(ctx, e.Message)
		return err
	case gateway.EventMessageUpdate:
		return b.edited(ctx, e.Message)
	case gateway.EventMessageDelete:
		return b.deleted(ctx, e.ChannelID.String(), e.ID.String())
	case gateway.EventMessageDeleteBulk:
		for _, id := range e.IDs {
			if err := b.deleted(ctx, e.ChannelID.String(), id.String()); err != nil {
				return err
			}
		}
	case gateway.EventMessageReactionAdd:
		return b.reacted(ctx, e)
	}
	return nil
}

// ready learns who we are and reads on where direct messages ended. Guilds follow with
// events of their own.
func (b *Bot) ready(ctx context.Context, e gateway.EventReady) error {
	b.mu.Lock()
	b.self = room.Author{ID: e.User.ID.String(), Name: e.User.Username, Bot: true}
	b.app = e.Application.ID.String()
	b.guilds = map[string]bool{}
	for _, g := range e.Guilds {
		b.guilds[g.ID.String()] = true
	}
	sync := !b.synced
	b.synced = true
	b.mu.Unlock()
	if sync {
		b.work.Go(func() { b.register(ctx) })
	}
	return b.direct(ctx)
}

// manyDirect bounds how many channels are read that nobody has told of: threads that are
// archived are among them, which can be thousands and say nothing new.
const manyDirect = 50

// direct reads direct messages on, once every guild has told of its channels: they are
// what nobody has told of.
func (b *Bot) direct(ctx context.Context) error {
	b.mu.Lock()
	waiting := len(b.guilds)
	b.mu.Unlock()
	if waiting > 0 {
		return nil
	}
	cursors, err := b.House.Cursors(ctx, room.Transport, b.Name)
	if err != nil {
		return err
	}
	for id := range cursors {
		if _, ok := b.world.known(id); ok {
			delete(cursors, id)
		}
	}
	b.compareSoon(ctx)
	return b.catchUp(ctx, newestCursors(cursors, manyDirect))
}

func (b *Bot) me() room.Author {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.self
}

// author is whoever wrote a message.
func (b *Bot) author(guild string, u discord.User, m *discord.Member, webhook string) room.Author {
	return room.Author{ID: u.ID.String(), Name: u.Username, Bot: u.Bot, Webhook: webhook, Roles: b.world.roleNames(guild, m), Member: m != nil}
}

// converted is a message in our words.
func (b *Bot) converted(m discord.Message, in room.Channel) room.Message {
	out := room.Message{ID: m.ID.String(), In: in, Text: m.Content,
		System: m.Type != discord.MessageTypeDefault && m.Type != discord.MessageTypeReply}
	webhook := ""
	if m.WebhookID != nil {
		webhook = m.WebhookID.String()
	}
	out.Author = b.author(in.Guild, m.Author, m.Member, webhook)
	for _, u := range m.Mentions {
		out.Mentions = append(out.Mentions, u.ID.String())
	}
	if m.MessageReference != nil && m.MessageReference.MessageID != nil {
		out.ReplyTo = m.MessageReference.MessageID.String()
	}
	return out
}

// known looks up earlier messages. Errors of the store end the hearing of this message.
type known struct {
	ctx context.Context
	b   *Bot
	err error
}

func (k *known) places(message string) []journal.Place {
	got, err := k.b.House.Places(k.ctx, room.Transport, message)
	if err != nil {
		k.err = err
	}
	return got
}

func (k *known) rules() route.Known {
	return route.Known{
		Produced: func(message string) (chat.ThreadID, bool) {
			for _, p := range k.places(message) {
				if p.Ours {
					return p.Thread, true
				}
			}
			return "", false
		},
		Heard: func(message string) []chat.ThreadID {
			var out []chat.ThreadID
			for _, p := range k.places(message) {
				if !p.Ours {
					out = append(out, p.Thread)
				}
			}
			return out
		},
	}
}

// message hears one. It reports whether it was new to us.
func (b *Bot) message(ctx context.Context, m discord.Message) (bool, error) {
	if m.Author.ID.String() == b.me().ID && m.WebhookID == nil {
		return false, b.echo(ctx, m)
	}
	in, err := b.channelOf(ctx, m.ChannelID.String())
	if err != nil {
		return false, err
	}
	msg := b.converted(m, in)
	if !msg.Author.Program() {
		b.world.met(in.Guild, mention.Named{ID: msg.Author.ID, Name: msg.Author.Name})
	}
	listeners, err := b.House.Listeners(ctx, b.Name, b.me(), in)
	if err != nil {
		return false, err
	}
	k := &known{ctx: ctx, b: b}
	heard, err := route.Message(msg, plain(listeners), k.rules())
	if err == nil {
		err = k.err
	}
	if err != nil || len(heard) == 0 {
		return false, err
	}
	arrival := journal.Arrival{Platform: room.Transport, Bot: b.Name, What: string(room.Said), PlatformID: msg.ID}
	for _, h := range heard {
		if !b.House.Serves(b.Name, h.Thread) {
			continue // another bot of ours hears it itself
		}
		l := listenerOf(listeners, h.Agent.Name)
		words := msg
		if h.Way == route.InRoom {
			hears, err := b.speaks(ctx, &h, &words, l, k)
			if err != nil {
				return false, err
			}
			if !hears {
				continue
			}
		}
		c, err := b.commit(ctx, m, words, h, l)
		if err != nil {
			return false, err
		}
		arrival.Decision += string(h.Way) + " " + h.Agent.Name + "; "
		arrival.Commits = append(arrival.Commits, c)
	}
	if len(arrival.Commits) == 0 {
		return false, nil
	}
	// First what is to be fetched, so that it is fetched whatever happens next.
	files, err := b.wants(ctx, m)
	if err != nil {
		return false, err
	}
	done, err := b.House.Arrive(ctx, arrival)
	if err != nil || done.Again {
		return false, err
	}
	if files {
		b.files.put(fetch{channel: m.ChannelID.String(), message: m.ID.String()})
	}
	for _, c := range arrival.Commits {
		b.wake(ctx, c.Thread)
	}
	return true, nil
}

func plain(list []Listener) []route.Listener {
	out := make([]route.Listener, len(list))
	for i, l := range list {
		out[i] = l.Listener
	}
	return out
}

func listenerOf(list []Listener, agent string) Listener {
	for _, l := range list {
		if l.Name == agent {
			return l
		}
	}
	return Listener{}
}

// speaks decides in a room whether the agent answers; false: it does not even hear. A
// command is taken away from the channel, and the agent is told to go on in its place.
func (b *Bot) speaks(ctx context.Context, h *route.Heard, m *room.Message, l Listener, k *known) (bool, error) {
	seen := activate.Seen{Chain: []room.Author{m.Author}, Recent: []room.Author{m.Author}, Turn: true}
	for _, p := range k.places(m.ReplyTo) {
		seen.Replied = seen.Replied || p.Ours && p.Thread.Agent() == l.Name
	}
	d := activate.Decide(room.Event{Kind: room.Said, Message: *m}, l.Agent, l.Rules, seen, diceOf(m.ID, l.Name))
	h.Prompt = d.Answer
	var wishes []journal.Desired
	if d.Delete {
		wishes = append(wishes, journal.Desired{Lane: b.lane(m.In.ID), Key: "delete/" + m.ID, Target: m.ID, Gone: true, Final: true})
	}
	if d.React != "" {
		body, _ := json.Marshal(post{Emoji: d.React}) // strings only
		wishes = append(wishes, journal.Desired{Lane: b.lane(m.In.ID), Key: "sign/" + m.ID + "/" + d.React, Thing: journal.Reaction, Target: m.ID, Body: body, Final: true})
	}
	if len(wishes) > 0 {
		if err := b.House.Wish(ctx, wishes...); err != nil {
			return false, err
		}
		b.outbox.Wake(b.lane(m.In.ID))
	}
	if d.Answer && d.Drop {
		m.Text = "(go on)"
		return true, nil
	}
	return !d.Drop, nil
}

// commit is what a thread is told of a message.
func (b *Bot) commit(ctx context.Context, m discord.Message, msg room.Message, h route.Heard, l Listener) (journal.Commit, error) {
	who := principal(msg.Author)
	text := mention.Read(msg.Text, b.world.directory(msg.In.Guild))
	if l.MaxChars > 0 {
		text = split.Clip(text, l.MaxChars)
	}
	blocks := chat.Blocks{}
	if text != "" {
		blocks = append(blocks, chat.Text{Text: text})
	}
	blocks = append(blocks, announced(m)...)
	if len(blocks) == 0 {
		blocks = chat.TextBlocks("(a message without words)")
	}
	body := chat.Received{From: msg.Author.Participant(), Principal: who, Blocks: blocks, ReplyTo: msg.ReplyTo, Intake: h.Intake, Prompt: h.Prompt,
		Channel: msg.In.ID}
	if h.Post != msg.In.ID {
		body.Post = h.Post
	}
	row, err := b.House.Row(ctx, h.Thread, who, split.Clip(text, 80))
	if err != nil {
		return journal.Commit{}, err
	}
	return journal.Commit{Thread: h.Thread, Create: &row, Events: []chat.Event{{Thread: h.Thread, Who: who.String(), Body: body,
		Platform: room.Transport, PlatformID: msg.ID}}}, nil
}

// principal is on whose authority a message was said.
func principal(a room.Author) chat.Principal {
	p := chat.Principal{Kind: chat.DiscordUser, ID: a.ID, Name: a.Name, Roles: a.Roles}
	if a.Webhook != "" {
		p.ID = "webhook/" + a.Webhook
	}
	return p
}
