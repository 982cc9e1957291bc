package discordsim

import (
	"encoding/json"
	"slices"
)

// patch is a body of which only the fields that are there count.
type patch map[string]json.RawMessage

// take reads one field into v, where it is there. null empties it.
func take[T any](p patch, key string, v *T) error {
	raw, ok := p[key]
	if !ok {
		return nil
	}
	var fresh T
	if err := json.Unmarshal(raw, &fresh); err != nil {
		return wrong(key, "BASE_TYPE_BAD_TYPE", "%s", err.Error())
	}
	*v = fresh
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// newChannel makes a channel in the guild.
func (w *world) newChannel(a *account, p patch) (*Channel, error) {
	if !w.rights(a, nil).Has(PermManageChannels) {
		return nil, noPermission()
	}
	count := 0
	for _, c := range w.channels {
		if c.GuildID == w.guild && !c.thread() {
			count++
		}
	}
	if count >= 500 {
		return nil, badRequest(30013, "Maximum number of guild channels reached (500)")
	}
	c := &Channel{ID: w.id(), GuildID: w.guild, Position: count}
	if err := take(p, "type", &c.Type); err != nil {
		return nil, err
	}
	if err := w.changeChannel(c, p); err != nil {
		return nil, err
	}
	if c.Overwrites == nil && c.ParentID != nil {
		c.Overwrites = slices.Clone(w.channel(*c.ParentID).Overwrites)
	}
	w.addChannel(c)
	w.tellChannel("CHANNEL_CREATE", c)
	return c, nil
}

// changeChannel takes over what a patch says of a channel that is not a thread.
func (w *world) changeChannel(c *Channel, p patch) error {
	next := *c
	var tags []Tag
	if err := firstOf(take(p, "name", &next.Name), take(p, "topic", &next.Topic), take(p, "nsfw", &next.NSFW),
		take(p, "position", &next.Position), take(p, "parent_id", &next.ParentID), take(p, "permission_overwrites", &next.Overwrites),
		take(p, "rate_limit_per_user", &next.RateLimitPerUser), take(p, "flags", &next.Flags), take(p, "available_tags", &tags)); err != nil {
		return err
	}
	f := &form{}
	f.between("name", len([]rune(next.Name)), 1, 100)
	if next.Topic != nil {
		f.longest("topic", *next.Topic, map[bool]int{true: 4096, false: 1024}[next.Type == TypeForum])
	}
	if next.ParentID != nil {
		if parent := w.channel(*next.ParentID); parent == nil || parent.Type != TypeCategory {
			f.add("parent_id", "CHANNEL_PARENT_INVALID", "Category does not exist")
		}
	}
	checkTags(f, tags)
	if err := f.err(); err != nil {
		return err
	}
	if tags != nil {
		if err := w.setTags(&next, tags); err != nil {
			return err
		}
	}
	*c = next
	return nil
}

// changeThread takes over what a patch says of a thread.
func (w *world) changeThread(a *account, t *Channel, p patch) error {
	next, meta := *t, *t.Metadata
	if err := firstOf(take(p, "name", &next.Name), take(p, "archived", &meta.Archived), take(p, "locked", &meta.Locked),
		take(p, "auto_archive_duration", &meta.AutoAfter), take(p, "rate_limit_per_user", &next.RateLimitPerUser),
		take(p, "applied_tags", &next.AppliedTags)); err != nil {
		return err
	}
	moderates := w.rights(a, t).Has(PermManageThreads)
	switch {
	case t.Metadata.Archived && meta.Archived:
		return archived()
	case !moderates && meta.Locked != t.Metadata.Locked, !moderates && t.Metadata.Locked, !moderates && t.OwnerID != a.ID:
		return noPermission()
	}
	f := &form{}
	f.between("name", len([]rune(next.Name)), 1, 100)
	if err := f.err(); err != nil {
		return err
	}
	if _, ok := p["applied_tags"]; ok {
		if err := w.mayTag(a, w.channel(*t.ParentID), next.AppliedTags, t.AppliedTags); err != nil {
			return err
		}
	}
	if meta.Archived != t.Metadata.Archived {
		meta.ArchivedAt = w.now()
	}
	next.Metadata = &meta
	*t = next
	w.tellChannel("THREAD_UPDATE", t)
	return nil
}

// dropChannel deletes a channel with its threads and webhooks.
func (w *world) dropChannel(c *Channel) {
	if c.Type != TypeForum && !c.thread() && c.Type != TypeText {
		for _, child := range w.channels {
			if child.ParentID != nil && *child.ParentID == c.ID {
				child.ParentID = nil
			}
		}
	}
	name := "CHANNEL_DELETE"
	if c.thread() {
		name = "THREAD_DELETE"
	}
	w.tellChannel(name, c)
	w.channels = slices.DeleteFunc(w.channels, func(have *Channel) bool {
		gone := have == c || have.thread() && have.ParentID != nil && *have.ParentID == c.ID
		if gone {
			delete(w.byID, have.ID)
		}
		return gone
	})
	w.webhooks = slices.DeleteFunc(w.webhooks, func(h *Webhook) bool { return h.ChannelID == c.ID })
}

// dm is the direct channel between two accounts, made where there is none.
func (w *world) dm(a, b *account) *Channel {
	for _, c := range w.channels {
		if c.Type == TypeDM && w.sees(a, c) && w.sees(b, c) {
			return c
		}
	}
	c := &Channel{ID: w.id(), Type: TypeDM, Recipients: []User{b.User, a.User}}
	w.addChannel(c)
	return c
}

// dmSeenBy is a direct channel with the other one as its recipient.
func dmSeenBy(c *Channel, viewer ID) *Channel {
	if c.Type != TypeDM {
		return c
	}
	out := *c
	out.Recipients = slices.DeleteFunc(slices.Clone(c.Recipients), func(u User) bool { return u.ID == viewer })
	return &out
}

// guildView is the guild as REST shows it.
func (w *world) guildView() object {
	roles := make([]Role, 0, len(w.roles))
	for _, r := range w.roles {
		roles = append(roles, roleView(r))
	}
	return object{
		"id": w.guild, "name": w.name, "owner_id": w.owner, "icon": nil, "splash": nil, "discovery_splash": nil, "afk_channel_id": nil,
		"afk_timeout": 300, "verification_level": 0, "default_message_notifications": 1, "explicit_content_filter": 0,
		"roles": roles, "emojis": []any{}, "stickers": []any{}, "features": []string{}, "mfa_level": 0, "application_id": nil,
		"system_channel_id": w.systemChannel(), "system_channel_flags": 0, "rules_channel_id": nil, "max_members": 500000, "vanity_url_code": nil,
		"description": nil, "banner": nil, "premium_tier": 0, "premium_subscription_count": 0, "preferred_locale": "en-US",
		"public_updates_channel_id": nil, "nsfw_level": 0, "premium_progress_bar_enabled": false, "safety_alerts_channel_id": nil,
		"incidents_data": nil, "widget_enabled": false,
	}
}

func roleView(r *Role) Role {
	out := *r
	out.Colors = object{"primary_color": r.Color, "secondary_color": nil, "tertiary_color": nil}
	return out
}

// guildCreate is the guild as the gateway shows it to one account.
func (w *world) guildCreate(a *account, members bool) object {
	g := w.guildView()
	channels, threads := []*Channel{}, []*Channel{}
	for _, c := range w.channels {
		switch {
		case c.GuildID == 0 || !w.sees(a, c):
		case !c.thread():
			channels = append(channels, c)
		case !c.Metadata.Archived:
			threads = append(threads, c)
		}
	}
	all := []*Member{}
	for _, other := range w.accounts {
		if other.member != nil && (members || other == a) {
			all = append(all, w.memberOf(other, true))
		}
	}
	g["joined_at"], g["large"], g["unavailable"], g["member_count"] = a.member.JoinedAt, false, false, len(w.accounts)
	g["channels"], g["threads"], g["members"] = channels, threads, all
	for _, none := range []string{"voice_states", "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds"} {
		g[none] = []any{}
	}
	return g
}
