package discordsim

import "time"

// threadBody is what a client sends to open a thread or a forum post.
type threadBody struct {
	Name             string       `json:"name"`
	Type             *int         `json:"type"`
	AutoAfter        int          `json:"auto_archive_duration"`
	Invitable        *bool        `json:"invitable"`
	RateLimitPerUser int          `json:"rate_limit_per_user"`
	AppliedTags      []ID         `json:"applied_tags"`
	Message          *messageBody `json:"-"`
}

func (b *threadBody) check() error {
	f := &form{}
	f.between("name", len([]rune(b.Name)), 1, 100)
	switch b.AutoAfter {
	case 0, 60, 1440, 4320, 10080:
	default:
		f.add("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of {60, 1440, 4320, 10080}.")
	}
	return f.err()
}

// newThread makes a thread under parent. id is the message it hangs on; 0: it hangs on none.
func (w *world) newThread(by User, parent *Channel, kind int, id ID, b *threadBody) *Channel {
	if id == 0 {
		id = w.id()
	}
	after := b.AutoAfter
	if after == 0 {
		after = 1440
	}
	now := w.now()
	t := &Channel{
		ID: id, Type: kind, GuildID: parent.GuildID, Name: b.Name, ParentID: &parent.ID, OwnerID: by.ID, MemberCount: 1,
		RateLimitPerUser: b.RateLimitPerUser, AppliedTags: b.AppliedTags, joined: map[ID]time.Time{by.ID: now},
		Metadata: &ThreadMetadata{AutoAfter: after, ArchivedAt: now, CreatedAt: now},
	}
	if kind == TypePrivateThread {
		t.Metadata.Invitable = b.Invitable
	}
	w.addChannel(t)
	w.emit(event{name: "THREAD_CREATE", intent: intentGuilds, channel: t, data: struct {
		*Channel
		Newly bool `json:"newly_created"`
	}{t, true}})
	return t
}

// threadOn opens a thread on a message.
func (w *world) threadOn(a *account, c *Channel, m *Message, b *threadBody) (*Channel, error) {
	switch {
	case !w.rights(a, c).Has(PermPublicThreads):
		return nil, noPermission()
	case c.Type != TypeText && c.Type != TypeAnnouncement:
		return nil, badRequest(50024, "Cannot execute action on this channel type")
	case m.Flags&FlagHasThread != 0:
		return nil, badRequest(160004, "A thread has already been created for this message")
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	t := w.newThread(a.User, c, TypePublicThread, m.ID, b)
	m.Flags |= FlagHasThread
	w.tellMessage("MESSAGE_UPDATE", c, m, nil)
	w.note(t, a.User, kindStarter, "", &Reference{MessageID: m.ID, ChannelID: c.ID, GuildID: c.GuildID})
	return t, nil
}

// threadIn opens a thread that hangs on no message, or a forum post with its first one.
func (w *world) threadIn(a *account, c *Channel, b *threadBody) (*Channel, *Message, error) {
	if err := b.check(); err != nil {
		return nil, nil, err
	}
	have := w.rights(a, c)
	if c.Type == TypeForum {
		if !have.Has(PermSend) {
			return nil, nil, noPermission()
		}
		if b.Message == nil {
			return nil, nil, wrong("message", "BASE_TYPE_REQUIRED", "This field is required")
		}
		if b.Message.empty() {
			return nil, nil, badRequest(50006, "Cannot send an empty message")
		}
		if err := firstOf(w.mayTag(a, c, b.AppliedTags, nil), w.roomForThread()); err != nil {
			return nil, nil, err
		}
		t := w.newThread(a.User, c, TypePublicThread, 0, b)
		m, err := w.putStarter(a, t, b.Message)
		if err != nil {
			w.dropChannel(t)
		}
		return t, m, err
	}
	if c.Type != TypeText && c.Type != TypeAnnouncement {
		return nil, nil, badRequest(50024, "Cannot execute action on this channel type")
	}
	kind, need := TypePrivateThread, PermPrivateThreads // Discord's default, odd as it is
	if b.Type != nil && *b.Type == TypePublicThread {
		kind, need = TypePublicThread, PermPublicThreads
	}
	if !have.Has(need) {
		return nil, nil, noPermission()
	}
	t := w.newThread(a.User, c, kind, 0, b)
	if kind == TypePublicThread {
		w.note(c, a.User, kindThreadCreated, b.Name, &Reference{ChannelID: t.ID, GuildID: c.GuildID})
	}
	return t, nil, nil
}

// putStarter writes a forum post's first message, which has the post's own id.
func (w *world) putStarter(a *account, t *Channel, b *messageBody) (*Message, error) {
	m, err := w.put(post{author: a.User, from: a, channel: t, body: b, first: t.ID})
	if err == nil {
		w.tellChannel("THREAD_UPDATE", t)
	}
	return m, err
}

// note is a message of the system.
func (w *world) note(c *Channel, by User, kind int, text string, ref *Reference) {
	m := &Message{
		ID: w.id(), Type: kind, ChannelID: c.ID, Author: by, Content: text, Timestamp: w.now(), Mentions: []User{}, MentionRoles: []ID{},
		Attachments: []Attachment{}, Embeds: []object{}, Components: []object{}, Reference: ref,
	}
	w.append(c, m)
	w.tellMessage("MESSAGE_CREATE", c, m, nil)
}

// joinThread lets a user in or out, and tells about it.
func (w *world) joinThread(t *Channel, user ID, in bool) {
	_, was := t.joined[user]
	if was == in {
		return
	}
	data := object{"id": t.ID, "guild_id": t.GuildID, "added_members": []any{}, "removed_member_ids": []ID{}}
	if in {
		t.joined[user] = w.now()
		data["added_members"] = []any{w.threadMember(t, user)}
	} else {
		delete(t.joined, user)
		data["removed_member_ids"] = []ID{user}
	}
	t.MemberCount = len(t.joined)
	data["member_count"] = t.MemberCount
	w.emit(event{name: "THREAD_MEMBERS_UPDATE", intent: intentGuilds, channel: t, data: data})
}

func (w *world) threadMember(t *Channel, user ID) object {
	return object{"id": t.ID, "user_id": user, "join_timestamp": t.joined[user], "flags": 0}
}

func (w *world) tellChannel(name string, c *Channel) {
	shown := *c
	w.emit(event{name: name, intent: intentGuilds, channel: c, data: &shown})
}
