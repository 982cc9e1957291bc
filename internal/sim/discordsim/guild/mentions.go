package guild

import (
	"slices"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/sim/discordsim/components"
)

var mentionPattern = pattern.Lazy(`<@(!|&)?(\d{1,20})>`)

// readMentions finds who is mentioned in a message, limited to those that it may ping.
func (g *Guild) readMentions(m *Message, mayEveryone bool) {
	m.Mentions, m.MentionRoles, m.MentionEveryone, m.mentions = []User{}, []ID{}, false, nil
	text := m.Content + components.Displayed(m.Components)
	parse := func(kind string, ids []ID, id ID) bool {
		return m.allowed == nil || slices.Contains(m.allowed.Parse, kind) || slices.Contains(ids, id)
	}
	for _, hit := range mentionPattern().FindAllStringSubmatch(text, -1) {
		id, err := ParseID(hit[2])
		if err != nil {
			continue
		}
		if hit[1] == "&" {
			if r := g.Role(id); r != nil && (m.allowed == nil || parse("roles", m.allowed.Roles, id)) && !slices.Contains(m.MentionRoles, id) {
				m.MentionRoles = append(m.MentionRoles, id)
			}
			continue
		}
		if m.allowed == nil || parse("users", m.allowed.Users, id) {
			g.mention(m, id)
		}
	}
	if mayEveryone && (strings.Contains(text, "@everyone") || strings.Contains(text, "@here")) {
		m.MentionEveryone = m.allowed == nil || slices.Contains(m.allowed.Parse, "everyone")
	}
	if m.Type == kindReply && m.Reference != nil && (m.allowed == nil || m.allowed.RepliedUser) {
		if c := g.Channel(m.Reference.ChannelID); c != nil {
			if target := c.Message(m.Reference.MessageID); target != nil {
				g.mention(m, target.Author.ID)
			}
		}
	}
}

func (g *Guild) mention(m *Message, id ID) {
	a := g.Account(id)
	if a == nil || slices.Contains(m.mentions, id) {
		return
	}
	m.mentions = append(m.mentions, id)
	m.Mentions = append(m.Mentions, a.User)
}
