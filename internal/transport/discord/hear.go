package discord

import (
	"context"
	"slices"
	"strings"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/mention"
	"chorus/internal/room/route"
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
		b.hearList(ctx, list)
	}
}

// hear takes one event; w is whom it wakes, nil for those that wake nobody.
func (b *Bot) hear(ctx context.Context, data any, w *waking) error {
	switch e := data.(type) {
	case Happening:
		return b.happened(ctx, e, w)
	case gateway.EventReady:
		return b.ready(ctx, e)
	case gateway.EventResumed:
		return b.catchUp(ctx, b.stirredChannels(0))
	case gateway.EventGuildCreate:
		return b.guild(ctx, e)
	case gateway.EventGuildDelete:
		return b.guildGone(ctx, e.ID.String())
	case lateGuilds:
		return b.guildsLate(ctx)
	case gateway.EventChannelCreate:
		return b.opened(ctx, e.GuildChannel)
	case gateway.EventChannelUpdate:
		b.world.channel(e.GuildChannel)
	case gateway.EventChannelDelete:
		b.world.forget(e.GuildChannel.ID().String())
	case gateway.EventChannelPinsUpdate:
		return b.repinned(ctx, e.ChannelID.String())
	case gateway.EventThreadCreate:
		return b.opened(ctx, e.GuildThread)
	case gateway.EventThreadUpdate:
		b.world.channel(e.GuildThread)
	case gateway.EventThreadDelete:
		b.world.forget(e.ID.String())
	case gateway.EventGuildRoleCreate:
		b.world.roleOf(e.GuildID.String(), e.Role)
	case gateway.EventGuildRoleUpdate:
		b.world.roleOf(e.GuildID.String(), e.Role)
	case gateway.EventGuildRoleDelete:
		b.world.role(e.GuildID.String(), e.RoleID.String(), "")
	case gateway.EventMessageCreate:
		if err := b.stir(ctx, e.ChannelID.String(), e.ID.String()); err != nil {
			return err
		}
		_, err := b.message(ctx, e.Message, w)
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
		return b.reactionAdded(ctx, e)
	case gateway.EventMessageReactionRemove:
		return b.reactionRemoved(ctx, e)
	case gateway.EventMessageReactionRemoveAll:
		return b.reactionsRemoved(ctx, e.GuildID, e.MessageID.String(), "")
	case gateway.EventMessageReactionRemoveEmoji:
		return b.reactionsRemoved(ctx, e.GuildID, e.MessageID.String(), signOf(e.Emoji))
	}
	return nil
}

// ready learns who we are and reads on where direct messages ended. Guilds follow with
// events of their own.
func (b *Bot) ready(ctx context.Context, e gateway.EventReady) error {
	b.mu.Lock()
	if b.self.ID == "" {
		close(b.greeted)
	}
	b.self = room.Author{ID: e.User.ID.String(), Name: e.User.Username, Bot: true}
	b.app = e.Application.ID.String()
	if b.guilds == nil {
		b.guilds = map[string]bool{} // each shard has its own
	}
	for _, g := range e.Guilds {
		b.guilds[g.ID.String()] = true
	}
	sync := !b.synced
	b.synced = true
	b.mu.Unlock()
	b.unpinned() // they may have changed while nobody told
	// From now on our other bots know whom a mention of this one is for.
	if _, err := b.Backend.Listeners(ctx, b.Name, b.me(), room.Channel{Guild: room.Direct}); err != nil {
		return err
	}
	if sync {
		b.work.Go(func() { b.register(ctx) })
	}
	b.work.Go(func() {
		if sleep(ctx, b.Patience) {
			b.queue.put(lateGuilds{})
		}
	})
	return b.direct(ctx)
}

// manyDirect bounds how many channels are read that nobody has told of: threads that are
// archived are among them, which can be thousands and say nothing new.
const manyDirect = 50

// direct reads direct messages on, once every guild has told of its channels: they are
// what nobody has told of.
func (b *Bot) direct(ctx context.Context) error {
	if b.untoldGuilds() > 0 {
		return nil
	}
	cursors, err := b.Backend.Cursors(ctx, room.Transport, b.Name)
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

// untoldGuilds is how many guilds have not told of their channels yet.
func (b *Bot) untoldGuilds() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.guilds)
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
		id := u.ID.String()
		if strings.Contains(m.Content, "<@"+id+">") || strings.Contains(m.Content, "<@!"+id+">") { // else a reply rings them
			out.Mentions = append(out.Mentions, id)
		}
	}
	for _, id := range m.MentionRoles {
		out.Roles = append(out.Roles, id.String())
	}
	if r := m.MessageReference; r != nil && r.MessageID != nil && r.Type == discord.MessageReferenceTypeDefault && (r.ChannelID == nil || *r.ChannelID == m.ChannelID) {
		out.ReplyTo = r.MessageID.String() // what is passed on from elsewhere is no reply
	}
	if m.ReferencedMessage != nil {
		out.Answers = m.ReferencedMessage.Author.Username
	}
	out.System = out.System || out.Author.Program() && pressable(m)
	return out
}

// known looks up earlier messages. Errors of the store end the hearing of this message.
type known struct {
	ctx context.Context
	b   *Bot
	err error
}

func (k *known) places(message string) []journal.Place {
	got, err := k.b.Backend.Places(k.ctx, room.Transport, message)
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
func (b *Bot) message(ctx context.Context, m discord.Message, w *waking) (bool, error) {
	in, err := b.channelOf(ctx, m.ChannelID.String())
	if err == nil {
		err = b.learnRoles(ctx, in.Guild)
	}
	if err != nil {
		return false, err
	}
	msg := b.converted(m, in)
	if m.Author.ID.String() == b.me().ID && m.WebhookID == nil {
		b.tails.spoke(in.ID, remarkOf(msg))
		return false, b.echo(ctx, m)
	}
	if b.ours(m) {
		return false, nil
	}
	if !msg.Author.Program() {
		b.world.met(in.Guild, mention.Named{ID: msg.Author.ID, Name: msg.Author.Name})
	}
	if answered, err := b.replied(ctx, msg); answered || err != nil {
		return answered, err
	}
	b.meeting.Lock() // whoever meets a room first reads what was said before, and nobody else does
	defer b.meeting.Unlock()
	listeners, err := b.listeners(ctx, in)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(listeners, connector.Listener.IsRoom) {
		defer b.tails.add(in.ID, remarkOf(msg))
	}
	if room.IsDotCommand(msg.Text) {
		return b.ordered(ctx, msg, listeners, w)
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
		if !b.Backend.Serves(b.Name, h.Thread) {
			continue // another bot of ours hears it itself
		}
		c, why, err := b.tells(ctx, m, msg, h, listeners, k)
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
	// First what is to be fetched, so that it is fetched whatever happens next.
	files, err := b.wants(ctx, m)
	if err != nil {
		return false, err
	}
	news, err := w.arrive(ctx, arrival)
	if news && files {
		b.files.put(fetch{channel: m.ChannelID.String(), message: m.ID.String()})
	}
	return news, err
}

// tells is what one of the threads that hear a message is told of it; nil: nothing.
func (b *Bot) tells(ctx context.Context, m discord.Message, msg room.Message, h route.Heard, all []connector.Listener, k *known) (*journal.Commit, string, error) {
	l := listenerOf(all, h.Agent.Name)
	why := string(h.Way) + " " + h.Agent.Name
	s := saying{said: m, msg: msg, heard: h, to: l}
	if h.Way == route.InRoom {
		d, err := b.speaks(ctx, &s, all, k)
		if err != nil || d.Drop && !d.Answer {
			return nil, "", err
		}
		why += ": " + d.String()
	}
	c, err := b.commit(ctx, s)
	return &c, why, err
}

func plain(list []connector.Listener) []route.Listener {
	out := make([]route.Listener, len(list))
	for i, l := range list {
		out[i] = l.Listener
	}
	return out
}

func listenerOf(list []connector.Listener, agent string) connector.Listener {
	for _, l := range list {
		if l.Name == agent {
			return l
		}
	}
	return connector.Listener{}
}

// principal is on whose authority a message was said.
func principal(a room.Author) chat.Principal {
	p := chat.Principal{Kind: chat.DiscordUser, ID: a.ID, Name: a.Name, Roles: a.Roles}
	if a.Webhook != "" {
		p.ID = "webhook/" + a.Webhook
	}
	return p
}
