package guild

import (
	"cmp"
	"slices"

	"chorus/internal/sim/discordsim/apierror"
)

// NewChannel makes a channel in the guild.
func (g *Guild) NewChannel(a *Account, p apierror.Patch) (*Channel, error) {
	if !g.Rights(a, nil).Has(PermManageChannels) {
		return nil, apierror.NoPermission()
	}
	count := 0
	for _, c := range g.Channels {
		if c.GuildID == g.ID && !c.IsThread() {
			count++
		}
	}
	if count >= 500 {
		return nil, apierror.BadRequest(30013, "Maximum number of guild channels reached (500)")
	}
	c := &Channel{ID: g.NewID(), GuildID: g.ID, Position: count}
	if err := apierror.Take(p, "type", &c.Type); err != nil {
		return nil, err
	}
	if err := g.changeChannel(c, p); err != nil {
		return nil, err
	}
	if c.Overwrites == nil && c.ParentID != nil {
		c.Overwrites = slices.Clone(g.Channel(*c.ParentID).Overwrites)
	}
	g.addChannel(c)
	g.tellChannel("CHANNEL_CREATE", c)
	return c, nil
}

// changeChannel applies a patch to a channel that is not a thread.
func (g *Guild) changeChannel(c *Channel, p apierror.Patch) error {
	next := *c
	var tags []Tag
	if err := cmp.Or(apierror.Take(p, "name", &next.Name), apierror.Take(p, "topic", &next.Topic), apierror.Take(p, "nsfw", &next.NSFW),
		apierror.Take(p, "position", &next.Position), apierror.Take(p, "parent_id", &next.ParentID), apierror.Take(p, "permission_overwrites", &next.Overwrites),
		apierror.Take(p, "rate_limit_per_user", &next.RateLimitPerUser), apierror.Take(p, "flags", &next.Flags), apierror.Take(p, "available_tags", &tags)); err != nil {
		return err
	}
	f := &apierror.Form{}
	f.Between("name", len([]rune(next.Name)), 1, 100)
	if next.Topic != nil {
		f.Longest("topic", *next.Topic, map[bool]int{true: 4096, false: 1024}[next.Type == TypeForum])
	}
	if next.ParentID != nil {
		if parent := g.Channel(*next.ParentID); parent == nil || parent.Type != TypeCategory {
			f.Add("parent_id", "CHANNEL_PARENT_INVALID", "Category does not exist")
		}
	}
	checkTags(f, tags)
	if err := f.Err(); err != nil {
		return err
	}
	if tags != nil {
		if err := g.setTags(&next, tags); err != nil {
			return err
		}
	}
	*c = next
	return nil
}

// UpdateChannel changes a channel that is not a thread, and announces it.
func (g *Guild) UpdateChannel(c *Channel, p apierror.Patch) error {
	if err := g.changeChannel(c, p); err != nil {
		return err
	}
	g.tellChannel("CHANNEL_UPDATE", c)
	return nil
}

// SetOverwrite sets what a role or a member may do differently in one channel.
func (g *Guild) SetOverwrite(c *Channel, o Overwrite) error {
	if g.Role(o.ID) == nil && g.Account(o.ID) == nil {
		return apierror.NotFound(10009, "Permission Overwrite")
	}
	c.Overwrites = append(slices.DeleteFunc(c.Overwrites, func(have Overwrite) bool { return have.ID == o.ID }), o)
	g.tellChannel("CHANNEL_UPDATE", c)
	return nil
}

// DropOverwrite removes the overwrite of a role or a member.
func (g *Guild) DropOverwrite(c *Channel, id ID) {
	c.Overwrites = slices.DeleteFunc(c.Overwrites, func(o Overwrite) bool { return o.ID == id })
	g.tellChannel("CHANNEL_UPDATE", c)
}

// ChangeThread applies a patch to a thread.
func (g *Guild) ChangeThread(a *Account, t *Channel, p apierror.Patch) error {
	next, meta := *t, *t.Metadata
	if err := cmp.Or(apierror.Take(p, "name", &next.Name), apierror.Take(p, "archived", &meta.Archived), apierror.Take(p, "locked", &meta.Locked),
		apierror.Take(p, "auto_archive_duration", &meta.AutoAfter), apierror.Take(p, "rate_limit_per_user", &next.RateLimitPerUser),
		apierror.Take(p, "applied_tags", &next.AppliedTags)); err != nil {
		return err
	}
	moderates := g.Rights(a, t).Has(PermManageThreads)
	switch {
	case t.Metadata.Archived && meta.Archived:
		return ThreadArchived()
	case !moderates && meta.Locked != t.Metadata.Locked, !moderates && t.Metadata.Locked, !moderates && t.OwnerID != a.ID:
		return apierror.NoPermission()
	}
	f := &apierror.Form{}
	f.Between("name", len([]rune(next.Name)), 1, 100)
	if err := f.Err(); err != nil {
		return err
	}
	if _, ok := p["applied_tags"]; ok {
		if err := g.mayTag(a, g.Channel(*t.ParentID), next.AppliedTags, t.AppliedTags); err != nil {
			return err
		}
	}
	if meta.Archived != t.Metadata.Archived {
		meta.ArchivedAt = g.Now()
	}
	next.Metadata = &meta
	*t = next
	g.tellChannel("THREAD_UPDATE", t)
	return nil
}

// DropChannel deletes a channel with its threads and webhooks.
func (g *Guild) DropChannel(c *Channel) {
	if c.Type != TypeForum && !c.IsThread() && c.Type != TypeText {
		for _, child := range g.Channels {
			if child.ParentID != nil && *child.ParentID == c.ID {
				child.ParentID = nil
			}
		}
	}
	name := "CHANNEL_DELETE"
	if c.IsThread() {
		name = "THREAD_DELETE"
	}
	g.tellChannel(name, c)
	g.Channels = slices.DeleteFunc(g.Channels, func(have *Channel) bool {
		gone := have == c || have.IsThread() && have.ParentID != nil && *have.ParentID == c.ID
		if gone {
			delete(g.byID, have.ID)
		}
		return gone
	})
	g.Webhooks = slices.DeleteFunc(g.Webhooks, func(h *Webhook) bool { return h.ChannelID == c.ID })
}

// DirectChannel returns the direct channel between two accounts, and creates it if needed.
func (g *Guild) DirectChannel(a, b *Account) *Channel {
	for _, c := range g.Channels {
		if c.Type == TypeDM && g.Sees(a, c) && g.Sees(b, c) {
			return c
		}
	}
	c := &Channel{ID: g.NewID(), Type: TypeDM, Recipients: []User{b.User, a.User}}
	g.addChannel(c)
	return c
}

// DirectSeenBy returns a direct channel with the other account as its recipient.
func DirectSeenBy(c *Channel, viewer ID) *Channel {
	if c.Type != TypeDM {
		return c
	}
	out := *c
	out.Recipients = slices.DeleteFunc(slices.Clone(c.Recipients), func(u User) bool { return u.ID == viewer })
	return &out
}

// View is the guild in REST.
func (g *Guild) View() object {
	roles := make([]Role, 0, len(g.Roles))
	for _, r := range g.Roles {
		roles = append(roles, ViewRole(r))
	}
	return object{
		"id": g.ID, "name": g.Name, "owner_id": g.Owner, "icon": nil, "splash": nil, "discovery_splash": nil, "afk_channel_id": nil,
		"afk_timeout": 300, "verification_level": 0, "default_message_notifications": 1, "explicit_content_filter": 0,
		"roles": roles, "emojis": []any{}, "stickers": []any{}, "features": []string{}, "mfa_level": 0, "application_id": nil,
		"system_channel_id": g.systemChannel(), "system_channel_flags": 0, "rules_channel_id": nil, "max_members": 500000, "vanity_url_code": nil,
		"description": nil, "banner": nil, "premium_tier": 0, "premium_subscription_count": 0, "preferred_locale": "en-US",
		"public_updates_channel_id": nil, "nsfw_level": 0, "premium_progress_bar_enabled": false, "safety_alerts_channel_id": nil,
		"incidents_data": nil, "widget_enabled": false,
	}
}

// ViewRole is a role for clients.
func ViewRole(r *Role) Role {
	out := *r
	out.Colors = object{"primary_color": r.Color, "secondary_color": nil, "tertiary_color": nil}
	return out
}

// ViewFor is the guild for one account of the gateway.
func (g *Guild) ViewFor(a *Account, members bool) object {
	out := g.View()
	channels, threads := []*Channel{}, []*Channel{}
	for _, c := range g.Channels {
		switch {
		case c.GuildID == 0 || !g.Sees(a, c):
		case !c.IsThread():
			channels = append(channels, c)
		case !c.Metadata.Archived:
			threads = append(threads, c)
		}
	}
	all := []*Member{}
	for _, other := range g.Accounts {
		if other.Member != nil && (members || other == a) {
			all = append(all, g.MemberOf(other, true))
		}
	}
	out["joined_at"], out["large"], out["unavailable"], out["member_count"] = a.Member.JoinedAt, false, false, len(g.Accounts)
	out["channels"], out["threads"], out["members"] = channels, threads, all
	for _, none := range []string{"voice_states", "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds"} {
		out[none] = []any{}
	}
	return out
}

// systemChannel is where Discord greets new members; nil: nowhere.
func (g *Guild) systemChannel() any {
	if c := g.ChannelNamed(g.system); c != nil && g.system != "" {
		return c.ID
	}
	return nil
}
