package discord

import (
	"context"
	"net/http"

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
	if c.Guild != "" {
		return gateway.Trouble(c.overwrite(ctx, rest.SetGuildCommands.Compile(nil, app, gateway.ID(c.Guild)), creates(list, false)))
	}
	all := rest.SetGlobalCommands.Compile(nil, app)
	err := c.overwrite(ctx, all, creates(list, true))
	if gateway.Status(err) == http.StatusBadRequest {
		// The application may not allow installation by users.
		c.Log.Info("the commands are registered for servers only (see Installation in Discord's developer portal)", "event", "no_user_install", "error", err)
		err = c.overwrite(ctx, all, creates(list, false))
	}
	return gateway.Trouble(err)
}

// overwrite replaces all commands. Discord answers with the whole list, which nobody needs; decoding it would take
// longer than everything else that happens when a bot connects.
func (c *Client) overwrite(ctx context.Context, where *rest.CompiledEndpoint, list []discord.ApplicationCommandCreate) error {
	return c.rest.Do(where, list, nil, rest.WithCtx(ctx))
}

// creates converts commands for Discord. people: they may be offered to people who installed them for themselves.
func creates(list []platform.Command, people bool) (all []discord.ApplicationCommandCreate) {
	for _, command := range list {
		command.Anywhere = command.Anywhere && people
		all = append(all, created(command))
	}
	return all
}

// needs are the Discord permissions that a command requires by default.
var needs = map[platform.Right]discord.Permissions{
	platform.ManageChannels: discord.PermissionManageChannels,
	platform.ManageGuild:    discord.PermissionManageGuild,
}

// created converts a command for Discord.
func created(command platform.Command) discord.ApplicationCommandCreate {
	if command.Menu {
		return discord.MessageCommandCreate{Name: command.Name, NameLocalizations: locales(command.Names)}
	}
	out := discord.SlashCommandCreate{Name: command.Name, NameLocalizations: locales(command.Names), Description: command.Description, DescriptionLocalizations: locales(command.Descriptions),
		Options: options(command.Options)}
	for _, sub := range command.Sub {
		if len(sub.Sub) == 0 {
			out.Options = append(out.Options, subcommand(sub))
			continue
		}
		group := discord.ApplicationCommandOptionSubCommandGroup{Name: sub.Name, NameLocalizations: locales(sub.Names), Description: sub.Description, DescriptionLocalizations: locales(sub.Descriptions)}
		for _, inner := range sub.Sub {
			group.Options = append(group.Options, subcommand(inner))
		}
		out.Options = append(out.Options, group)
	}
	switch {
	case command.GuildOnly:
		out.Contexts = []discord.InteractionContextType{discord.InteractionContextTypeGuild}
	case command.Anywhere:
		out.IntegrationTypes = []discord.ApplicationIntegrationType{discord.ApplicationIntegrationTypeGuildInstall, discord.ApplicationIntegrationTypeUserInstall}
		out.Contexts = []discord.InteractionContextType{discord.InteractionContextTypeGuild, discord.InteractionContextTypeBotDM, discord.InteractionContextTypePrivateChannel}
	}
	if p, ok := needs[command.Needs]; ok {
		out.DefaultMemberPermissions.Value, out.DefaultMemberPermissions.OK = &p, true
	}
	return out
}

func subcommand(c platform.Command) discord.ApplicationCommandOptionSubCommand {
	return discord.ApplicationCommandOptionSubCommand{Name: c.Name, NameLocalizations: locales(c.Names), Description: c.Description, DescriptionLocalizations: locales(c.Descriptions), Options: options(c.Options)}
}

// locales maps words to the languages that Discord knows.
func locales(words map[string]string) map[discord.Locale]string {
	out := make(map[discord.Locale]string, len(words))
	for language, text := range words {
		out[discord.Locale(language)] = text
	}
	return out
}

func options(list []platform.Option) []discord.ApplicationCommandOption {
	var out []discord.ApplicationCommandOption
	for _, o := range list {
		names, descriptions := locales(o.Names), locales(o.Descriptions)
		switch o.Kind {
		case platform.Flag:
			out = append(out, discord.ApplicationCommandOptionBool{Name: o.Name, NameLocalizations: names, Description: o.Description, DescriptionLocalizations: descriptions, Required: o.Required})
		case platform.Person:
			out = append(out, discord.ApplicationCommandOptionUser{Name: o.Name, NameLocalizations: names, Description: o.Description, DescriptionLocalizations: descriptions, Required: o.Required})
		case platform.Number:
			out = append(out, discord.ApplicationCommandOptionInt{Name: o.Name, NameLocalizations: names, Description: o.Description, DescriptionLocalizations: descriptions, Required: o.Required, Autocomplete: o.Completes})
		case platform.Upload:
			out = append(out, discord.ApplicationCommandOptionAttachment{Name: o.Name, NameLocalizations: names, Description: o.Description, DescriptionLocalizations: descriptions, Required: o.Required})
		default:
			option := discord.ApplicationCommandOptionString{Name: o.Name, NameLocalizations: names, Description: o.Description, DescriptionLocalizations: descriptions, Required: o.Required, Autocomplete: o.Completes && len(o.Choices) == 0}
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
