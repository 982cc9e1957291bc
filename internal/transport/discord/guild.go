package discord

import (
	"context"
	"fmt"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/split"
	"chorus/internal/transport/discord/gateway"
)

// OpenOn implements platform.Threads.
func (c *Client) OpenOn(ctx context.Context, channel, message, name string) (room.Channel, error) {
	if _, forum := c.cache.Forum(channel); forum {
		return c.Channel(ctx, message) // a post is already a thread
	}
	made, err := c.rest.CreateThreadFromMessage(gateway.ID(channel), gateway.ID(message), discord.ThreadCreateFromMessage{Name: name}, rest.WithCtx(ctx))
	if rest.IsJSONErrorCode(err, rest.JSONErrorCodeThreadAlreadyCreatedForMessage) {
		in, _ := c.cache.Known(message)
		return in, nil
	}
	if err != nil {
		return room.Channel{}, gateway.Trouble(err)
	}
	return c.cache.Learn(*made), nil
}

// Open implements platform.Threads.
func (c *Client) Open(ctx context.Context, channel, name string) (room.Channel, error) {
	if in, forum := c.cache.Forum(channel); forum {
		post := discord.ThreadChannelPostCreate{Name: split.Clip(name, maxPostTitle), Message: discord.MessageCreate{Content: name}, AppliedTags: c.tagged(ctx, in, platform.Entry{}, nil)}
		made, err := c.rest.CreatePostInThreadChannel(in.ID(), post, rest.WithCtx(ctx))
		if err != nil {
			return room.Channel{}, gateway.Trouble(err)
		}
		return c.cache.Learn(made.GuildThread), nil
	}
	made, err := c.rest.CreateThread(gateway.ID(channel), discord.GuildPublicThreadCreate{Name: name}, rest.WithCtx(ctx))
	if err != nil {
		return room.Channel{}, gateway.Trouble(err)
	}
	return c.cache.Learn(*made), nil
}

// DirectChannel implements platform.Direct. Programs have no direct messages.
func (c *Client) DirectChannel(ctx context.Context, user string) (string, error) {
	if gateway.ID(user) == 0 {
		return "", nil
	}
	made, err := c.rest.CreateDMChannel(gateway.ID(user), rest.WithCtx(ctx))
	if err != nil {
		return "", gateway.Trouble(err)
	}
	c.cache.Learn(*made)
	return made.ID().String(), nil
}

// Guilds implements platform.Names.
func (c *Client) Guilds() map[string][]room.Channel { return c.cache.Guilds() }

// Rename implements platform.Names.
func (c *Client) Rename(ctx context.Context, guild, name string) (bool, error) {
	me := c.me()
	member, err := c.rest.GetMember(gateway.ID(guild), gateway.ID(me.ID), rest.WithCtx(ctx))
	if err != nil {
		return false, gateway.Trouble(err)
	}
	if now := member.Nick; now != nil && *now == name || now == nil && me.Name == name {
		return false, nil
	}
	_, err = c.rest.UpdateCurrentMember(gateway.ID(guild), discord.CurrentMemberUpdate{Nick: &name}, rest.WithCtx(ctx), rest.WithReason("innerName"))
	return true, gateway.Trouble(err)
}

// ChannelsOf implements platform.Channels.
func (c *Client) ChannelsOf(ctx context.Context, guild string) ([]platform.ChannelInfo, error) {
	all, err := c.rest.GetGuildChannels(gateway.ID(guild), rest.WithCtx(ctx))
	if err != nil {
		return nil, gateway.Trouble(err)
	}
	var out []platform.ChannelInfo
	for _, ch := range all {
		var topic *string
		switch in := ch.(type) {
		case discord.GuildTextChannel:
			topic = in.Topic()
		case discord.GuildForumChannel:
			topic = in.Topic
		default:
			continue
		}
		info := platform.ChannelInfo{Channel: c.cache.Learn(ch)}
		if topic != nil {
			info.Topic = *topic
		}
		out = append(out, info)
	}
	return out, nil
}

// MakeChannel implements platform.Channels. The new channel is in the same category as the
// one it should be next to.
func (c *Client) MakeChannel(ctx context.Context, want platform.NewChannel) (room.Channel, error) {
	var body discord.GuildChannelCreate = discord.GuildTextChannelCreate{Name: want.Name, ParentID: c.categoryOf(ctx, want.Beside), Topic: want.Topic}
	if want.Board {
		body = forumCreate{discord.GuildForumChannelCreate{Name: want.Name, ParentID: c.categoryOf(ctx, want.Beside), Topic: want.Topic}}
	}
	made, err := c.rest.CreateGuildChannel(gateway.ID(want.Guild), body,
		rest.WithCtx(ctx), rest.WithReason(want.Reason))
	if err != nil {
		return room.Channel{}, gateway.Trouble(err)
	}
	return c.cache.Learn(made), nil
}

// categoryOf is the category of a channel; 0: none, or unknown.
func (c *Client) categoryOf(ctx context.Context, channel string) snowflake.ID {
	got, err := c.rest.GetChannel(gateway.ID(channel), rest.WithCtx(ctx))
	if err != nil {
		return 0
	}
	if in, ok := got.(discord.GuildChannel); ok && in.ParentID() != nil {
		return *in.ParentID()
	}
	return 0
}

// DeleteChannel implements platform.Channels.
func (c *Client) DeleteChannel(ctx context.Context, id, reason string) error {
	return gateway.Trouble(c.rest.DeleteChannel(gateway.ID(id), rest.WithCtx(ctx), rest.WithReason(reason)))
}

// Link implements platform.Links.
func (*Client) Link(guild, channel, message string) string {
	return fmt.Sprintf("https://discord.com/channels/%s/%s/%s", guild, channel, message)
}

// reopened reopens a thread that was archived meanwhile; false: err was a different error, or
// the thread cannot be opened, never or not now, as the remaining error says.
func (c *Client) reopened(ctx context.Context, channel string, err error) (bool, error) {
	if !rest.IsJSONErrorCode(err, rest.JSONErrorCodeOperationOnArchivedThread) {
		return false, err
	}
	archived := false
	_, refused := c.rest.UpdateChannel(gateway.ID(channel), discord.GuildThreadUpdate{Archived: &archived}, rest.WithCtx(ctx))
	if refused != nil && platform.Passing(gateway.Trouble(refused)) {
		return false, refused
	}
	return refused == nil, err
}
