package guild

import (
	"net/http"
	"slices"
	"time"

	"chorus/internal/sim/discordsim/apierror"
)

// refForward is the type of a reference that forwards a message instead of answering it.
const refForward = 1

// Snapshot is a message at the time of its forwarding.
type Snapshot struct {
	Message Forwarded `json:"message"`
}

// Forwarded is the part of a message that is forwarded, without its author.
type Forwarded struct {
	Type         int          `json:"type"`
	Content      string       `json:"content"`
	Embeds       []object     `json:"embeds"`
	Attachments  []Attachment `json:"attachments"`
	Timestamp    time.Time    `json:"timestamp"`
	Edited       *time.Time   `json:"edited_timestamp"`
	Flags        int          `json:"flags"`
	Mentions     []User       `json:"mentions"`
	MentionRoles []ID         `json:"mention_roles"`
	Components   []object     `json:"components"`
}

// forward forwards the message that a reference names. by is who forwards it; nil: a webhook.
func (g *Guild) forward(by *Account, m *Message, ref *Reference) error {
	c := g.Channel(ref.ChannelID)
	if c == nil || ref.ChannelID == 0 {
		return apierror.Wrong("message_reference.channel_id", "MESSAGE_REFERENCE_UNKNOWN_CHANNEL", "Unknown channel")
	}
	if by != nil && (!g.Sees(by, c) || !g.Rights(by, c).Has(PermReadHistory)) {
		return apierror.Refuse(http.StatusForbidden, 160009, "Cannot reference a message without permission to read message history")
	}
	target := c.Message(ref.MessageID)
	switch {
	case target == nil || target.seenBy != 0:
		return apierror.Wrong("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
	case target.Type != kindDefault && target.Type != kindReply && target.Type != kindChatInput && target.Type != kindContextMenu, target.Poll != nil:
		return apierror.BadRequest(50068, "Invalid message type")
	}
	m.Reference = &Reference{Type: refForward, MessageID: target.ID, ChannelID: c.ID, GuildID: c.GuildID}
	m.Flags |= FlagHasSnapshot
	if len(target.Snapshots) > 0 { // a forward of a forward takes the first one along
		m.Snapshots = slices.Clone(target.Snapshots)
		return nil
	}
	m.Snapshots = []Snapshot{{Forwarded{Type: target.Type, Content: target.Content, Embeds: target.Embeds, Attachments: target.Attachments,
		Timestamp: target.Timestamp, Edited: target.Edited, Flags: target.Flags, Mentions: target.Mentions, MentionRoles: target.MentionRoles,
		Components: target.Components}}}
	return nil
}
