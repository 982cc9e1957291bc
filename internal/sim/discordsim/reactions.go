package discordsim

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// parseEmoji reads the emoji of a path: a character, or name:id.
func parseEmoji(s string) (Emoji, error) {
	unknown := badRequest(10014, "Unknown Emoji")
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
		return Emoji{}, unknown // digits are an emoji only with a keycap behind them
	}
	return Emoji{Name: s}, nil
}

func (w *world) react(a *account, c *Channel, m *Message, e Emoji) error {
	if c.Metadata != nil && c.Metadata.Archived {
		return archived()
	}
	r := find(m.reactions, func(r *Reaction) bool { return r.Emoji.key() == e.key() })
	if r == nil {
		if !w.rights(a, c).Has(PermAddReactions) {
			return noPermission() // joining a reaction that is there needs less
		}
		if len(m.reactions) >= 20 {
			return badRequest(30010, "Maximum number of reactions reached (20)")
		}
		r = &Reaction{Emoji: e}
		m.reactions = append(m.reactions, r)
	}
	if slices.Contains(r.users, a.ID) {
		return nil // a reaction is a set: twice is once, and no event
	}
	r.users = append(r.users, a.ID)
	w.touch(m)
	data := w.reactionData(a.ID, c, m, e)
	data["message_author_id"] = m.Author.ID
	if c.GuildID != 0 {
		data["member"] = w.memberOf(a, true)
	}
	w.tellReaction("MESSAGE_REACTION_ADD", c, data)
	return nil
}

func (w *world) unreact(user ID, c *Channel, m *Message, e Emoji) error {
	r := find(m.reactions, func(r *Reaction) bool { return r.Emoji.key() == e.key() })
	if r == nil || !slices.Contains(r.users, user) {
		return notFound(10014, "Emoji")
	}
	r.users = slices.DeleteFunc(r.users, func(id ID) bool { return id == user })
	w.touch(m)
	if len(r.users) == 0 {
		m.reactions = slices.DeleteFunc(m.reactions, func(have *Reaction) bool { return have == r })
	}
	w.tellReaction("MESSAGE_REACTION_REMOVE", c, w.reactionData(user, c, m, e))
	return nil
}

// unreactAll clears one emoji, or all where e is nil.
func (w *world) unreactAll(c *Channel, m *Message, e *Emoji) {
	w.touch(m)
	data := object{"channel_id": c.ID, "message_id": m.ID, "guild_id": c.GuildID}
	if e == nil {
		m.reactions = nil
		w.tellReaction("MESSAGE_REACTION_REMOVE_ALL", c, data)
		return
	}
	m.reactions = slices.DeleteFunc(m.reactions, func(r *Reaction) bool { return r.Emoji.key() == e.key() })
	data["emoji"] = *e
	w.tellReaction("MESSAGE_REACTION_REMOVE_EMOJI", c, data)
}

func (w *world) reactionData(user ID, c *Channel, m *Message, e Emoji) object {
	data := object{"user_id": user, "channel_id": c.ID, "message_id": m.ID, "emoji": e, "burst": false, "type": 0}
	if c.GuildID != 0 {
		data["guild_id"] = c.GuildID
	}
	return data
}

func (w *world) tellReaction(name string, c *Channel, data object) {
	w.emit(event{name: name, intent: intentReactions, dmIntent: intentDMReactions, channel: c, data: data})
}

// pin pins or unpins. A pin is announced in the channel, as Discord does.
func (w *world) pin(a *account, c *Channel, m *Message, on bool) error {
	if m.Pinned == on {
		return nil
	}
	if on && len(c.pins()) >= 250 {
		return badRequest(30003, "Maximum number of pins reached for the channel (250)")
	}
	m.Pinned = on
	var last *time.Time
	if on {
		m.pinnedAt = w.now()
		last = &m.pinnedAt
		c.LastPin = last
	}
	w.tellMessage("MESSAGE_UPDATE", c, m, nil)
	w.emit(event{name: "CHANNEL_PINS_UPDATE", intent: intentGuilds, dmIntent: intentDMs, channel: c,
		data: object{"channel_id": c.ID, "guild_id": c.GuildID, "last_pin_timestamp": c.LastPin}})
	if on {
		note := &Message{
			ID: w.id(), Type: kindPinned, ChannelID: c.ID, Author: a.User, Timestamp: w.now(), Mentions: []User{}, MentionRoles: []ID{},
			Attachments: []Attachment{}, Embeds: []object{}, Components: []object{},
			Reference: &Reference{MessageID: m.ID, ChannelID: c.ID, GuildID: c.GuildID},
		}
		w.append(c, note)
		w.tellMessage("MESSAGE_CREATE", c, note, nil)
	}
	return nil
}

// pins are a channel's pinned messages, the last pinned first.
func (c *Channel) pins() []*Message {
	var out []*Message
	for _, m := range c.messages {
		if m.Pinned {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b *Message) int { return b.pinnedAt.Compare(a.pinnedAt) })
	return out
}
