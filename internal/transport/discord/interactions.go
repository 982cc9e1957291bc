package discord

import (
	"context"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/split"
	"chorus/internal/transport/discord/gateway"
)

// Discord gives up on an interaction after three seconds, and forgets it after fifteen minutes.
const (
	deferTime  = 2500 * time.Millisecond
	answerTime = 5 * time.Minute
)

// interact answers a click or a command. It always acknowledges first, however long
// the work takes.
func (c *Client) interact(ctx context.Context, i discord.Interaction) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	switch i := i.(type) {
	case discord.ComponentInteraction:
		if form, ok := platform.FormOf(i.Data.CustomID()); ok {
			c.openForm(ctx, i, form)
			return
		}
		if c.acknowledge(ctx, i, discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredUpdateMessage}) {
			p := platform.Press{Value: i.Data.CustomID()}
			if menu, ok := i.Data.(discord.StringSelectMenuInteractionData); ok && len(menu.Values) > 0 {
				p.Chosen = menu.Values[0]
			}
			c.pressed(ctx, i, p, &i.Message)
		}
	case discord.ModalSubmitInteraction:
		if i.Message != nil && c.acknowledge(ctx, i, discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredUpdateMessage}) {
			c.pressed(ctx, i, platform.Press{Value: i.Data.CustomID, Text: i.Data.Text(formText), Fields: filled(i.Data)}, i.Message)
		}
	case discord.ApplicationCommandInteraction:
		if c.sink.Speaks(commandPath(i)) {
			c.spoken(ctx, i)
			return
		}
		private := discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredCreateMessage, Data: discord.MessageCreate{Flags: discord.MessageFlagEphemeral}}
		if c.acknowledge(ctx, i, private) {
			c.commanded(ctx, i)
		}
	case discord.AutocompleteInteraction:
		c.complete(ctx, i)
	}
}

func (c *Client) acknowledge(ctx context.Context, i discord.Interaction, how discord.InteractionResponse) bool {
	ctx, cancel := context.WithTimeout(ctx, deferTime)
	defer cancel()
	_, err := c.again(ctx, "acknowledge", func(ctx context.Context) error {
		return c.rest.CreateInteractionResponse(i.ID(), i.Token(), how, rest.WithCtx(ctx))
	})
	if err != nil && !rest.IsJSONErrorCode(err, rest.JSONErrorCodeInteractionAlreadyAcknowledged) { // by the previous try
		c.Log.Warn("a click or command could not be acknowledged in time", "event", "defer_failed", "error", err)
		return false
	}
	return true
}

func (c *Client) again(ctx context.Context, what string, call func(context.Context) error) (struct{}, error) {
	return platform.Again(ctx, c.retry(), what, func(ctx context.Context) (struct{}, error) { return struct{}{}, gateway.Trouble(call(ctx)) })
}

// openForm shows a form. Its current values are requested as long as there is time; otherwise it is empty.
func (c *Client) openForm(ctx context.Context, i discord.ComponentInteraction, form platform.Form) {
	asked, cancel := context.WithTimeout(ctx, spokenTime)
	if filled, ok := c.sink.Form(asked, c.press(asked, i, platform.Press{Value: i.Data.CustomID()}, &i.Message)); ok {
		form = filled
	}
	cancel()
	c.acknowledge(ctx, i, discord.InteractionResponse{Type: discord.InteractionResponseTypeModal, Data: modal(i.Data.CustomID(), form)})
}

// press is a press with its place and its person.
func (c *Client) press(ctx context.Context, i discord.Interaction, p platform.Press, on *discord.Message) platform.Press {
	p.Message, p.MessageAt, p.Absent, p.By, p.In, p.Allowed = on.ID.String(), on.ID.Time(), absentFrom(i), c.caller(ctx, i), c.interactionChannel(ctx, i), c.allowed(ctx, i)
	return p
}

// pressed handles a click and shows the result to the person who clicked.
func (c *Client) pressed(ctx context.Context, i discord.Interaction, p platform.Press, on *discord.Message) {
	a := c.sink.Press(ctx, c.press(ctx, i, p, on))
	switch {
	case a.Text == "":
		return
	case a.Replace:
		a.Panel = a.Panel || on.Flags.Has(discord.MessageFlagIsComponentsV2) // it stays a panel
		c.finish(ctx, "answer a click", func(ctx context.Context) error {
			_, err := c.rest.UpdateInteractionResponse(i.ApplicationID(), i.Token(), answerUpdate(a), rest.WithCtx(ctx))
			return err
		})
	default:
		m := discord.MessageCreate{Content: split.Clip(a.Text, maxText), Components: answerParts(a), Flags: discord.MessageFlagEphemeral, AllowedMentions: gateway.Nobody()}
		if a.Panel {
			m.Content, m.Components, m.Flags = "", answerPanel(a), m.Flags.Add(discord.MessageFlagIsComponentsV2)
		}
		c.finish(ctx, "answer a click", func(ctx context.Context) error {
			m.Files = textFile(a.File)
			_, err := c.rest.CreateFollowupMessage(i.ApplicationID(), i.Token(), m, rest.WithCtx(ctx))
			return err
		})
	}
}

// commanded runs a command and fills in the deferred answer.
func (c *Client) commanded(ctx context.Context, i discord.ApplicationCommandInteraction) {
	a := c.sink.Invoke(ctx, c.command(ctx, i))
	update := answerUpdate(a)
	c.finish(ctx, "answer a command", func(ctx context.Context) error {
		update.Files = textFile(a.File)
		_, err := c.rest.UpdateInteractionResponse(i.ApplicationID(), i.Token(), update, rest.WithCtx(ctx))
		return err
	})
}

// answerUpdate is an answer that replaces a message.
func answerUpdate(a platform.Answer) discord.MessageUpdate {
	parts, text := answerParts(a), split.Clip(a.Text, maxText)
	m := discord.MessageUpdate{Content: &text, Components: &parts, AllowedMentions: gateway.Nobody()}
	if a.Panel {
		none, flags := "", discord.MessageFlagIsComponentsV2
		parts = answerPanel(a)
		m.Content, m.Flags = &none, &flags
	}
	return m
}

// command is a command with its options.
func (c *Client) command(ctx context.Context, i discord.ApplicationCommandInteraction) platform.Invocation {
	inv := c.invocation(ctx, i)
	inv.Path, inv.Absent = commandPath(i), absentFrom(i)
	switch data := i.Data.(type) {
	case discord.SlashCommandInteractionData:
		for name, o := range data.Options {
			switch o.Type {
			case discord.ApplicationCommandOptionTypeBool:
				inv.Flag[name] = data.Bool(name)
			case discord.ApplicationCommandOptionTypeUser:
				var member *discord.Member
				if m, ok := data.OptMember(name); ok {
					member = &m.Member
				}
				inv.Person[name] = c.author(inv.In.Guild, data.User(name), member, "")
			case discord.ApplicationCommandOptionTypeInt:
				inv.Text[name] = strings.Trim(string(o.Value), `"`)
			case discord.ApplicationCommandOptionTypeAttachment:
				if a, ok := data.OptAttachment(name); ok {
					inv.Files = append(inv.Files, room.File{Name: a.Filename, Size: int64(a.Size), URL: a.URL})
				}
			default:
				inv.Text[name] = data.String(name)
			}
		}
	case discord.MessageCommandInteractionData:
		m := c.message(data.TargetMessage(), inv.In)
		inv.On = &m
	}
	return inv
}

// commandPath is the path of the command that was given.
func commandPath(i discord.ApplicationCommandInteraction) string {
	if data, ok := i.Data.(discord.SlashCommandInteractionData); ok {
		return strings.TrimPrefix(data.CommandPath(), "/")
	}
	return i.Data.CommandName()
}

func (c *Client) finish(ctx context.Context, what string, call func(context.Context) error) {
	if _, err := c.again(ctx, what, call); err != nil {
		c.Log.Warn("a click or command could not be answered", "event", "answer_failed", "call", what, "error", err)
	}
}

// textFile is a file of an answer, created for each try because a reader can be read only once.
func textFile(f platform.File) []*discord.File {
	if f.Name == "" {
		return nil
	}
	return []*discord.File{discord.NewFile(f.Name, "", strings.NewReader(f.Text))}
}

// maxChoices is the most suggestions that Discord accepts.
const maxChoices = 25

// complete answers somebody who is typing. If it is too late it suggests nothing.
func (c *Client) complete(ctx context.Context, i discord.AutocompleteInteraction) {
	ctx, cancel := context.WithTimeout(ctx, deferTime)
	defer cancel()
	inv := c.invocation(ctx, i)
	inv.Path = strings.TrimPrefix(i.Data.CommandPath(), "/")
	for name := range i.Data.Options {
		inv.Text[name] = i.Data.String(name)
	}
	var list []platform.Choice
	if inv.In.ID != "" {
		list = c.sink.Complete(ctx, inv, i.Data.Focused().Name)
	}
	choices := proposals(list)
	c.acknowledge(ctx, i, discord.InteractionResponse{Type: discord.InteractionResponseTypeAutocompleteResult, Data: discord.AutocompleteResult{Choices: choices}})
}

func (c *Client) invocation(ctx context.Context, i discord.Interaction) platform.Invocation {
	return platform.Invocation{ID: i.ID().String(), Text: map[string]string{}, Flag: map[string]bool{}, Person: map[string]room.Author{},
		By: c.caller(ctx, i), In: c.interactionChannel(ctx, i), Allowed: c.allowed(ctx, i)}
}

// caller is the person who gives a command, with their roles in the guild.
func (c *Client) caller(ctx context.Context, i discord.Interaction) room.Author {
	guild := guildOf(i.GuildID())
	if err := c.learnRoles(ctx, guild); err != nil {
		c.Log.Warn("the roles of a guild are not known; somebody there has none for now", "event", "roles_unknown", "guild", guild, "error", err)
	}
	var member *discord.Member
	if m := i.Member(); m != nil {
		member = &m.Member
	}
	return c.author(guild, i.User(), member, "")
}

// interactionChannel is the place of a click or command, as far as it is known.
func (c *Client) interactionChannel(ctx context.Context, i discord.Interaction) room.Channel {
	in, err := ask(ctx, c, "channel", func(ctx context.Context) (room.Channel, error) { return c.Channel(ctx, i.Channel().ID().String()) })
	if err != nil {
		c.Log.Warn("the channel of a command is not known", "event", "channel_unknown", "error", err)
		return c.place(i.GuildID(), i.Channel().ID())
	}
	return in
}

// allowed is what Discord lets somebody do in this place. In a direct message they may do
// everything except manage a server.
func (c *Client) allowed(ctx context.Context, i discord.Interaction) platform.Allowed {
	m := i.Member()
	if m == nil {
		return platform.Allowed{Write: true, OpenThreads: true, ManageMessages: true}
	}
	write := discord.PermissionSendMessages
	if c.interactionChannel(ctx, i).Parent != "" {
		write = discord.PermissionSendMessagesInThreads
	}
	return platform.Allowed{Write: m.Permissions.Has(write), OpenThreads: m.Permissions.Has(discord.PermissionCreatePublicThreads),
		ManageMessages: m.Permissions.Has(discord.PermissionManageMessages), ManageGuild: m.Permissions.Has(discord.PermissionManageGuild)}
}
