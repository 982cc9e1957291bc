package guild

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/sim/discordsim/apierror"
)

// ParseEmoji parses the emoji in a path: a character, or name:id.
func ParseEmoji(s string) (Emoji, error) {
	unknown := apierror.BadRequest(10014, "Unknown Emoji")
	if name, number, ok := strings.Cut(s, ":"); ok {
		id, err := ParseID(number)
		if err != nil || name == "" {
			return Emoji{}, unknown
		}
		return Emoji{ID: &id, Name: name}, nil
	}
	if s == "" || len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return r < 0x80 && (r < '0' || r > '9') && r != '#' && r != '*' }) {
		return Emoji{}, unknown
	}
	if _, err := strconv.Atoi(s); err == nil {
		return Emoji{}, unknown // digits are an emoji only with a keycap after them
	}
	return Emoji{Name: s}, nil
}

// React adds an emoji of an account to a message.
func (g *Guild) React(a *Account, c *Channel, m *Message, e Emoji) error {
	if c.Metadata != nil && c.Metadata.Archived {
		return ThreadArchived()
	}
	r := find(m.reactions, func(r *Reaction) bool { return r.Emoji.key() == e.key() })
	if r == nil {
		if !g.Rights(a, c).Has(PermAddReactions) {
			return apierror.NoPermission() // joining an existing reaction needs fewer permissions
		}
		if len(m.reactions) >= 20 {
			return apierror.BadRequest(30010, "Maximum number of reactions reached (20)")
		}
		r = &Reaction{Emoji: e}
		m.reactions = append(m.reactions, r)
	}
	if slices.Contains(r.users, a.ID) {
		return nil // a reaction is a set: a repetition changes nothing, and sends no event
	}
	r.users = append(r.users, a.ID)
	g.touch(m)
	data := g.reactionData(a.ID, c, m, e)
	data["message_author_id"] = m.Author.ID
	if c.GuildID != 0 {
		data["member"] = g.MemberOf(a, true)
	}
	g.tellReaction("MESSAGE_REACTION_ADD", c, data)
	return nil
}

// Unreact removes an emoji of a user.
func (g *Guild) Unreact(user ID, c *Channel, m *Message, e Emoji) error {
	r := find(m.reactions, func(r *Reaction) bool { return r.Emoji.key() == e.key() })
	if r == nil || !slices.Contains(r.users, user) {
		return apierror.NotFound(10014, "Emoji")
	}
	r.users = slices.DeleteFunc(r.users, func(id ID) bool { return id == user })
	g.touch(m)
	if len(r.users) == 0 {
		m.reactions = slices.DeleteFunc(m.reactions, func(have *Reaction) bool { return have == r })
	}
	g.tellReaction("MESSAGE_REACTION_REMOVE", c, g.reactionData(user, c, m, e))
	return nil
}

// UnreactAll removes one emoji, or all if e is nil.
func (g *Guild) UnreactAll(c *Channel, m *Message, e *Emoji) {
	g.touch(m)
	data := object{"channel_id": c.ID, "message_id": m.ID, "guild_id": c.GuildID}
	if e == nil {
		m.reactions = nil
		g.tellReaction("MESSAGE_REACTION_REMOVE_ALL", c, data)
		return
	}
	m.reactions = slices.DeleteFunc(m.reactions, func(r *Reaction) bool { return r.Emoji.key() == e.key() })
	data["emoji"] = *e
	g.tellReaction("MESSAGE_REACTION_REMOVE_EMOJI", c, data)
}

func (g *Guild) reactionData(user ID, c *Channel, m *Message, e Emoji) object {
	data := object{"user_id": user, "channel_id": c.ID, "message_id": m.ID, "emoji": e, "burst": false, "type": 0}
	if c.GuildID != 0 {
		data["guild_id"] = c.GuildID
	}
	return data
}

func (g *Guild) tellReaction(name string, c *Channel, data object) {
	g.emit(Event{Name: name, intent: IntentReactions, dmIntent: IntentDMReactions, Channel: c, data: data})
}

// Pin pins or unpins. A pin is announced in the channel, as Discord does.
func (g *Guild) Pin(a *Account, c *Channel, m *Message, on bool) error {
	if m.Pinned == on {
		return nil
	}
	if on && len(c.Pins()) >= 250 {
		return apierror.BadRequest(30003, "Maximum number of pins reached for the channel (250)")
	}
	m.Pinned = on
	var last *time.Time
	if on {
		m.pinnedAt = g.Now()
		last = &m.pinnedAt
		c.LastPin = last
	}
	g.tellMessage("MESSAGE_UPDATE", c, m, nil)
	g.emit(Event{Name: "CHANNEL_PINS_UPDATE", intent: IntentGuilds, dmIntent: IntentDMs, Channel: c,
		data: object{"channel_id": c.ID, "guild_id": c.GuildID, "last_pin_timestamp": c.LastPin}})
	if on {
		note := &Message{
			ID: g.NewID(), Type: kindPinned, ChannelID: c.ID, Author: a.User, Timestamp: g.Now(), Mentions: []User{}, MentionRoles: []ID{},
			Attachments: []Attachment{}, Embeds: []object{}, Components: []object{},
			Reference: &Reference{MessageID: m.ID, ChannelID: c.ID, GuildID: c.GuildID},
		}
		g.append(c, note)
		g.tellMessage("MESSAGE_CREATE", c, note, nil)
	}
	return nil
}

// PinnedAt returns when a message was pinned.
func (m *Message) PinnedAt() time.Time { return m.pinnedAt }

// Pins returns a channel's pinned messages, last pinned first.
func (c *Channel) Pins() []*Message {
	var out []*Message
	for _, m := range c.messages {
		if m.Pinned {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b *Message) int { return b.pinnedAt.Compare(a.pinnedAt) })
	return out
}

// Reactors returns who reacted with an emoji, sorted by id.
func (g *Guild) Reactors(m *Message, e Emoji, after ID, limit int) []User {
	users := []User{}
	r := find(m.reactions, func(r *Reaction) bool { return r.Emoji.key() == e.key() })
	for _, a := range g.Accounts {
		if r != nil && slices.Contains(r.users, a.ID) && a.ID > after && len(users) < limit {
			users = append(users, a.User)
		}
	}
	return users
}
