package discord

import (
	"context"
	"slices"
	"strings"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/split"
	"chorus/internal/transport/discord/gateway"
)

// toRead are the permissions needed to read a channel's history.
const toRead = discord.PermissionViewChannel | discord.PermissionReadMessageHistory

// MayRead implements platform.Readers: whether somebody can read a channel's history themselves, according to Discord's current
// state. If in doubt they cannot.
func (c *Client) MayRead(ctx context.Context, guild, channel, user string) (bool, error) {
	if guild == "" || guild == room.Direct || user == "" {
		return false, nil
	}
	got, err := c.rest.GetChannel(gateway.ID(channel), rest.WithCtx(ctx))
	if err != nil {
		return false, absent(gateway.Trouble(err))
	}
	in, ok := got.(discord.GuildChannel)
	if !ok || in.GuildID().String() != guild {
		return false, nil
	}
	member, g, err := c.memberOf(ctx, guild, user)
	if err != nil {
		return false, absent(gateway.Trouble(err))
	}
	home := in
	if _, thread := got.(discord.GuildThread); thread && in.ParentID() != nil {
		parent, err := c.rest.GetChannel(*in.ParentID(), rest.WithCtx(ctx))
		if err != nil {
			return false, absent(gateway.Trouble(err))
		}
		if home, ok = parent.(discord.GuildChannel); !ok {
			return false, nil
		}
	}
	has := permissions(*member, g.OwnerID, g.Roles, home.PermissionOverwrites())
	if !has.Has(toRead) || in.Type() != discord.ChannelTypeGuildPrivateThread || has.Has(discord.PermissionManageThreads) {
		return has.Has(toRead), nil
	}
	_, err = c.rest.GetThreadMember(gateway.ID(channel), gateway.ID(user), false, rest.WithCtx(ctx))
	return err == nil, absent(gateway.Trouble(err))
}

// MayManageChannels implements platform.Managers, by a person's roles in the guild as a whole.
func (c *Client) MayManageChannels(ctx context.Context, guild, user string) (bool, error) {
	if guild == "" || guild == room.Direct || user == "" {
		return false, nil
	}
	member, g, err := c.memberOf(ctx, guild, user)
	if err != nil {
		return false, absent(gateway.Trouble(err))
	}
	return permissions(*member, g.OwnerID, g.Roles, nil).Has(discord.PermissionManageChannels), nil
}

// memberOf returns a member and the guild, as Discord knows them now.
func (c *Client) memberOf(ctx context.Context, guild, user string) (*discord.Member, *discord.RestGuild, error) {
	member, err := c.rest.GetMember(gateway.ID(guild), gateway.ID(user), rest.WithCtx(ctx))
	if err != nil {
		return nil, nil, err
	}
	g, err := c.rest.GetGuild(gateway.ID(guild), false, rest.WithCtx(ctx))
	return member, g, err
}

// archivedName precedes the name of an archived channel.
const archivedName = "archived-"

// ArchiveChannel implements platform.Managers.
func (c *Client) ArchiveChannel(ctx context.Context, id, reason string) error {
	got, err := c.rest.GetChannel(gateway.ID(id), rest.WithCtx(ctx))
	if err != nil {
		return gateway.Trouble(err)
	}
	in, ok := got.(discord.GuildChannel)
	if !ok || strings.HasPrefix(in.Name(), archivedName) {
		return nil
	}
	const writing = discord.PermissionSendMessages | discord.PermissionSendMessagesInThreads | discord.PermissionCreatePublicThreads | discord.PermissionCreatePrivateThreads
	everyone := in.GuildID() // the role of everyone has the guild's id
	others := slices.DeleteFunc(slices.Clone(in.PermissionOverwrites()), func(o discord.PermissionOverwrite) bool { return o.ID() == everyone })
	before, _ := in.PermissionOverwrites().Role(everyone)
	rules := []discord.PermissionOverwrite(append(others, discord.RolePermissionOverwrite{RoleID: everyone, Allow: before.Allow.Remove(writing), Deny: before.Deny.Add(writing)}))
	name := split.Clip(archivedName+in.Name(), maxChannelName)
	_, err = c.rest.UpdateChannel(gateway.ID(id), discord.GuildTextChannelUpdate{Name: &name, PermissionOverwrites: &rules}, rest.WithCtx(ctx), rest.WithReason(reason))
	return gateway.Trouble(err)
}

// maxChannelName is the maximum length of a channel's name.
const maxChannelName = 100

// absent turns the error for something that does not exist or is hidden into none: then nobody may read it.
func absent(err error) error {
	if platform.Closed(err) {
		return nil
	}
	return err
}

// permissions applies Discord's rule: everyone's role, the other roles, then the channel's
// overwrites for everyone, for roles and for the member, in this order.
func permissions(m discord.Member, owner snowflake.ID, roles []discord.Role, channel discord.PermissionOverwrites) discord.Permissions {
	if m.User.ID == owner {
		return discord.PermissionsAll
	}
	has := map[snowflake.ID]bool{}
	for _, id := range m.RoleIDs {
		has[id] = true
	}
	var base discord.Permissions
	var everyone snowflake.ID // the role of everyone is the one with that name
	for _, r := range roles {
		if r.Name == "@everyone" {
			everyone = r.ID
		}
		if r.Name == "@everyone" || has[r.ID] {
			base = base.Add(r.Permissions)
		}
	}
	if base.Has(discord.PermissionAdministrator) {
		return discord.PermissionsAll
	}
	if o, ok := channel.Role(everyone); ok {
		base = base.Remove(o.Deny).Add(o.Allow)
	}
	var allow, deny discord.Permissions
	for id := range has {
		if o, ok := channel.Role(id); ok && id != everyone {
			allow, deny = allow.Add(o.Allow), deny.Add(o.Deny)
		}
	}
	base = base.Remove(deny).Add(allow)
	if o, ok := channel.Member(m.User.ID); ok {
		base = base.Remove(o.Deny).Add(o.Allow)
	}
	return base
}
