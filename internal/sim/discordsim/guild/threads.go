package guild

import (
	"cmp"
	"time"

	"chorus/internal/sim/discordsim/apierror"
)

// ThreadBody is what a client sends to open a thread or a forum post.
type ThreadBody struct {
	Name             string       `json:"name"`
	Type             *int         `json:"type"`
	AutoAfter        int          `json:"auto_archive_duration"`
	Invitable        *bool        `json:"invitable"`
	RateLimitPerUser int          `json:"rate_limit_per_user"`
	AppliedTags      []ID         `json:"applied_tags"`
	Message          *messageBody `json:"-"`
}

func (b *ThreadBody) check() error {
	f := &apierror.Form{}
	f.Between("name", len([]rune(b.Name)), 1, 100)
	switch b.AutoAfter {
	case 0, 60, 1440, 4320, 10080:
	default:
		f.Add("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of {60, 1440, 4320, 10080}.")
	}
	return f.Err()
}

// newThread creates a thread below parent. id is its message; 0: none.
func (g *Guild) newThread(by User, parent *Channel, kind int, id ID, b *ThreadBody) *Channel {
	if id == 0 {
		id = g.NewID()
	}
	after := b.AutoAfter
	if after == 0 {
		after = 1440
	}
	now := g.Now()
	t := &Channel{
		ID: id, Type: kind, GuildID: parent.GuildID, Name: b.Name, ParentID: &parent.ID, OwnerID: by.ID, MemberCount: 1,
		RateLimitPerUser: b.RateLimitPerUser, AppliedTags: b.AppliedTags, joined: map[ID]time.Time{by.ID: now},
		Metadata: &ThreadMetadata{AutoAfter: after, ArchivedAt: now, CreatedAt: now},
	}
	if kind == TypePrivateThread {
		t.Metadata.Invitable = b.Invitable
	}
	g.addChannel(t)
	g.emit(Event{Name: "THREAD_CREATE", intent: IntentGuilds, Channel: t, data: struct {
		*Channel
		Newly bool `json:"newly_created"`
	}{t, true}})
	return t
}

// ThreadOn opens a thread on a message.
func (g *Guild) ThreadOn(a *Account, c *Channel, m *Message, b *ThreadBody) (*Channel, error) {
	switch {
	case !g.Rights(a, c).Has(PermPublicThreads):
		return nil, apierror.NoPermission()
	case c.Type != TypeText && c.Type != TypeAnnouncement:
		return nil, apierror.BadRequest(50024, "Cannot execute action on this channel type")
	case m.Flags&FlagHasThread != 0:
		return nil, apierror.BadRequest(160004, "A thread has already been created for this message")
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	t := g.newThread(a.User, c, TypePublicThread, m.ID, b)
	m.Flags |= FlagHasThread
	g.tellMessage("MESSAGE_UPDATE", c, m, nil)
	g.note(t, a.User, KindStarter, "", &Reference{MessageID: m.ID, ChannelID: c.ID, GuildID: c.GuildID})
	return t, nil
}

// ThreadIn opens a thread without a message, or a forum post with its first message.
func (g *Guild) ThreadIn(a *Account, c *Channel, b *ThreadBody) (*Channel, *Message, error) {
	if err := b.check(); err != nil {
		return nil, nil, err
	}
	have := g.Rights(a, c)
	if c.Type == TypeForum {
		if !have.Has(PermSend) {
			return nil, nil, apierror.NoPermission()
		}
		if b.Message == nil {
			return nil, nil, apierror.Wrong("message", "BASE_TYPE_REQUIRED", "This field is required")
		}
		if b.Message.empty() {
			return nil, nil, apierror.BadRequest(50006, "Cannot send an empty message")
		}
		if err := cmp.Or(g.mayTag(a, c, b.AppliedTags, nil), g.roomForThread()); err != nil {
			return nil, nil, err
		}
		t := g.newThread(a.User, c, TypePublicThread, 0, b)
		m, err := g.putStarter(a, t, b.Message)
		if err != nil {
			g.DropChannel(t)
		}
		return t, m, err
	}
	if c.Type != TypeText && c.Type != TypeAnnouncement {
		return nil, nil, apierror.BadRequest(50024, "Cannot execute action on this channel type")
	}
	kind, need := TypePrivateThread, PermPrivateThreads // Discord's odd default
	if b.Type != nil && *b.Type == TypePublicThread {
		kind, need = TypePublicThread, PermPublicThreads
	}
	if !have.Has(need) {
		return nil, nil, apierror.NoPermission()
	}
	t := g.newThread(a.User, c, kind, 0, b)
	if kind == TypePublicThread {
		g.note(c, a.User, kindThreadCreated, b.Name, &Reference{ChannelID: t.ID, GuildID: c.GuildID})
	}
	return t, nil, nil
}

// putStarter writes a forum post's first message, which has the post's own id.
func (g *Guild) putStarter(a *Account, t *Channel, b *messageBody) (*Message, error) {
	m, err := g.put(post{author: a.User, from: a, channel: t, body: b, first: t.ID})
	if err == nil {
		g.tellChannel("THREAD_UPDATE", t)
	}
	return m, err
}

// note is a system message.
func (g *Guild) note(c *Channel, by User, kind int, text string, ref *Reference) {
	m := &Message{
		ID: g.NewID(), Type: kind, ChannelID: c.ID, Author: by, Content: text, Timestamp: g.Now(), Mentions: []User{}, MentionRoles: []ID{},
		Attachments: []Attachment{}, Embeds: []object{}, Components: []object{}, Reference: ref,
	}
	g.append(c, m)
	g.tellMessage("MESSAGE_CREATE", c, m, nil)
}

// JoinThread adds a user to a thread or removes them, and announces it.
func (g *Guild) JoinThread(t *Channel, user ID, in bool) {
	_, was := t.joined[user]
	if was == in {
		return
	}
	data := object{"id": t.ID, "guild_id": t.GuildID, "added_members": []any{}, "removed_member_ids": []ID{}}
	if in {
		t.joined[user] = g.Now()
		data["added_members"] = []any{g.ThreadMember(t, user)}
	} else {
		delete(t.joined, user)
		data["removed_member_ids"] = []ID{user}
	}
	t.MemberCount = len(t.joined)
	data["member_count"] = t.MemberCount
	g.emit(Event{Name: "THREAD_MEMBERS_UPDATE", intent: IntentGuilds, Channel: t, data: data})
}

// JoinedBy reports whether a user is in a thread.
func (c *Channel) JoinedBy(user ID) bool {
	_, in := c.joined[user]
	return in
}

// ThreadMember is a user in a thread, as clients see it.
func (g *Guild) ThreadMember(t *Channel, user ID) object {
	return object{"id": t.ID, "user_id": user, "join_timestamp": t.joined[user], "flags": 0}
}

func (g *Guild) tellChannel(name string, c *Channel) {
	shown := *c
	g.emit(Event{Name: name, intent: IntentGuilds, Channel: c, data: &shown})
}

// Archive archives a thread, locked or not.
func (g *Guild) Archive(t *Channel, locked bool) {
	t.Metadata.Archived, t.Metadata.Locked, t.Metadata.ArchivedAt = true, locked, g.Now()
	g.tellChannel("THREAD_UPDATE", t)
}
