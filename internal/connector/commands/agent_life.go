package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/connector"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
	"chorus/internal/room/render"
)

// initAgent creates the channel and the agent. Each step finds what was already done, so
// the same command, given again after a crash, completes the work.
func (b *Set) initAgent(ctx context.Context, o request) platform.Answer {
	by, ok := o.caller()
	if !ok || b.channels == nil {
		return says(onlyInGuilds)
	}
	want := connector.NewAgent{Name: o.agentName(), Model: o.Text["model"], Permissions: o.Text["permissions"], Prompt: o.Text["prompt"]}
	if err := b.Backend.CheckNewAgent(ctx, by, want); err != nil {
		return says(b.UserMessage(err))
	}
	b.creating.Lock() // a repeated command finds what the first one created
	defer b.creating.Unlock()
	at, err := b.channelFor(ctx, o, want.Name)
	if err != nil {
		return says(b.channelRefused(err, want.Name))
	}
	channel := mark.Channel(at.ID)
	agent, err := b.Backend.CreateAgent(ctx, by, want, at.AgentChannel)
	if err != nil {
		return says(fmt.Sprintf("%s\nThe channel %s exists; repeat the command to do the rest.", b.UserMessage(err), channel))
	}
	b.NamesChanged()
	text := fmt.Sprintf("**%s** is ready in %s: say something there.\n%s", agent.Name, channel,
		mark.Small(fmt.Sprintf("model `%s`, permissions `%s`", code(agent.Model), code(agent.Permissions))))
	switch {
	case !at.now && !agent.New:
		text += "\nThe channel and the agent already existed; the agent was not changed."
	case !at.now:
		text += "\nThe channel already existed and is used."
	case !agent.New:
		text += "\nThe agent already existed and now has a channel; nothing else was changed."
	}
	return says(text)
}

// createTries is how often to look for a channel and create it, if the platform does not answer.
const createTries = 3

// found is a channel for an agent.
type found struct {
	connector.AgentChannel
	now bool // it was just created
}

// channelFor returns the channel for an agent: its existing one, the one of its name, or a new one
// next to the channel of the command. A call without an answer may have
// succeeded, so it looks again before it creates again.
func (b *Set) channelFor(ctx context.Context, o request, name string) (at found, err error) {
	wait := b.FirstBackoff
	topic := "Talk to the agent " + name + " here."
	for range createTries {
		var all []platform.ChannelInfo
		all, err = connector.Again(ctx, b.Bot, "channels", func(ctx context.Context) ([]platform.ChannelInfo, error) {
			return b.channels.ChannelsOf(ctx, o.in.Guild)
		})
		if err != nil {
			return at, err
		}
		if c := b.channelNamed(ctx, o, all, name); c != nil {
			at.ID, at.Made = c.ID, c.Topic == topic // ours, from an interrupted try
			return at, b.maySee(ctx, o, at.ID)
		}
		c, err := b.channels.MakeChannel(ctx, platform.NewChannel{Guild: o.in.Guild, Name: name, Topic: topic, Beside: o.in.Home(),
			Reason: "/agent init by " + o.by.Name})
		if err == nil {
			return found{connector.AgentChannel{ID: c.ID, Made: true}, true}, nil
		}
		if !platform.Passing(err) {
			return at, err
		}
		at.now = true // perhaps; if it exists now, we created it
		if !await.For(ctx, wait) {
			return at, ctx.Err()
		}
		wait = min(2*wait, b.BackoffMax)
	}
	return at, err
}

// channelNamed is the channel that an agent has, even if it was renamed, otherwise the one
// with its name; nil: there is none.
func (b *Set) channelNamed(ctx context.Context, o request, all []platform.ChannelInfo, name string) *platform.ChannelInfo {
	has := ""
	by, _ := o.caller()
	agents, _ := b.Backend.GuildAgents(ctx, by) // unknown channels are looked up by name
	for _, a := range agents {
		if a.Name == name {
			has = a.Channel
		}
	}
	var called *platform.ChannelInfo
	for i, c := range all {
		if c.ID == has {
			return &all[i]
		}
		if c.Name == name && called == nil && !c.Board {
			called = &all[i]
		}
	}
	return called
}

var errTaken = errors.New("the name is taken")

// maySee refuses to put an agent where the person cannot see what it does.
func (b *Set) maySee(ctx context.Context, o request, channel string) error {
	may, err := b.MayRead(ctx, o.in.Guild, channel, o.by.ID)
	if err == nil && !may {
		err = errTaken
	}
	return err
}

func (b *Set) channelRefused(err error, name string) string {
	if errors.Is(err, errTaken) {
		return fmt.Sprintf("%s The name %s is taken on this server; choose another.", render.SignNot, name)
	}
	if platform.Is(err, outbox.Forbidden) {
		return fmt.Sprintf("%s I may not create channels here. %s or create a text channel called `%s` yourself, then repeat the command.", render.SignNot, b.Caps().Hints.MakeChannel, name)
	}
	return b.UserMessage(fmt.Errorf("the channel could not be created: %w", err))
}

// retireTime is how long the question can be answered.
const retireTime = 15 * time.Minute

// destroyAgent asks for confirmation. The button contains who may press it,
// whether the files stay, and the agent's name.
func (b *Set) destroyAgent(ctx context.Context, o request) platform.Answer {
	by, ok := o.caller()
	if !ok || b.channels == nil {
		return says(onlyInGuilds)
	}
	agent, err := b.Backend.CheckDeleteAgent(ctx, by, o.agentName())
	if err != nil {
		return says(b.UserMessage(err))
	}
	text, keep := "its folder and everything in it is deleted", "gone"
	if o.Flag["keep_files"] {
		text, keep = "its folder is moved to `.trash`", "keep"
	}
	switch {
	case agent.Channel != "" && agent.MadeChannel:
		text += fmt.Sprintf(", the channel %s is deleted with everything said in it", mark.Channel(agent.Channel))
	case agent.Channel != "":
		text += fmt.Sprintf(", the channel %s stays, because it existed before", mark.Channel(agent.Channel))
	}
	button := func(what string) string {
		return platform.ButtonValue(platform.PressRetire, o.by.ID+":"+what+":"+agent.Name)
	}
	return platform.Answer{Text: fmt.Sprintf("Delete **%s**? Then %s. The conversations stay in the journal.", agent.Name, text), Buttons: []platform.Button{
		{Style: platform.Danger, Label: "End " + agent.Name, Value: button(keep)},
		{Label: "Cancel", Value: button("leave")},
	}}
}

// retire deletes an agent when the person who asked presses the button. The channel goes first: if we
// stop there, the agent still knows that it was its own, and the same command completes the work.
func (b *Set) retire(ctx context.Context, p platform.Press, id string) platform.Answer {
	parts := strings.SplitN(id, ":", 3)
	by := b.Principal(p.By)
	if len(parts) != 3 || p.In.Guild == "" || p.In.Guild == "@me" || parts[0] != by.ID || b.channels == nil {
		return says("Only the person who gave the command can answer this.")
	}
	keep, name := parts[1], parts[2]
	if keep == "leave" {
		return platform.Answer{Text: "**" + name + "** stays.", Replace: true}
	}
	if time.Since(p.MessageAt) > retireTime {
		return says("This question has expired; use `/agent destroy` again.")
	}
	caller := connector.Caller{By: by, Guild: p.In.Guild}
	agent, err := b.Backend.CheckDeleteAgent(ctx, caller, name)
	if err != nil {
		return says(b.UserMessage(err))
	}
	note := ""
	if agent.Channel != "" && !agent.MadeChannel {
		note = fmt.Sprintf("\nThe channel %s stays.", mark.Channel(agent.Channel))
	} else if agent.Channel != "" {
		switch err := b.deleteChannel(ctx, agent.Channel, by.Name); {
		case err == nil:
		case platform.Is(err, outbox.Forbidden):
			note = fmt.Sprintf("\nI may not delete %s; that is left to you.", mark.Channel(agent.Channel))
		default:
			return says(b.UserMessage(fmt.Errorf("the channel could not be deleted, so nothing was changed: %w", err)))
		}
	}
	if err := b.Backend.DeleteAgent(ctx, caller, name, keep == "keep"); err != nil {
		return says(b.UserMessage(err))
	}
	b.NamesChanged()
	if p.In.ID == agent.Channel && note == "" {
		return platform.Answer{} // the question is gone with its channel
	}
	return platform.Answer{Text: "**" + name + "** is gone." + note, Replace: true}
}

func (b *Set) deleteChannel(ctx context.Context, id, who string) error {
	_, err := connector.Again(ctx, b.Bot, "delete channel", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.channels.DeleteChannel(ctx, id, "/agent destroy by "+who)
	})
	if platform.Is(err, outbox.Gone) || platform.Is(err, outbox.Nowhere) {
		return nil // it was already deleted
	}
	return err
}
