package discord

import (
	"context"
	"fmt"
	"strings"

	"github.com/disgoorg/disgo/discord"

	"chorus/internal/connector"
	"chorus/internal/room"
)

// agentOrders are about the agents themselves. Discord shows them to those who may manage
// channels, unless the server's own settings for commands say otherwise.
func agentOrders() []orders {
	name := func(required bool, says string) discord.ApplicationCommandOption {
		return discord.ApplicationCommandOptionString{Name: "name", Description: says, Required: required, Autocomplete: true}
	}
	create := discord.SlashCommandCreate{Name: "agent", Description: "Agents", Contexts: []discord.InteractionContextType{discord.InteractionContextTypeGuild},
		Options: []discord.ApplicationCommandOption{
			discord.ApplicationCommandOptionSubCommand{Name: "init", Description: "Make an agent with a channel of its own", Options: []discord.ApplicationCommandOption{
				discord.ApplicationCommandOptionString{Name: "name", Description: "2 to 32 of a-z, 0-9 and hyphens; also the channel's", Required: true},
				discord.ApplicationCommandOptionString{Name: "model", Description: "provider/model; without it, the server's", Autocomplete: true},
				discord.ApplicationCommandOptionString{Name: "permissions", Description: "What it may do; without it, the server's", Autocomplete: true},
				discord.ApplicationCommandOptionString{Name: "prompt", Description: "Who it is"}}},
			discord.ApplicationCommandOptionSubCommand{Name: "destroy", Description: "End an agent and its channel; you are asked again", Options: []discord.ApplicationCommandOption{
				name(true, "Which agent"),
				discord.ApplicationCommandOptionBool{Name: "keep_files", Description: "Keep its folder, in .trash of the house"}}},
			discord.ApplicationCommandOptionSubCommand{Name: "list", Description: "Which agents there are"},
			discord.ApplicationCommandOptionSubCommand{Name: "config", Description: "Show or change what holds for an agent", Options: []discord.ApplicationCommandOption{
				discord.ApplicationCommandOptionString{Name: "key", Description: "Which setting", Required: true, Autocomplete: true},
				discord.ApplicationCommandOptionString{Name: "value", Description: "What it shall be; default takes the agent's own away; without it, what it is", Autocomplete: true},
				name(false, "Which agent; without it, the one that answers here")}},
		}}
	create = allowedTo(create, discord.PermissionManageChannels)
	return []orders{{create: create,
		carry: map[string]handler{"/agent/init": (*Bot).initAgent, "/agent/destroy": (*Bot).destroyAgent,
			"/agent/list": (*Bot).agents, "/agent/config": (*Bot).configAgent},
		complete: map[string]completer{"/agent/init": (*Bot).proposeForAgent, "/agent/destroy": (*Bot).proposeForAgent, "/agent/config": (*Bot).proposeForAgent}}}
}

// allowedTo has Discord keep a command from everybody without the permission.
func allowedTo(c discord.SlashCommandCreate, p discord.Permissions) discord.SlashCommandCreate {
	c.DefaultMemberPermissions.Value, c.DefaultMemberPermissions.OK = &p, true
	return c
}

// giver is who gives an order; false: it was given in a direct message, where there is no guild.
func (o order) giver() (connector.Caller, bool) {
	return connector.Caller{By: o.by, Guild: o.in.Guild}, o.in.Guild != "" && o.in.Guild != room.Direct
}

// nameIn is the agent that an order names, as names are written.
func nameIn(data discord.SlashCommandInteractionData) string {
	return strings.ToLower(strings.TrimSpace(data.String("name")))
}

const onlyInGuilds = "This is for servers; in a direct message there are no agents to keep."

func (b *Bot) agents(ctx context.Context, o order) answer {
	by, ok := o.giver()
	if !ok {
		return says(onlyInGuilds)
	}
	list, err := b.Backend.GuildAgents(ctx, by)
	if err != nil {
		return says(plainly(err))
	}
	var out strings.Builder
	for _, a := range list {
		fmt.Fprintf(&out, "- **%s**", a.Name)
		if a.Channel != "" {
			fmt.Fprintf(&out, " in <#%s>", a.Channel)
		}
		fmt.Fprintf(&out, ", model `%s`, permissions `%s`", code(a.Model), code(a.Permissions))
		if a.Description != "" {
			fmt.Fprintf(&out, ": %s", a.Description)
		}
		out.WriteByte('\n')
	}
	return says(first(strings.TrimSpace(out.String()), "There are no agents yet; `/agent init` makes one."))
}

// code is text for between backticks.
func code(s string) string { return strings.ReplaceAll(s, "`", "'") }

// agentHere is the agent that answers in a channel through this bot; "": none does.
func (b *Bot) agentHere(ctx context.Context, in room.Channel) (string, error) {
	list, err := b.Backend.Listeners(ctx, b.Name, b.me(), in)
	if err != nil {
		return "", err
	}
	for _, l := range list {
		if l.User == b.me().ID {
			return l.Name, nil
		}
	}
	return "", nil
}

func (b *Bot) configAgent(ctx context.Context, o order) answer {
	by, ok := o.giver()
	if !ok {
		return says(onlyInGuilds)
	}
	name, key := nameIn(o.data), strings.TrimSpace(o.data.String("key"))
	if name == "" {
		var err error
		if name, err = b.agentHere(ctx, o.in); err != nil {
			return says(plainly(err))
		}
	}
	if name == "" {
		return says("Nobody answers here; say which agent you mean with `name`.")
	}
	value, change := o.data.OptString("value")
	if !change {
		now, err := b.Backend.AgentSetting(ctx, by, name, key)
		if err != nil {
			return says(plainly(err))
		}
		return says(fmt.Sprintf("%s of **%s** is %s\n-# %s", now.Key, name, shownValue(now.Value), now.From))
	}
	now, note, err := b.Backend.SetAgent(ctx, by, name, key, value)
	if err != nil {
		return says(plainly(err))
	}
	b.renewed(ctx)
	return says(settled(fmt.Sprintf("%s of **%s**", now.Key, name), now, note))
}

// settled tells what holds after a change.
func settled(what string, now connector.Setting, note string) string {
	text := fmt.Sprintf("%s is now %s\n-# %s; it counts from the next run on", what, shownValue(now.Value), now.From)
	if note != "" {
		text += "\n" + note
	}
	return text
}

// shownValue is a value for people: a line in a line, more of it in a block.
func shownValue(v string) string {
	if strings.Contains(v, "\n") || len([]rune(v)) > 200 {
		r := []rune(strings.ReplaceAll(v, "```", "'''"))
		if len(r) > 1500 {
			r = append(r[:1500], '…')
		}
		return "\n```\n" + string(r) + "\n```"
	}
	return "`" + code(v) + "`"
}

// proposeForAgent proposes values for whatever option is being typed.
func (b *Bot) proposeForAgent(ctx context.Context, o asking) []discord.AutocompleteChoice {
	by, at := connector.Caller{By: o.by, Guild: o.in.Guild}, o.data.Focused()
	part := o.data.String(at.Name)
	switch at.Name {
	case "name":
		return choices(b.Backend.ProposeAgents(ctx, by, part))
	case "key":
		return choices(b.Backend.ProposeKeys(part))
	case "value":
		return choices(b.Backend.ProposeValues(ctx, by, o.data.String("key"), part))
	default: // model and permissions are keys themselves
		return choices(b.Backend.ProposeValues(ctx, by, at.Name, part))
	}
}

// longestChoice is what Discord shows of a proposal.
const longestChoice = 100

func choices(list []string) []discord.AutocompleteChoice {
	var out []discord.AutocompleteChoice
	for _, s := range list {
		if len([]rune(s)) <= longestChoice {
			out = append(out, discord.AutocompleteChoiceString{Name: s, Value: s})
		}
	}
	return out
}
