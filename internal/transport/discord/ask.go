package discord

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/pattern"
	"chorus/internal/room"
	"chorus/internal/transport/discord/gateway"
)

// A command that speaks is answered with a public message that contains the words of the person who
// gave it. Discord reports that message like any other and keeps it in the channel's history,
// together with who caused it. So an acknowledged command is processed in the ordinary way, even by a
// process that starts after this one has died, and people can reply to it and mark it.

// spokenTime is how long the connector has before Discord needs an answer.
const spokenTime = 1500 * time.Millisecond

// spoken runs a command that speaks.
func (c *Client) spoken(ctx context.Context, i discord.ApplicationCommandInteraction) {
	within, cancel := context.WithTimeout(ctx, spokenTime)
	defer cancel()
	inv := c.command(within, i)
	a := c.sink.Invoke(within, inv)
	m := discord.MessageCreate{Content: a.Text, Flags: discord.MessageFlagEphemeral, AllowedMentions: gateway.Nobody()}
	if a.Say != "" {
		m.Content, m.Flags = said(a.Say, inv.Files), 0
	}
	c.acknowledge(ctx, i, discord.InteractionResponse{Type: discord.InteractionResponseTypeCreateMessage, Data: m})
}

// absentFrom reports whether an interaction is in a place where the bot cannot read or write: the
// person who installed the command brought it along.
func absentFrom(i discord.Interaction) bool {
	_, guild := i.AuthorizingIntegrationOwners()[discord.ApplicationIntegrationTypeGuildInstall]
	may := i.AppPermissions()
	if i.GuildID() == nil {
		return i.Context() == discord.InteractionContextTypePrivateChannel
	}
	return !guild || may != nil && !may.Has(discord.PermissionViewChannel, discord.PermissionSendMessages)
}

// said is a person's words with links to their files. Discord keeps the files of a command
// for some time, so they are not uploaded again.
func said(words string, files []room.File) string {
	for _, f := range files {
		words += fmt.Sprintf("\n[%s](%s)", strings.NewReplacer("[", "(", "]", ")").Replace(f.Name), f.URL)
	}
	return words
}

// fileLink matches such a link at the end of a message.
var fileLink = pattern.Lazy(`\n\[([^\[\]\n]+)\]\((https?://[^\s()]+)\)$`)

// asked returns, for a message of ours with the words of somebody who gave a command that speaks, a message by
// that person that mentions us. false: it is another message.
func (c *Client) asked(m discord.Message, in room.Channel) (room.Message, bool) {
	cause := m.InteractionMetadata
	c.mu.Lock()
	app, self := c.app, c.self.ID
	c.mu.Unlock()
	if cause == nil || cause.Type != discord.InteractionTypeApplicationCommand || m.Type != discord.MessageTypeSlashCommand || cause.OriginalResponseMessageID != nil ||
		m.ApplicationID == nil || m.ApplicationID.String() != app || m.Flags.Has(discord.MessageFlagEphemeral) || m.Flags.Has(discord.MessageFlagLoading) {
		return room.Message{}, false
	}
	theirs := discord.Message{ID: m.ID, ChannelID: m.ChannelID, Content: m.Content, CreatedAt: m.CreatedAt, EditedTimestamp: m.EditedTimestamp, Author: cause.User, Mentions: m.Mentions, Pinned: m.Pinned}
	link := fileLink().FindStringSubmatch(m.Content)
	if link != nil {
		theirs.Content = strings.TrimSuffix(m.Content, link[0])
	}
	out := c.message(theirs, in)
	out.Mentions = append(out.Mentions, self)
	if link != nil {
		out.Files = append(out.Files, room.File{Name: link[1], URL: link[2]})
	}
	return out, true
}
