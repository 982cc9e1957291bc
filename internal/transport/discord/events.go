package discord

import (
	"context"
	"slices"

	"github.com/disgoorg/disgo/discord"
	wire "github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/await"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// convertAll converts gateway events to neutral ones, in order, until ctx ends.
func (c *Client) convertAll(ctx context.Context) {
	for {
		list, ok := c.events.Take(ctx)
		if !ok {
			return
		}
		for _, e := range list {
			if ctx.Err() != nil {
				return
			}
			c.convert(ctx, e)
		}
	}
}

// lateGuilds is queued after a READY: guilds that have not reported by then are not waited for.
type lateGuilds struct{}

// convert converts one event for the connector.
func (c *Client) convert(ctx context.Context, data any) {
	switch e := data.(type) {
	case wire.EventReady:
		c.ready(ctx, e)
	case wire.EventResumed:
		c.sink.Take(platform.Connected{Self: c.me(), Resumed: true})
	case wire.EventGuildCreate:
		c.guild(e)
	case wire.EventGuildUpdate:
		c.cache.SetOwner(e.ID.String(), e.OwnerID.String())
	case wire.EventGuildDelete:
		c.guildGone(e.ID.String())
	case lateGuilds:
		c.guildsLate()
	case wire.EventChannelCreate:
		c.opened(e.GuildChannel)
	case wire.EventThreadCreate:
		c.opened(e.GuildThread)
	case wire.EventChannelUpdate:
		c.cache.Learn(e.GuildChannel)
	case wire.EventThreadUpdate:
		c.cache.Learn(e.GuildThread)
	case wire.EventChannelDelete:
		c.removed(e.GuildChannel.ID())
	case wire.EventThreadDelete:
		c.removed(e.ID)
	case wire.EventChannelPinsUpdate:
		c.sink.Take(platform.Pinned{Channel: e.ChannelID.String()})
	case wire.EventGuildRoleCreate:
		c.cache.LearnRole(e.GuildID.String(), e.Role)
	case wire.EventGuildRoleUpdate:
		c.cache.LearnRole(e.GuildID.String(), e.Role)
	case wire.EventGuildRoleDelete:
		c.cache.SetRole(e.GuildID.String(), e.RoleID.String(), "")
	default:
		c.convertMessage(ctx, data)
	}
}

// convertMessage converts an event about a message.
func (c *Client) convertMessage(ctx context.Context, data any) {
	switch e := data.(type) {
	case wire.EventMessageCreate:
		if m, ok := c.whole(ctx, e.Message); ok {
			c.sink.Take(platform.Said{Message: m})
		}
	case wire.EventMessageUpdate:
		if m, ok := c.whole(ctx, e.Message); ok {
			c.sink.Take(platform.Edited{Message: m})
		}
	case wire.EventMessageDelete:
		c.sink.Take(platform.Deleted{Channel: e.ChannelID.String(), IDs: []string{e.ID.String()}})
	case wire.EventMessageDeleteBulk:
		ids := make([]string, len(e.IDs))
		for i, id := range e.IDs {
			ids[i] = id.String()
		}
		c.sink.Take(platform.Deleted{Channel: e.ChannelID.String(), IDs: ids})
	case wire.EventMessageReactionAdd:
		in := c.place(e.GuildID, e.ChannelID)
		by := room.Author{ID: e.UserID.String()}
		if err := c.learnRoles(ctx, in.Guild); err != nil {
			c.Log.Error("a reaction could not be taken", "event", "event_failed", "error", err)
			return
		}
		if e.Member != nil {
			by = c.author(in.Guild, e.Member.User, e.Member, "")
		}
		c.sink.Take(platform.Reacted{In: in, Message: e.MessageID.String(), Emoji: emojiOf(e.Emoji), By: by, Added: true})
	case wire.EventMessageReactionRemove:
		c.sink.Take(platform.Reacted{In: c.place(e.GuildID, e.ChannelID), Message: e.MessageID.String(), Emoji: emojiOf(e.Emoji), By: room.Author{ID: e.UserID.String()}})
	case wire.EventMessageReactionRemoveAll:
		c.sink.Take(platform.Cleared{In: c.place(e.GuildID, e.ChannelID), Message: e.MessageID.String()})
	case wire.EventMessageReactionRemoveEmoji:
		c.sink.Take(platform.Cleared{In: c.place(e.GuildID, e.ChannelID), Message: e.MessageID.String(), Emoji: emojiOf(e.Emoji)})
	}
}

// whole completes a message with everything that must be fetched. false: that failed, and the
// connector finds the message in the history later.
func (c *Client) whole(ctx context.Context, m discord.Message) (room.Message, bool) {
	in, err := ask(ctx, c, "channel", func(ctx context.Context) (room.Channel, error) { return c.Channel(ctx, m.ChannelID.String()) })
	if err == nil {
		err = c.learnRoles(ctx, in.Guild)
	}
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Error("a message could not be taken", "event", "event_failed", "message", m.ID, "error", err)
			c.sink.Take(platform.Missed{Channel: m.ChannelID.String(), Message: m.ID.String()})
		}
		return room.Message{}, false
	}
	out := c.message(m, in)
	if m.InteractionMetadata != nil && !out.Author.Program() && in.Guild != room.Direct {
		// Discord sends the bot's roles, not those of the person who gave the command.
		if who, err := ask(ctx, c, "member", func(ctx context.Context) (room.Author, error) { return c.Member(ctx, in.Guild, out.Author) }); err == nil {
			out.Author = who
		}
	}
	return out, true
}

// place is a channel as far as an event describes it.
func (c *Client) place(guild *snowflake.ID, channel snowflake.ID) room.Channel {
	if in, ok := c.cache.Known(channel.String()); ok {
		return in
	}
	return room.Channel{Guild: guildOf(guild), ID: channel.String()}
}

func guildOf(id *snowflake.ID) string {
	if id == nil {
		return room.Direct
	}
	return id.String()
}

func emojiOf(e discord.PartialEmoji) string {
	if e.Name == nil {
		return ""
	}
	return *e.Name
}

// ready stores who we are. Guilds follow in their own events.
func (c *Client) ready(ctx context.Context, e wire.EventReady) {
	self := room.Author{ID: e.User.ID.String(), Name: e.User.Username, Bot: true}
	c.mu.Lock()
	c.self, c.app = self, e.Application.ID.String()
	for _, g := range e.Guilds {
		c.pending[g.ID.String()] = true // each shard has its own
	}
	none := len(c.pending) == 0
	c.mu.Unlock()
	c.sink.Take(platform.Connected{Self: self})
	if none {
		c.sink.Take(platform.Listed{Complete: true})
		return
	}
	c.work.Go(func() {
		if await.For(ctx, c.CallWait) {
			c.events.Put(lateGuilds{})
		}
	})
}

// guildsLate continues without guilds that have not reported their channels.
func (c *Client) guildsLate() {
	c.mu.Lock()
	n := len(c.pending)
	clear(c.pending)
	c.mu.Unlock()
	if n > 0 {
		c.Log.Warn("guilds have not reported their channels; going on without them", "event", "guilds_late", "guilds", n)
		c.sink.Take(platform.Listed{Complete: true})
	}
}

// guildGone removes a guild from the list of pending ones.
func (c *Client) guildGone(guild string) {
	c.mu.Lock()
	waited := c.pending[guild]
	delete(c.pending, guild)
	left := len(c.pending)
	c.mu.Unlock()
	if waited && left == 0 {
		c.sink.Take(platform.Listed{Complete: true})
	}
}

// removed handles a deleted channel or thread.
func (c *Client) removed(id snowflake.ID) {
	c.cache.Forget(id.String())
	c.sink.Take(platform.Removed{Channel: id.String()})
}

// withMessages is a channel that knows its newest message.
type withMessages interface {
	discord.Channel
	LastMessageID() *snowflake.ID
}

// guild stores a guild with its channels.
func (c *Client) guild(e wire.EventGuildCreate) {
	c.learnGuild(e.ID.String(), e.OwnerID.String(), e.Roles)
	var out platform.Listed
	learn := func(ch discord.Channel) {
		in := c.cache.Learn(ch)
		m, ok := ch.(withMessages)
		if !ok {
			return
		}
		newest := "0"
		if id := m.LastMessageID(); id != nil {
			newest = id.String()
		}
		out.Channels = append(out.Channels, platform.Listing{Channel: in, Newest: newest, Made: madeAt(ch)})
	}
	for _, ch := range e.Channels {
		learn(ch)
	}
	for _, ch := range e.Threads {
		learn(ch)
	}
	c.sink.Take(platform.Joined{Guild: e.ID.String(), Name: e.Name, At: e.JoinedAt, Greet: c.greets(e)})
	c.mu.Lock()
	delete(c.pending, e.ID.String())
	out.Complete = len(c.pending) == 0
	c.mu.Unlock()
	c.sink.Take(out)
}

// greets is the channel in which the bot may introduce itself: the server's channel for newcomers, otherwise the first in
// which it may write; "": there is none.
func (c *Client) greets(e wire.EventGuildCreate) string {
	me := c.me().ID
	at := slices.IndexFunc(e.Members, func(m discord.Member) bool { return m.User.ID.String() == me })
	if at < 0 {
		return ""
	}
	const needed = discord.PermissionViewChannel | discord.PermissionSendMessages
	var first discord.GuildChannel
	for _, ch := range e.Channels {
		if ch.Type() != discord.ChannelTypeGuildText || !permissions(e.Members[at], e.OwnerID, e.Roles, ch.PermissionOverwrites()).Has(needed) {
			continue
		}
		if e.SystemChannelID != nil && ch.ID() == *e.SystemChannelID {
			return ch.ID().String()
		}
		if first == nil || ch.Position() < first.Position() {
			first = ch
		}
	}
	if first == nil {
		return ""
	}
	return first.ID().String()
}

// madeAt is an id from the time a channel was created. A thread has the id of the message that it
// was opened on, which may be much older.
func madeAt(ch discord.Channel) string {
	if t, ok := ch.(discord.GuildThread); ok && !t.ThreadMetadata.CreateTimestamp.IsZero() {
		return snowflake.New(t.ThreadMetadata.CreateTimestamp).String()
	}
	return ch.ID().String()
}

// opened stores a channel that was just created.
func (c *Client) opened(ch discord.Channel) {
	in := c.cache.Learn(ch)
	if _, ok := ch.(withMessages); ok {
		c.sink.Take(platform.Opened{Channel: in})
	}
}
