package discord

import (
	"context"
	"fmt"
	"strings"

	"chorus/internal/connector"

	"github.com/disgoorg/disgo/discord"
)

// settingsOrders are what holds for all agents of a server, and who may do what. Discord shows
// the settings to those who may manage the server.
func settingsOrders() []orders {
	settings := discord.SlashCommandCreate{Name: "settings", Description: "What holds for the agents of this server",
		Contexts: []discord.InteractionContextType{discord.InteractionContextTypeGuild},
		Options: []discord.ApplicationCommandOption{
			discord.ApplicationCommandOptionSubCommand{Name: "model", Description: "The model of agents that have none of their own", Options: []discord.ApplicationCommandOption{
				discord.ApplicationCommandOptionString{Name: "model", Description: "provider/model; default: the house's", Required: true, Autocomplete: true}}},
			discord.ApplicationCommandOptionSubCommand{Name: "permissions", Description: "What agents may do that have no profile of their own, and new ones", Options: []discord.ApplicationCommandOption{
				discord.ApplicationCommandOptionString{Name: "profile", Description: "Its name; default: the house's", Required: true, Autocomplete: true}}},
			discord.ApplicationCommandOptionSubCommand{Name: "show", Description: "What is set, and where it comes from"},
			discord.ApplicationCommandOptionSubCommand{Name: "validate-keys", Description: "Ask the vendors whether they accept our keys"},
		}}
	access := discord.SlashCommandCreate{Name: "access", Description: "Who may do what here, and why", Options: []discord.ApplicationCommandOption{
		discord.ApplicationCommandOptionUser{Name: "person", Description: "Somebody else; for those who may manage the server"}}}
	return []orders{
		{create: allowedTo(settings, discord.PermissionManageGuild),
			carry: map[string]handler{"/settings/model": setsGuild("model", "model"), "/settings/permissions": setsGuild("permissions", "profile"),
				"/settings/show": (*Bot).showSettings, "/settings/validate-keys": (*Bot).checkKeys},
			complete: map[string]completer{"/settings/model": (*Bot).proposeForSettings, "/settings/permissions": (*Bot).proposeForSettings}},
		{create: access, carry: map[string]handler{"/access": (*Bot).access}},
	}
}

func setsGuild(key, option string) handler {
	return func(b *Bot, ctx context.Context, o order) answer {
		by, ok := o.giver()
		if !ok {
			return says(onlyInGuilds)
		}
		now, note, err := b.Backend.SetGuild(ctx, by, key, strings.TrimSpace(o.data.String(option)))
		if err != nil {
			return says(plainly(err))
		}
		return says(settled(now.Key+" of this server", now, note))
	}
}

func (b *Bot) proposeForSettings(ctx context.Context, o asking) []discord.AutocompleteChoice {
	key, at := "model", o.data.Focused().Name
	if at == "profile" {
		key = "permissions"
	}
	return choices(b.Backend.ProposeValues(ctx, connector.Caller{By: o.by, Guild: o.in.Guild}, key, o.data.String(at)))
}

func (b *Bot) showSettings(ctx context.Context, o order) answer {
	by, ok := o.giver()
	if !ok {
		return says(onlyInGuilds)
	}
	list, keys, err := b.Backend.GuildSettings(ctx, by)
	if err != nil {
		return says(plainly(err))
	}
	var out strings.Builder
	out.WriteString("**What holds here for agents that say nothing else**\n")
	for _, s := range list {
		fmt.Fprintf(&out, "- %s: %s (%s)\n", s.Key, shownValue(s.Value), s.From)
	}
	out.WriteString("**Keys**\n" + keyLines(keys))
	return says(strings.TrimSpace(out.String()))
}

func (b *Bot) checkKeys(ctx context.Context, o order) answer {
	by, ok := o.giver()
	if !ok {
		return says(onlyInGuilds)
	}
	keys, err := b.Backend.CheckKeys(ctx, by)
	if err != nil {
		return says(plainly(err))
	}
	return says(keyLines(keys))
}

// fewModels are shown of each vendor.
const fewModels = 5

func keyLines(keys []connector.KeyState) string {
	var out strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&out, "- **%s**: %s", k.Vendor, k.State)
		if k.Error != "" {
			fmt.Fprintf(&out, ": %s", k.Error)
		}
		if n := len(k.Models); n > 0 {
			fmt.Fprintf(&out, "; `%s`", strings.Join(k.Models[:min(n, fewModels)], "`, `"))
			if n > fewModels {
				fmt.Fprintf(&out, " and %d more", n-fewModels)
			}
		}
		out.WriteByte('\n')
	}
	return first(strings.TrimSpace(out.String()), "No vendor is configured; the offline model answers.")
}

// access explains rights, in a channel, of whoever asks or of somebody else.
func (b *Bot) access(ctx context.Context, o order) answer {
	of := connector.Caller{By: o.by, Guild: o.in.Guild}
	who := "You"
	if user, ok := o.data.OptUser("person"); ok && user.ID.String() != o.by.ID {
		if !o.keeps() {
			return says("What others may is for those who may manage the server; without `person` you see your own.")
		}
		var member *discord.Member
		if m, ok := o.data.OptMember("person"); ok {
			member = &m.Member
		}
		of.By, who = principal(b.author(o.in.Guild, user, member, "")), "<@"+user.ID.String()+">"
	}
	agent, err := b.agentHere(ctx, o.in)
	if err != nil {
		return says(plainly(err))
	}
	if agent == "" {
		return says("Nobody answers here, so nothing is done on anybody's word.")
	}
	a, err := b.Backend.Access(ctx, of, agent, o.in)
	if err != nil {
		return says(plainly(err))
	}
	return says(accessText(a, who, agent, of.By.Roles))
}

// accessText is rights for people who have never heard of profiles.
func accessText(a connector.Access, who, agent string, roles []string) string {
	have, speak := "has", "they say"
	if who == "You" {
		have, speak = "have", "you say"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "**What %s does when %s so here**\n", agent, speak)
	if a.Nothing != "" {
		fmt.Fprintf(&out, "Nothing: %s\n", a.Nothing)
	} else if a.Open {
		out.WriteString("Everything but what is refused to everybody.\n")
	}
	for _, p := range a.Profiles {
		fmt.Fprintf(&out, "- `%s`: %s\n", code(p.Name), p.Means)
	}
	if len(a.Profiles) > 1 {
		out.WriteString("Each of these must allow it; the strictest decides.\n")
	}
	out.WriteString("**Why**\n")
	for _, l := range a.Limits {
		fmt.Fprintf(&out, "- %s: `%s` (%s)\n", l.Who, code(l.Profile), l.From)
	}
	if len(roles) > 0 {
		fmt.Fprintf(&out, "-# roles that count: %s\n", strings.Join(roles, ", "))
	}
	if a.Answers != "" {
		fmt.Fprintf(&out, "What must be asked is answered by: %s.\n", a.Answers)
	}
	if len(a.Gives) == 0 {
		fmt.Fprintf(&out, "%s %s no right to change what agents may.", who, have)
	} else {
		fmt.Fprintf(&out, "%s may give agents: `%s`.", who, strings.Join(a.Gives, "`, `"))
	}
	return out.String()
}
