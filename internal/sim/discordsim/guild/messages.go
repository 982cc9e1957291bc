package guild

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"
	"time"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/components"
)

// nonceWindow is how long an enforced nonce identifies the same message.
const nonceWindow = 5 * time.Minute

// AttachmentLimit is the maximum size of a file in a guild without boosts.
const AttachmentLimit = 10 << 20

// post is a message to be sent into a channel.
type post struct {
	author  User
	from    *Account // nil: a webhook or an interaction, whose permissions were checked before
	channel *Channel
	body    *messageBody
	kind    int
	webhook ID
	app     ID
	flags   int // in addition to those that the body may set
	seenBy  ID
	caused  *interaction
	first   ID // the message's own id, if it starts a forum post
}

// Message finds a message of a channel; nil if none can be read back.
func (c *Channel) Message(id ID) *Message {
	i := sort.Search(len(c.messages), func(i int) bool { return c.messages[i].ID >= id })
	if i < len(c.messages) && c.messages[i].ID == id {
		return c.messages[i]
	}
	return nil
}

// Newest returns the last message of a channel; nil: there is none.
func (c *Channel) Newest() *Message {
	if len(c.messages) == 0 {
		return nil
	}
	return c.messages[len(c.messages)-1]
}

// maySend checks whether an account may write in a channel.
func (g *Guild) maySend(a *Account, c *Channel, b *messageBody) error {
	have := g.Rights(a, c)
	need := PermSend
	if c.IsThread() {
		need = PermSendInThreads
	}
	switch {
	case c.Type == TypeForum || c.Type == TypeCategory:
		return apierror.BadRequest(50008, "Cannot send messages in a non-text channel")
	case !have.Has(need):
		return apierror.NoPermission()
	case len(b.files) > 0 && !have.Has(PermAttachFiles):
		return apierror.NoPermission()
	case b.Reference != nil && !have.Has(PermReadHistory):
		return apierror.Refuse(http.StatusForbidden, 160002, "Cannot reply without permission to read message history")
	case a.Member.Until != nil && a.Member.Until.After(g.Now()) && !have.Has(PermAdministrator):
		return apierror.NoPermission()
	}
	if m := c.Metadata; m != nil && m.Locked && !have.Has(PermManageThreads) {
		if m.Archived {
			return ThreadArchived()
		}
		return apierror.BadRequest(160005, "Thread is locked")
	}
	if left := g.slow(a, c, have); left > 0 {
		return &apierror.Error{Status: http.StatusTooManyRequests, Code: 20016, Message: "This action cannot be performed due to slowmode rate limit.",
			Errors: nil}
	}
	return nil
}

// slow is how long an account must still wait in a channel with slow mode; bots never wait.
func (g *Guild) slow(a *Account, c *Channel, have Perm) time.Duration {
	if c.RateLimitPerUser == 0 || a.Bot || have.Has(PermManageMessages) {
		return 0
	}
	return g.Scale(time.Duration(c.RateLimitPerUser)*time.Second) - g.Now().Sub(c.spoke[a.ID])
}

// ThreadArchived says that a thread accepts no more messages.
func ThreadArchived() error { return apierror.BadRequest(50083, "Thread is archived") }

// Send sends a message of an account into a channel.
func (g *Guild) Send(a *Account, c *Channel, b *messageBody) (*Message, error) {
	if err := g.maySend(a, c, b); err != nil {
		return nil, err
	}
	if key := nonceKey(a, b); key != "" {
		if use, ok := g.nonces[key]; ok && g.Now().Sub(use.at) < g.Scale(nonceWindow) {
			if in := g.Channel(use.channel); in != nil {
				if m := in.Message(use.message); m != nil {
					return m, nil
				}
			}
		}
	}
	m, err := g.put(post{author: a.User, from: a, channel: c, body: b})
	if err != nil {
		return nil, err
	}
	if key := nonceKey(a, b); key != "" {
		g.nonces[key] = nonceUse{message: m.ID, channel: c.ID, at: g.Now()}
	}
	return m, nil
}

func nonceKey(a *Account, b *messageBody) string {
	if !b.EnforceNonce || b.Nonce == nil {
		return ""
	}
	return fmt.Sprint(a.ID, " ", b.Nonce)
}

// put creates the message that p describes and announces it. Permissions were checked.
func (g *Guild) put(p post) (*Message, error) {
	b, c := p.body, p.channel
	if b.empty() && p.flags&FlagLoading == 0 {
		return nil, apierror.BadRequest(50006, "Cannot send an empty message")
	}
	m := &Message{
		Type: p.kind, ChannelID: c.ID, Author: p.author, Content: b.text(), TTS: b.TTS, Embeds: stamped(b.Embeds),
		Components: components.Numbered(b.Components), WebhookID: p.webhook, ApplicationID: p.app, seenBy: p.seenBy, allowed: b.Allowed,
		Flags: b.flags()&(FlagSuppressEmbeds|FlagSilent|FlagComponentsV2) | p.flags,
	}
	var err error
	if m.Poll, err = readPoll(b, g.Now()); err != nil {
		return nil, err
	}
	if b.forwards() {
		err = g.forward(p.from, m, b.Reference)
	} else {
		err = g.refer(m, b.Reference)
	}
	if err != nil {
		return nil, err
	}
	if m.ID = p.first; m.ID == 0 {
		m.ID = g.NewID()
	}
	m.Timestamp = g.Now()
	if m.Attachments, err = g.keep(c, b, nil); err != nil {
		return nil, err
	}
	g.readMentions(m, g.Rights(p.from, c).Has(PermMentionEveryone) || p.from == nil)
	if p.caused != nil {
		p.caused.sign(m)
	}
	g.append(c, m)
	if p.from != nil {
		if c.spoke == nil {
			c.spoke = map[ID]time.Time{}
		}
		c.spoke[p.from.ID] = g.Now()
	}
	g.tellMessage("MESSAGE_CREATE", c, m, b.Nonce)
	return m, nil
}

// append adds a message at the end of its channel, which unarchives a thread.
func (g *Guild) append(c *Channel, m *Message) {
	c.messages = append(c.messages, m)
	if m.seenBy != 0 {
		return // nobody else's history changes
	}
	c.LastMessageID = &m.ID
	if c.IsThread() {
		c.MessageCount++
		c.TotalSent++
		if c.Metadata.Archived {
			c.Metadata.Archived = false
			g.tellChannel("THREAD_UPDATE", c)
		}
	}
}

// refer links a reply to the message it answers.
func (g *Guild) refer(m *Message, ref *Reference) error {
	if ref == nil || ref.MessageID == 0 {
		return nil
	}
	at := ref.ChannelID
	if at == 0 {
		at = m.ChannelID
	}
	c := g.Channel(at)
	var target *Message
	if c != nil {
		target = c.Message(ref.MessageID)
	}
	if target == nil || target.seenBy != 0 || at != m.ChannelID && ref.Type == 0 {
		if ref.Fail != nil && !*ref.Fail {
			return nil
		}
		return apierror.Wrong("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
	}
	m.Reference = &Reference{Type: ref.Type, MessageID: ref.MessageID, ChannelID: at, GuildID: c.GuildID}
	if m.Type == kindDefault && ref.Type == 0 {
		m.Type = kindReply
	}
	return nil
}

// stamped sets the type of embeds, as Discord does.
func stamped(embeds []object) []object {
	for _, e := range embeds {
		if _, ok := e["type"]; !ok {
			e["type"] = "rich"
		}
	}
	if embeds == nil {
		return []object{}
	}
	return embeds
}

// Edit changes the fields that the body names. by is the caller; nil: the holder of the message's token.
func (g *Guild) Edit(by *Account, c *Channel, m *Message, b *messageBody) error {
	own := by == nil || m.Author.ID == by.ID
	if !own {
		for k := range b.keys {
			if k != "flags" {
				return apierror.Refuse(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
			}
		}
		if !g.Rights(by, c).Has(PermManageMessages) {
			return apierror.NoPermission()
		}
	}
	if c.Metadata != nil && c.Metadata.Archived {
		return ThreadArchived()
	}
	if m.Poll != nil && b.Flags == nil {
		return apierror.BadRequest(520003, "Cannot edit a poll message")
	}
	if m.Type != kindDefault && m.Type != kindReply && m.Type != kindChatInput && m.Type != kindContextMenu {
		return apierror.Refuse(http.StatusForbidden, 50021, "Cannot execute action on a system message")
	}
	next := *m
	g.change(&next, b)
	if err := checkChanged(&next, b); err != nil {
		return err
	}
	var kept []Attachment
	if b.keys["attachments"] {
		for _, a := range b.Attachments {
			i := slices.IndexFunc(m.Attachments, func(have Attachment) bool { return string(a.ID) == `"`+have.ID.String()+`"` })
			if i >= 0 {
				kept = append(kept, m.Attachments[i])
			}
		}
	} else {
		kept = m.Attachments
	}
	files, err := g.keep(c, b, kept)
	if err != nil {
		return err
	}
	next.Attachments = files
	if next.Content == "" && len(next.Embeds) == 0 && len(next.Attachments) == 0 && len(next.Components) == 0 && next.Flags&FlagLoading == 0 {
		return apierror.BadRequest(50006, "Cannot send an empty message")
	}
	if own {
		now := g.Now()
		next.Edited = &now
	}
	g.readMentions(&next, false)
	*m = next
	g.tellMessage("MESSAGE_UPDATE", c, m, nil)
	return nil
}

// checkChanged checks an edited message against the rules of the second version of components: existing text must be
// removed in the same edit, and the flag never is.
func checkChanged(m *Message, b *messageBody) error {
	f := &apierror.Form{}
	v2 := m.Flags&FlagComponentsV2 != 0
	if v2 && (m.Content != "" || len(m.Embeds) > 0) {
		f.Add("content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2")
	}
	if b.keys["components"] {
		components.Check(f, b.Components, v2)
	}
	return f.Err()
}

func (g *Guild) change(m *Message, b *messageBody) {
	if b.keys["content"] {
		m.Content = b.text()
	}
	if b.keys["embeds"] {
		m.Embeds = stamped(b.Embeds)
	}
	if b.keys["components"] {
		m.Components = components.Numbered(b.Components)
	}
	if b.keys["allowed_mentions"] {
		m.allowed = b.Allowed
	}
	if b.Flags != nil {
		const may = FlagSuppressEmbeds | FlagComponentsV2
		m.Flags = m.Flags&^FlagSuppressEmbeds | *b.Flags&may
	}
}

// Remove deletes messages and announces it in one event for one message, in another for several.
func (g *Guild) Remove(c *Channel, ids ...ID) {
	gone := ids[:0:0]
	for _, id := range ids {
		m := c.Message(id)
		if m == nil {
			continue
		}
		for _, a := range m.Attachments {
			delete(g.files, a.ID)
		}
		c.messages = slices.DeleteFunc(c.messages, func(have *Message) bool { return have == m })
		if c.IsThread() && m.seenBy == 0 {
			c.MessageCount--
		}
		if m.seenBy != 0 {
			g.emit(Event{Name: "MESSAGE_DELETE", Channel: c, only: m.seenBy, data: object{"id": id, "channel_id": c.ID, "guild_id": c.GuildID}})
			continue
		}
		gone = append(gone, id)
	}
	e := Event{Name: "MESSAGE_DELETE", intent: IntentMessages, dmIntent: IntentDMs, Channel: c}
	data := object{"channel_id": c.ID}
	if c.GuildID != 0 {
		data["guild_id"] = c.GuildID
	}
	switch {
	case len(gone) == 0:
		return
	case len(ids) > 1:
		e.Name = "MESSAGE_DELETE_BULK"
		data["ids"] = gone
	default:
		data["id"] = gone[0]
	}
	e.data = data
	g.emit(e)
}

// History returns a page of a channel, newest first, as the query asks.
func (c *Channel) History(limit int, before, after, around ID) []*Message {
	var all []*Message
	for _, m := range c.messages {
		if m.seenBy == 0 {
			all = append(all, m)
		}
	}
	from := func(id ID) int { return sort.Search(len(all), func(i int) bool { return all[i].ID >= id }) }
	low, high := max(0, len(all)-limit), len(all)
	switch {
	case around != 0:
		low = max(0, from(around)-limit/2)
		high = min(len(all), low+limit)
	case before != 0:
		high = from(before)
		low = max(0, high-limit)
	case after != 0:
		low = from(after + 1)
		high = min(len(all), low+limit)
	}
	page := slices.Clone(all[low:high])
	slices.Reverse(page)
	return page
}

func (g *Guild) tellMessage(name string, c *Channel, m *Message, nonce any) {
	g.touch(m)
	shown := *m
	shown.Nonce = nonce
	g.emit(Event{Name: name, intent: IntentMessages, dmIntent: IntentDMs, Channel: c, message: &shown, only: m.seenBy})
}

// touch marks a message as changed, so that waiters check it again.
func (g *Guild) touch(m *Message) {
	g.count++
	m.changed = g.count
}

// ViewMessage is a message for one account; asEvent adds what only the gateway sends.
func (g *Guild) ViewMessage(m *Message, viewer ID, asEvent bool) Message {
	out := g.alone(m, viewer)
	if m.Reference != nil && (m.Type == kindReply || m.Type == KindStarter) {
		out.Referenced = json.RawMessage("null")
		if in := g.Channel(m.Reference.ChannelID); in != nil {
			if target := in.Message(m.Reference.MessageID); target != nil {
				out.Referenced, _ = json.Marshal(g.alone(target, viewer)) // a message is always valid JSON: it arrived as such
			}
		}
	}
	if c := g.Channel(m.ChannelID); asEvent && c != nil && c.GuildID != 0 {
		out.GuildID = c.GuildID
		out.Member = g.MemberOf(g.Account(m.Author.ID), false)
	}
	return out
}

// alone is a message without the one that it answers, because chains of replies can be long.
func (g *Guild) alone(m *Message, viewer ID) Message {
	out := *m
	out.Poll = m.Poll.seenBy(viewer)
	out.Reactions = nil
	for _, r := range m.reactions {
		out.Reactions = append(out.Reactions, Reaction{
			Emoji: r.Emoji, Count: len(r.users), Details: object{"normal": len(r.users), "burst": 0},
			Me: slices.Contains(r.users, viewer), Colors: []string{},
		})
	}
	if m.Flags&FlagHasThread != 0 {
		out.Thread = g.Channel(m.ID)
	}
	return out
}

// RecentMessages returns the newest messages of a channel, oldest first, for one person.
func (g *Guild) RecentMessages(c *Channel, me *Account, most int) []Message {
	if real := g.Channel(c.ID); real != nil {
		c = real // the page's copy of a direct channel has a different name
	}
	out := []Message{}
	for i := max(0, len(c.messages)-most); i < len(c.messages); i++ {
		if m := c.messages[i]; m.VisibleTo(me.ID) {
			out = append(out, g.ViewMessage(m, me.ID, true))
		}
	}
	return out
}

// AllMessages returns all messages of a channel, oldest first.
func (g *Guild) AllMessages(c *Channel) []Message {
	out := make([]Message, 0, len(c.messages))
	for _, m := range c.messages {
		out = append(out, g.ViewMessage(m, 0, true))
	}
	return out
}

// Typing announces that somebody is typing.
func (g *Guild) Typing(a *Account, c *Channel) error {
	if !g.Rights(a, c).Has(PermSend) {
		return apierror.NoPermission()
	}
	if c.Metadata != nil && c.Metadata.Archived {
		return ThreadArchived()
	}
	data := object{"channel_id": c.ID, "user_id": a.ID, "timestamp": g.Now().Unix()}
	if c.GuildID != 0 {
		data["guild_id"], data["member"] = c.GuildID, g.MemberOf(a, true)
	}
	g.emit(Event{Name: "TYPING_START", intent: IntentTyping, dmIntent: IntentDMTyping, Channel: c, data: data})
	return nil
}

// Said is what a person sends besides text.
type Said struct {
	Text string
	// Reply is the message it answers; 0: none.
	Reply ID
	Files map[string][]byte
	// Lie changes what the message claims about each file; nil: the truth.
	Lie func(*Attachment)
}

// Say sends a message as a person into a channel.
func (g *Guild) Say(a *Account, c *Channel, what Said) (*Message, error) {
	b := TextBody(what.Text)
	if what.Reply != 0 {
		b.Reference = &Reference{MessageID: what.Reply}
	}
	for _, name := range slices.Sorted(maps.Keys(what.Files)) {
		b.files = append(b.files, Upload{Name: name, Data: what.Files[name]})
	}
	b.lie = what.Lie
	f := &apierror.Form{}
	b.check(f)
	if err := f.Err(); err != nil {
		return nil, err
	}
	return g.Send(a, c, b)
}

// Unfurl adds an embed to a message, as Discord does for a link.
func (g *Guild) Unfurl(c *Channel, m *Message, title string) {
	m.Embeds = append(m.Embeds, object{"type": "link", "title": title})
	g.tellMessage("MESSAGE_UPDATE", c, m, nil)
}

// Restore replaces the body of a message, as if an earlier version of its author had written it.
func (g *Guild) Restore(m *Message, b *messageBody) {
	m.Content, m.Components, m.Flags = b.text(), components.Numbered(b.Components), m.Flags&^FlagComponentsV2
}

// FirstMessage returns the first matching message in any channel, of those changed since the counter of an earlier
// search (0: of all), and the current counter.
func (g *Guild) FirstMessage(since uint64, fits func(Message) bool) (found Message, ok bool, count uint64) {
	for _, c := range g.Channels {
		for _, m := range c.messages {
			if m.changed <= since && since > 0 {
				continue // it did not match, and has not changed
			}
			if found = g.ViewMessage(m, 0, true); fits(found) {
				return found, true, g.count
			}
		}
	}
	return found, false, g.count
}

// Text returns the text that people read in a message: its content, or the texts of its components.
func (m Message) Text() string {
	return strings.TrimPrefix(m.Content+components.Displayed(m.Components), "\n")
}

// CustomIDs returns those of the buttons and menus of a message, in order.
func (m Message) CustomIDs() []string { return components.CustomIDs(m.Components) }
