package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/connector"
	"chorus/internal/room"
	"chorus/internal/room/render"
)

// initAgent makes the channel and the agent. Every step that was done is found again, so
// that the same order, given once more after a crash, ends the work.
func (b *Bot) initAgent(ctx context.Context, o order) answer {
	by, ok := o.giver()
	if !ok {
		return says(onlyInGuilds)
	}
	want := connector.NewAgent{Name: nameIn(o.data), Model: o.data.String("model"),
		Permissions: o.data.String("permissions"), Prompt: o.data.String("prompt")}
	if err := b.Backend.CheckNewAgent(ctx, by, want); err != nil {
		return says(plainly(err))
	}
	b.making.Lock() // an order that is given twice finds what the first one made
	defer b.making.Unlock()
	at, err := b.channelFor(ctx, o, want.Name)
	if err != nil {
		return says(channelRefused(err, want.Name))
	}
	channel, made := at.ID, at.now
	agent, err := b.Backend.CreateAgent(ctx, by, want, at.AgentChannel)
	if err != nil {
		return says(fmt.Sprintf("%s\nThe channel <#%s> is there; say the same again, and only the rest is done.", plainly(err), channel))
	}
	b.renewed(ctx)
	text := fmt.Sprintf("**%s** is ready in <#%s>: say something there.\n-# model `%s`, permissions `%s`", agent.Name, channel, code(agent.Model), code(agent.Permissions))
	switch {
	case !made && !agent.New:
		text += "\nThe channel and the agent were there already and are used; nothing of the agent was changed."
	case !made:
		text += "\nThe channel was there already and is used."
	case !agent.New:
		text += "\nThe agent was there already and has a channel now; nothing else of it was changed."
	}
	return says(text)
}

// creating is how often a channel is looked for and made, if Discord does not answer.
const creating = 3

// found is a channel for an agent.
type found struct {
	connector.AgentChannel
	now bool // it was made just now
}

// channelFor is the channel of an agent: the one that it has, the one of its name that is
// there, or a new one beside the channel where it was asked for. Without an answer it may have
// been made, so it is looked for before it is made again.
func (b *Bot) channelFor(ctx context.Context, o order, name string) (at found, err error) {
	guild := number(o.in.Guild)
	wait := b.FirstBackoff
	topic := "Talk to the agent " + name + " here."
	for range creating {
		var all []discord.GuildChannel
		all, err = again(ctx, b.rest, "channels", func(ctx context.Context) ([]discord.GuildChannel, error) {
			return b.rest.GetGuildChannels(guild, rest.WithCtx(ctx))
		})
		if err != nil {
			return at, err
		}
		if c := b.channelNamed(ctx, o, all, name); c != nil {
			text, ok := c.(discord.GuildTextChannel)
			at.ID, at.Made = c.ID().String(), ok && text.Topic() != nil && *text.Topic() == topic // ours, from a try that was cut off
			b.world.channel(c)
			return at, b.maySee(ctx, o, at.ID)
		}
		var c discord.GuildChannel
		c, err = b.rest.CreateGuildChannel(guild, discord.GuildTextChannelCreate{Name: name, ParentID: categoryOf(all, o.in), Topic: topic},
			rest.WithCtx(ctx), rest.WithReason("/agent init by "+o.by.Name))
		if err == nil {
			b.world.channel(c)
			return found{connector.AgentChannel{ID: c.ID().String(), Made: true}, true}, nil
		}
		if !passing(err) {
			return at, err
		}
		at.now = true // perhaps; if it is there now, we were it
		if !sleep(ctx, wait) {
			return at, ctx.Err()
		}
		wait = min(2*wait, b.BackoffMax)
	}
	return at, err
}

// channelNamed is the channel that an agent has, whatever it is called by now, else the one
// that is called like it; nil: there is none.
func (b *Bot) channelNamed(ctx context.Context, o order, all []discord.GuildChannel, name string) discord.GuildChannel {
	has := ""
	by, _ := o.giver()
	agents, _ := b.Backend.GuildAgents(ctx, by) // what is not known now is looked for by its name
	for _, a := range agents {
		if a.Name == name {
			has = a.Channel
		}
	}
	var called discord.GuildChannel
	for _, c := range all {
		if c.Type() != discord.ChannelTypeGuildText {
			continue
		}
		if c.ID().String() == has {
			return c
		}
		if c.Name() == name && called == nil {
			called = c
		}
	}
	return called
}

var errTaken = errors.New("the name is taken")

// maySee refuses to put an agent where whoever wants it cannot see what it does.
func (b *Bot) maySee(ctx context.Context, o order, channel string) error {
	may, err := b.mayRead(ctx, o.in.Guild, channel, o.by.ID)
	if err == nil && !may {
		err = errTaken
	}
	return err
}

// categoryOf is the category that a channel stands in; 0: none.
func categoryOf(all []discord.GuildChannel, in room.Channel) snowflake.ID {
	for _, c := range all {
		if c.ID().String() == in.Home() && c.ParentID() != nil {
			return *c.ParentID()
		}
	}
	return 0
}

func channelRefused(err error, name string) string {
	if errors.Is(err, errTaken) {
		return fmt.Sprintf("%s The name %s is taken on this server: choose another.", render.SignNot, name)
	}
	if status(err) == http.StatusForbidden {
		return fmt.Sprintf("%s I may not make channels here. Give my role the permission **Manage Channels**, or make a text channel called `%s` yourself, and say the same again.", render.SignNot, name)
	}
	return plainly(fmt.Errorf("the channel could not be made: %w", err))
}

// pressRetire is the button that ends an agent. It carries for whom it is, whether the
// files stay, and the agent's name.
const pressRetire = "retire"

// retireTime is how long the question can be answered.
const retireTime = 15 * time.Minute

func (b *Bot) destroyAgent(ctx context.Context, o order) answer {
	by, ok := o.giver()
	if !ok {
		return says(onlyInGuilds)
	}
	agent, err := b.Backend.CheckDeleteAgent(ctx, by, nameIn(o.data))
	if err != nil {
		return says(plainly(err))
	}
	text, keep := "its folder with everything in it is deleted", "gone"
	if o.data.Bool("keep_files") {
		text, keep = "its folder goes to `.trash` of the house", "keep"
	}
	switch {
	case agent.Channel != "" && agent.MadeChannel:
		text += fmt.Sprintf(", the channel <#%s> is deleted with everything said in it", agent.Channel)
	case agent.Channel != "":
		text += fmt.Sprintf(", the channel <#%s> stays: it was there before", agent.Channel)
	}
	return answer{text: fmt.Sprintf("End **%s**? Then %s. What was said stays in the journal.", agent.Name, text),
		buttons: []discord.LayoutComponent{discord.ActionRowComponent{Components: []discord.InteractiveComponent{
			discord.ButtonComponent{Style: discord.ButtonStyleDanger, Label: "End " + agent.Name, CustomID: pressed(pressRetire, o.by.ID+":"+keep+":"+agent.Name)},
			discord.ButtonComponent{Style: discord.ButtonStyleSecondary, Label: "Leave it", CustomID: pressed(pressRetire, o.by.ID+":leave:"+agent.Name)},
		}}}}
}

// retire ends an agent on the click of whoever asked for it. The channel goes first: if we
// stop there, the agent still knows that it was its own, and the same order ends it.
func (b *Bot) retire(ctx context.Context, i discord.ComponentInteraction, id string) string {
	parts := strings.SplitN(id, ":", 3)
	by := b.clicker(ctx, i)
	if len(parts) != 3 || i.GuildID() == nil || parts[0] != by.ID {
		return "This question is for whoever asked it."
	}
	keep, name := parts[1], parts[2]
	if keep == "leave" {
		b.replace(ctx, i, "**"+name+"** stays.")
		return ""
	}
	if i.ID().Time().Sub(i.Message.ID.Time()) > retireTime {
		return "That was asked a while ago; say `/agent destroy` again."
	}
	giver := connector.Caller{By: by, Guild: i.GuildID().String()}
	agent, err := b.Backend.CheckDeleteAgent(ctx, giver, name)
	if err != nil {
		return plainly(err)
	}
	note := ""
	if agent.Channel != "" && !agent.MadeChannel {
		note = fmt.Sprintf("\nThe channel <#%s> stays.", agent.Channel)
	} else if agent.Channel != "" {
		switch err := b.deleteChannel(ctx, agent.Channel, by.Name); {
		case err == nil:
		case status(err) == http.StatusForbidden:
			note = fmt.Sprintf("\nI may not delete <#%s>; that is left to you.", agent.Channel)
		default:
			return plainly(fmt.Errorf("the channel could not be deleted, so nothing was done: %w", err))
		}
	}
	if err := b.Backend.DeleteAgent(ctx, giver, name, keep == "keep"); err != nil {
		return plainly(err)
	}
	b.renewed(ctx)
	if i.Channel().ID().String() != agent.Channel || note != "" {
		b.replace(ctx, i, "**"+name+"** is gone."+note)
	}
	return ""
}

func (b *Bot) deleteChannel(ctx context.Context, id, who string) error {
	_, err := again(ctx, b.rest, "delete channel", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.rest.DeleteChannel(number(id), rest.WithCtx(ctx), rest.WithReason("/agent destroy by "+who))
	})
	if status(err) == http.StatusNotFound {
		return nil // it went before
	}
	return err
}

// replace puts a text in the place of a question and its buttons.
func (b *Bot) replace(ctx context.Context, i discord.ComponentInteraction, text string) {
	none := []discord.LayoutComponent{}
	_, err := again(ctx, b.rest, "answer a click", func(ctx context.Context) (*discord.Message, error) {
		return b.rest.UpdateInteractionResponse(i.ApplicationID(), i.Token(), discord.MessageUpdate{Content: &text, Components: &none, AllowedMentions: nobody()}, rest.WithCtx(ctx))
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		b.Log.Warn("a click could not be answered", "event", "answer_failed", "error", err)
	}
}
