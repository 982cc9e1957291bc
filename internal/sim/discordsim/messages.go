package discordsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sort"
	"time"
)

// nonceWindow is how long the same nonce is the same message, where the sender asks for that.
const nonceWindow = 5 * time.Minute

// attachmentLimit is what one file may weigh in a guild that pays nothing.
const attachmentLimit = 10 << 20

// post is a message on its way into a channel.
type post struct {
	author  User
	from    *account // nil: a webhook or an interaction, whose rights were looked at before
	channel *Channel
	body    *messageBody
	kind    int
	webhook ID
	app     ID
	flags   int // beyond those that the body may set
	seenBy  ID
	caused  *interaction
	first   ID // the message's own id, where it begins a forum post
}

// message finds a message of a channel; nil where there is none that can be read back.
func (c *Channel) message(id ID) *Message {
	i := sort.Search(len(c.messages), func(i int) bool { return c.messages[i].ID >= id })
	if i < len(c.messages) && c.messages[i].ID == id {
		return c.messages[i]
	}
	return nil
}

// maySend looks at everything that can stand between an account and a channel.
func (w *world) maySend(a *account, c *Channel, b *messageBody) error {
	have := w.rights(a, c)
	need := PermSend
	if c.thread() {
		need = PermSendInThreads
	}
	switch {
	case c.Type == TypeForum || c.Type == TypeCategory:
		return badRequest(50008, "Cannot send messages in a non-text channel")
	case !have.Has(need):
		return noPermission()
	case len(b.files) > 0 && !have.Has(PermAttachFiles):
		return noPermission()
	case b.Reference != nil && !have.Has(PermReadHistory):
		return refuse(http.StatusForbidden, 160002, "Cannot reply without permission to read message history")
	case a.member.Until != nil && a.member.Until.After(w.now()) && !have.Has(PermAdministrator):
		return noPermission()
	}
	if m := c.Metadata; m != nil && m.Locked && !have.Has(PermManageThreads) {
		if m.Archived {
			return archived()
		}
		return badRequest(160005, "Thread is locked")
	}
	if left := w.slow(a, c, have); left > 0 {
		return &apiError{status: http.StatusTooManyRequests, Code: 20016, Message: "This action cannot be performed due to slowmode rate limit.",
			Errors: nil}
	}
	return nil
}

// slow is how long an account must still wait in a channel with slow mode; bots wait for nothing.
func (w *world) slow(a *account, c *Channel, have Perm) time.Duration {
	if c.RateLimitPerUser == 0 || a.Bot || have.Has(PermManageMessages) {
		return 0
	}
	return w.scale(time.Duration(c.RateLimitPerUser)*time.Second) - w.now().Sub(c.spoke[a.ID])
}

func archived() error { return badRequest(50083, "Thread is archived") }

// send puts a message of an account into a channel.
func (w *world) send(a *account, c *Channel, b *messageBody) (*Message, error) {
	if err := w.maySend(a, c, b); err != nil {
		return nil, err
	}
	if key := nonceKey(a, b); key != "" {
		if use, ok := w.nonces[key]; ok && w.now().Sub(use.at) < w.scale(nonceWindow) {
			if in := w.channel(use.channel); in != nil {
				if m := in.message(use.message); m != nil {
					return m, nil
				}
			}
		}
	}
	m, err := w.put(post{author: a.User, from: a, channel: c, body: b})
	if err != nil {
		return nil, err
	}
	if key := nonceKey(a, b); key != "" {
		w.nonces[key] = nonceUse{message: m.ID, channel: c.ID, at: w.now()}
	}
	return m, nil
}

func nonceKey(a *account, b *messageBody) string {
	if !b.EnforceNonce || b.Nonce == nil {
		return ""
	}
	return fmt.Sprint(a.ID, " ", b.Nonce)
}

// put makes the message that p describes and tells everybody. The rights have been looked at.
func (w *world) put(p post) (*Message, error) {
	b, c := p.body, p.channel
	if b.empty() && p.flags&FlagLoading == 0 {
		return nil, badRequest(50006, "Cannot send an empty message")
	}
	m := &Message{
		Type: p.kind, ChannelID: c.ID, Author: p.author, Content: b.text(), TTS: b.TTS, Embeds: stamped(b.Embeds),
		Components: w.numbered(b.Components), WebhookID: p.webhook, ApplicationID: p.app, seenBy: p.seenBy, allowed: b.Allowed,
		Flags: b.flags()&(FlagSuppressEmbeds|FlagSilent|FlagComponentsV2) | p.flags,
	}
	var err error
	if m.Poll, err = readPoll(b, w.now()); err != nil {
		return nil, err
	}
	if b.forwards() {
		err = w.forward(p.from, m, b.Reference)
	} else {
		err = w.refer(m, b.Reference)
	}
	if err != nil {
		return nil, err
	}
	if m.ID = p.first; m.ID == 0 {
		m.ID = w.id()
	}
	m.Timestamp = w.now()
	if m.Attachments, err = w.keep(c, b, nil); err != nil {
		return nil, err
	}
	w.readMentions(m, w.rights(p.from, c).Has(PermMentionEveryone) || p.from == nil)
	if p.caused != nil {
		p.caused.sign(m)
	}
	w.append(c, m)
	if p.from != nil {
		if c.spoke == nil {
			c.spoke = map[ID]time.Time{}
		}
		c.spoke[p.from.ID] = w.now()
	}
	w.tellMessage("MESSAGE_CREATE", c, m, b.Nonce)
	return m, nil
}

// append puts a message last in its channel. A thread wakes up by it.
func (w *world) append(c *Channel, m *Message) {
	c.messages = append(c.messages, m)
	if m.seenBy != 0 {
		return // nobody else's history changes
	}
	c.LastMessageID = &m.ID
	if c.thread() {
		c.MessageCount++
		c.TotalSent++
		if c.Metadata.Archived {
			c.Metadata.Archived = false
			w.tellChannel("THREAD_UPDATE", c)
		}
	}
}

// refer ties a reply to what it answers.
func (w *world) refer(m *Message, ref *Reference) error {
	if ref == nil || ref.MessageID == 0 {
		return nil
	}
	at := ref.ChannelID
	if at == 0 {
		at = m.ChannelID
	}
	c := w.channel(at)
	var target *Message
	if c != nil {
		target = c.message(ref.MessageID)
	}
	if target == nil || target.seenBy != 0 || at != m.ChannelID && ref.Type == 0 {
		if ref.Fail != nil && !*ref.Fail {
			return nil
		}
		return wrong("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
	}
	m.Reference = &Reference{Type: ref.Type, MessageID: ref.MessageID, ChannelID: at, GuildID: c.GuildID}
	if m.Type == kindDefault && ref.Type == 0 {
		m.Type = kindReply
	}
	return nil
}

// stamped gives embeds the type that Discord gives them.
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

// numbered gives each component the id that Discord gives it.
func (w *world) numbered(list []object) []object {
	n := 0
	var walk func(o object)
	walk = func(o object) {
		n++
		if _, ok := o["id"]; !ok {
			o["id"] = n
		}
		for _, child := range listOf(o, "components") {
			walk(child)
		}
		for _, key := range []string{"accessory", "component"} {
			if child, ok := o[key].(map[string]any); ok {
				walk(child)
			}
		}
	}
	for _, o := range list {
		walk(o)
	}
	if list == nil {
		return []object{}
	}
	return list
}

// edit changes what the body names. by is who asks; nil: whoever holds the message's token.
func (w *world) edit(by *account, c *Channel, m *Message, b *messageBody) error {
	own := by == nil || m.Author.ID == by.ID
	if !own {
		for k := range b.keys {
			if k != "flags" {
				return refuse(http.StatusForbidden, 50005, "Cannot edit a message authored by another user")
			}
		}
		if !w.rights(by, c).Has(PermManageMessages) {
			return noPermission()
		}
	}
	if c.Metadata != nil && c.Metadata.Archived {
		return archived()
	}
	if m.Poll != nil && b.Flags == nil {
		return badRequest(520003, "Cannot edit a poll message")
	}
	if m.Type != kindDefault && m.Type != kindReply && m.Type != kindChatInput && m.Type != kindContextMenu {
		return refuse(http.StatusForbidden, 50021, "Cannot execute action on a system message")
	}
	next := *m
	w.change(&next, b)
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
	files, err := w.keep(c, b, kept)
	if err != nil {
		return err
	}
	next.Attachments = files
	if next.Content == "" && len(next.Embeds) == 0 && len(next.Attachments) == 0 && len(next.Components) == 0 && next.Flags&FlagLoading == 0 {
		return badRequest(50006, "Cannot send an empty message")
	}
	if own {
		now := w.now()
		next.Edited = &now
	}
	w.readMentions(&next, false)
	*m = next
	w.tellMessage("MESSAGE_UPDATE", c, m, nil)
	return nil
}

// checkChanged holds a message after an edit against the rules of the second version of
// components: what it had as text before must go with that edit, and the flag never goes.
func checkChanged(m *Message, b *messageBody) error {
	f := &form{}
	v2 := m.Flags&FlagComponentsV2 != 0
	if v2 && (m.Content != "" || len(m.Embeds) > 0) {
		f.add("content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2")
	}
	if b.keys["components"] {
		checkComponents(f, b.Components, v2)
	}
	return f.err()
}

func (w *world) change(m *Message, b *messageBody) {
	if b.keys["content"] {
		m.Content = b.text()
	}
	if b.keys["embeds"] {
		m.Embeds = stamped(b.Embeds)
	}
	if b.keys["components"] {
		m.Components = w.numbered(b.Components)
	}
	if b.keys["allowed_mentions"] {
		m.allowed = b.Allowed
	}
	if b.Flags != nil {
		const may = FlagSuppressEmbeds | FlagComponentsV2
		m.Flags = m.Flags&^FlagSuppressEmbeds | *b.Flags&may
	}
}

// remove deletes messages and tells about it in one event for one, in another for many.
func (w *world) remove(c *Channel, ids ...ID) {
	gone := ids[:0:0]
	for _, id := range ids {
		m := c.message(id)
		if m == nil {
			continue
		}
		for _, a := range m.Attachments {
			delete(w.files, a.ID)
		}
		c.messages = slices.DeleteFunc(c.messages, func(have *Message) bool { return have == m })
		if c.thread() && m.seenBy == 0 {
			c.MessageCount--
		}
		if m.seenBy != 0 {
			w.emit(event{name: "MESSAGE_DELETE", channel: c, only: m.seenBy, data: object{"id": id, "channel_id": c.ID, "guild_id": c.GuildID}})
			continue
		}
		gone = append(gone, id)
	}
	e := event{name: "MESSAGE_DELETE", intent: intentMessages, dmIntent: intentDMs, channel: c}
	data := object{"channel_id": c.ID}
	if c.GuildID != 0 {
		data["guild_id"] = c.GuildID
	}
	switch {
	case len(gone) == 0:
		return
	case len(ids) > 1:
		e.name = "MESSAGE_DELETE_BULK"
		data["ids"] = gone
	default:
		data["id"] = gone[0]
	}
	e.data = data
	w.emit(e)
}

// history is a page of a channel, newest first, as the query asks.
func (c *Channel) history(limit int, before, after, around ID) []*Message {
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

func (w *world) tellMessage(name string, c *Channel, m *Message, nonce any) {
	w.touch(m)
	shown := *m
	shown.Nonce = nonce
	w.emit(event{name: name, intent: intentMessages, dmIntent: intentDMs, channel: c, message: &shown, only: m.seenBy})
}

// touch notes that a message is not what it was, so that those who wait look at it again.
func (w *world) touch(m *Message) {
	w.count++
	m.changed = w.count
}

// view is a message as one account sees it; asEvent adds what only the gateway tells.
func (w *world) view(m *Message, viewer ID, asEvent bool) Message {
	out := w.alone(m, viewer)
	if m.Reference != nil && (m.Type == kindReply || m.Type == kindStarter) {
		out.Referenced = json.RawMessage("null")
		if in := w.channel(m.Reference.ChannelID); in != nil {
			if target := in.message(m.Reference.MessageID); target != nil {
				out.Referenced, _ = json.Marshal(w.alone(target, viewer)) // a message is always good JSON: it came as such
			}
		}
	}
	if c := w.channel(m.ChannelID); asEvent && c != nil && c.GuildID != 0 {
		out.GuildID = c.GuildID
		out.Member = w.memberOf(w.account(m.Author.ID), false)
	}
	return out
}

// alone is a message without the one that it answers: chains of replies are as long as people like.
func (w *world) alone(m *Message, viewer ID) Message {
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
		out.Thread = w.channel(m.ID)
	}
	return out
}

// hidden is a message for a bot that may not read what people write.
func hidden(m Message) Message {
	m.Content, m.Embeds, m.Attachments, m.Components, m.Poll, m.Snapshots = "", []object{}, []Attachment{}, []object{}, nil, nil
	return m
}
