package discord

import (
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/pattern"
	"chorus/internal/room"
	"chorus/internal/room/split"
)

// everyone matches mentions that notify everybody, even if the author may not do that.
var everyone = pattern.Lazy(`(?:^|\W)@(?:everyone|here)\b`)

// author returns the author of a message.
func (c *Client) author(guild string, u discord.User, m *discord.Member, webhook string) room.Author {
	a := room.Author{ID: u.ID.String(), Name: u.Username, Bot: u.Bot, Webhook: webhook, Roles: c.cache.RoleNames(guild, m), Member: m != nil}
	a.Admin = webhook == "" && c.cache.Administers(guild, a.ID, m)
	switch {
	case webhook != "":
	case m != nil && m.Nick != nil:
		a.Display = *m.Nick
	case u.GlobalName != nil:
		a.Display = *u.GlobalName
	}
	return a
}

// message converts a message to neutral terms.
func (c *Client) message(m discord.Message, in room.Channel) room.Message {
	if out, ok := c.asked(m, in); ok {
		return out
	}
	out := room.Message{ID: m.ID.String(), In: in, Text: m.Content, At: m.CreatedAt, Embeds: beside(m), Pinned: m.Pinned, Everyone: m.MentionEveryone || everyone().MatchString(m.Content),
		System: m.Type != discord.MessageTypeDefault && m.Type != discord.MessageTypeReply}
	webhook := ""
	if m.WebhookID != nil {
		webhook = m.WebhookID.String()
	}
	out.Author = c.author(in.Guild, m.Author, m.Member, webhook)
	if m.EditedTimestamp != nil {
		out.Edited = *m.EditedTimestamp
	}
	for _, u := range m.Mentions {
		id := u.ID.String()
		if strings.Contains(m.Content, "<@"+id+">") || strings.Contains(m.Content, "<@!"+id+">") { // otherwise a reply notifies them
			out.Mentions = append(out.Mentions, id)
			out.Named = append(out.Named, c.author(in.Guild, u, nil, ""))
		}
	}
	for _, id := range m.MentionRoles {
		out.Roles = append(out.Roles, id.String())
	}
	for _, a := range m.Attachments {
		out.Files = append(out.Files, room.File{Name: a.Filename, Size: int64(a.Size), URL: a.URL})
	}
	out.Files = append(out.Files, c.linked(m)...)
	if r := m.MessageReference; r != nil && r.MessageID != nil && r.Type == discord.MessageReferenceTypeDefault && (r.ChannelID == nil || *r.ChannelID == m.ChannelID) {
		out.ReplyTo = r.MessageID.String() // a forward is not a reply
	}
	if q := m.ReferencedMessage; q != nil {
		quoted := c.message(*q, in)
		out.Answers, out.Quoted = q.Author.Username, &quoted
	}
	out.System = out.System || out.Author.Program() && isPanel(m.Components)
	switch {
	case m.WebhookID == nil && m.Author.ID.String() == c.me().ID:
		out.Own, out.Nonce = true, string(m.Nonce)
	case c.ours(m):
		out.Own, out.Aside = true, true
	}
	return out
}

// maxEmbed limits the text taken from one message's embeds; it is Discord's own limit.
const maxEmbed = 6000

// embeds is the text of a program's embeds, often all it says. Embeds of people
// are link previews that Discord adds later, not their own words.
func embeds(m discord.Message) string {
	if !m.Author.Bot && m.WebhookID == nil {
		return ""
	}
	var parts []string
	for _, e := range m.Embeds {
		var lines []string
		add := func(text string) {
			if text = strings.TrimSpace(text); text != "" {
				lines = append(lines, text)
			}
		}
		if e.Author != nil {
			add(e.Author.Name)
		}
		add(strings.TrimSpace(e.Title + " " + e.URL))
		add(e.Description)
		for _, f := range e.Fields {
			add(f.Name + ": " + f.Value)
		}
		if e.Footer != nil {
			add(e.Footer.Text)
		}
		if e.Image != nil {
			add("[picture " + e.Image.URL + "]")
		}
		if len(lines) > 0 {
			parts = append(parts, strings.Join(lines, "\n"))
		}
	}
	return split.Clip(strings.Join(parts, "\n\n"), maxEmbed)
}
