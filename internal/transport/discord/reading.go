package discord

import (
	"context"
	"net/http"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/room"
)

// toRead is what somebody needs to read what was said in a channel before.
const toRead = discord.PermissionViewChannel | discord.PermissionReadMessageHistory

// mayRead reports whether somebody can read a channel's history themselves, as Discord sees
// it now. In doubt they cannot.
func (b *Bot) mayRead(ctx context.Context, guild, channel, user string) (bool, error) {
	if guild == "" || guild == room.Direct || user == "" {
		return false, nil
	}
	c, err := b.rest.GetChannel(number(channel), rest.WithCtx(ctx))
	if err != nil {
		return false, absent(err)
	}
	in, ok := c.(discord.GuildChannel)
	if !ok || in.GuildID().String() != guild {
		return false, nil
	}
	member, err := b.rest.GetMember(number(guild), number(user), rest.WithCtx(ctx))
	if err != nil {
		return false, absent(err)
	}
	g, err := b.rest.GetGuild(number(guild), false, rest.WithCtx(ctx))
	if err != nil {
		return false, absent(err)
	}
	home := in
	if _, thread := c.(discord.GuildThread); thread && in.ParentID() != nil {
		parent, err := b.rest.GetChannel(*in.ParentID(), rest.WithCtx(ctx))
		if err != nil {
			return false, absent(err)
		}
		if home, ok = parent.(discord.GuildChannel); !ok {
			return false, nil
		}
	}
	has := permissions(*member, g.OwnerID, g.Roles, home.PermissionOverwrites())
	if !has.Has(toRead) || in.Type() != discord.ChannelTypeGuildPrivateThread || has.Has(discord.PermissionManageThreads) {
		return has.Has(toRead), nil
	}
	_, err = b.rest.GetThreadMember(number(channel), number(user), false, rest.WithCtx(ctx))
	return err == nil, absent(err)
}

// absent is no error for what is not there or not to be seen: then nobody may read it.
func absent(err error) error {
	if code := status(err); code == http.StatusNotFound || code == http.StatusForbidden {
		return nil
	}
	return err
}

// permissions is Discord's rule: everyone's role, the other roles, then the channel's
// exceptions for everyone, for roles and for the member, in this order.
func permissions(m discord.Member, owner snowflake.ID, roles []discord.Role, channel discord.PermissionOverwrites) discord.Permissions {
	if m.User.ID == owner {
		return discord.PermissionsAll
	}
	has := map[snowflake.ID]bool{}
	for _, id := range m.RoleIDs {
		has[id] = true
	}
	var base discord.Permissions
	var everyone snowflake.ID // the role of everyone is the one that is called so
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
