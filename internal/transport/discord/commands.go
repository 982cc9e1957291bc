package discord

import (
	"context"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/platform"
	"chorus/internal/transport/discord/gateway"
)

// Register implements platform.Commander.
func (c *Client) Register(ctx context.Context, list []platform.Command) error {
	c.mu.Lock()
	app := gateway.ID(c.app)
	c.mu.Unlock()
	var all []discord.ApplicationCommandCreate
	for _, command := range list {
		all = append(all, created(command))
	}
	var err error
	if c.Guild != "" {
		_, err = c.rest.SetGuildCommands(app, gateway.ID(c.Guild), all, rest.WithCtx(ctx))
	} else {
		_, err = c.rest.SetGlobalCommands(app, all, rest.WithCtx(ctx))
	}
	return gateway.Trouble(err)
}

// needs are Discord's permissions for what a command should be offered to.
var needs = map[platform.Right]discord.Permissions{
	platform.ManageChannels: discord.PermissionManageChannels,
	platform.ManageGuild:    discord.PermissionManageGuild,
}

// created is a command as Discord wants it.
func created(command platform.Command) discord.ApplicationCommandCreate {
	if command.Menu {
		return discord.MessageCommandCreate{Name: command.Name}
	}
	out := discord.SlashCommandCreate{Name: command.Name, Description: command.Description, Options: options(command.Options)}
	for _, sub := range command.Sub {
		if len(sub.Sub) == 0 {
			out.Options = append(out.Options, subcommand(sub))
			continue
		}
		group := discord.ApplicationCommandOptionSubCommandGroup{Name: sub.Name, Description: sub.Description}
		for _, inner := range sub.Sub {
			group.Options = append(group.Options, subcommand(inner))
		}
		out.Options = append(out.Options, group)
	}
	if command.GuildOnly {
		out.Contexts = []discord.InteractionContextType{discord.InteractionContextTypeGuild}
	}
	if p, ok := needs[command.Needs]; ok {
		out.DefaultMemberPermissions.Value, out.DefaultMemberPermissions.OK = &p, true
	}
	return out
}

func subcommand(c platform.Command) discord.ApplicationCommandOptionSubCommand {
	return discord.ApplicationCommandOptionSubCommand{Name: c.Name, Description: c.Description, Options: options(c.Options)}
}

func options(list []platform.Option) []discord.ApplicationCommandOption {
	var out []discord.ApplicationCommandOption
	for _, o := range list {
		switch o.Kind {
		case platform.Flag:
			out = append(out, discord.ApplicationCommandOptionBool{Name: o.Name, Description: o.Description, Required: o.Required})
		case platform.Person:
			out = append(out, discord.ApplicationCommandOptionUser{Name: o.Name, Description: o.Description, Required: o.Required})
		case platform.Number:
			out = append(out, discord.ApplicationCommandOptionInt{Name: o.Name, Description: o.Description, Required: o.Required, Autocomplete: o.Completes})
		case platform.Upload:
			out = append(out, discord.ApplicationCommandOptionAttachment{Name: o.Name, Description: o.Description, Required: o.Required})
		default:
			option := discord.ApplicationCommandOptionString{Name: o.Name, Description: o.Description, Required: o.Required, Autocomplete: o.Completes && len(o.Choices) == 0}
			if o.MaxLength > 0 {
				option.MaxLength = &o.MaxLength
			}
			for _, choice := range o.Choices {
				option.Choices = append(option.Choices, discord.ApplicationCommandOptionChoiceString{Name: choice.Label, Value: choice.Value})
			}
			out = append(out, option)
		}
	}
	return out
}
