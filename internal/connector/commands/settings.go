package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/connector"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
)

func setsGuild(key, option string) handler {
	return func(b *Set, ctx context.Context, o request) platform.Answer {
		by, ok := o.caller()
		if !ok {
			return says(onlyInGuilds)
		}
		now, note, err := b.Backend.SetGuild(ctx, by, key, strings.TrimSpace(o.Text[option]))
		if err != nil {
			return says(b.UserMessage(err))
		}
		return says(settled(now.Key+" of this server", now, note))
	}
}

func (b *Set) proposeForSettings(ctx context.Context, o request, option string) []platform.Choice {
	key := "model"
	if option == "profile" {
		key = "permissions"
	}
	return choices(b.Backend.ProposeValues(ctx, connector.Caller{By: o.by, Guild: o.in.Guild}, key, o.Text[option]))
}

func (b *Set) showSettings(ctx context.Context, o request) platform.Answer {
	by, ok := o.caller()
	if !ok {
		return says(onlyInGuilds)
	}
	list, keys, err := b.Backend.GuildSettings(ctx, by)
	if err != nil {
		return says(b.UserMessage(err))
	}
	var out strings.Builder
	out.WriteString("**Default settings for agents here**\n")
	for _, s := range list {
		fmt.Fprintf(&out, "- %s: %s (%s)\n", s.Key, shownValue(s.Value), s.From)
	}
	out.WriteString("**Keys**\n" + keyLines(keys))
	return platform.Answer{Text: strings.TrimSpace(out.String()), Panel: true,
		Selects: slices.Concat(b.chooser(ctx, by, "", "model"), b.chooser(ctx, by, "", "permissions"))}
}

func (b *Set) checkKeys(ctx context.Context, o request) platform.Answer {
	by, ok := o.caller()
	if !ok {
		return says(onlyInGuilds)
	}
	keys, err := b.Backend.CheckKeys(ctx, by)
	if err != nil {
		return says(b.UserMessage(err))
	}
	return says(keyLines(keys))
}

// fewModels is how many models are shown per vendor.
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
	return cmp.Or(strings.TrimSpace(out.String()), "No vendor is configured; the offline model answers.")
}

// access explains the rights of the caller or of somebody else in a channel.
func (b *Set) access(ctx context.Context, o request) platform.Answer {
	of := connector.Caller{By: o.by, Guild: o.in.Guild}
	who := "You"
	if person, ok := o.Person["person"]; ok && person.ID != o.by.ID {
		if !o.Allowed.ManageGuild {
			return says("Only people who may manage the server can see the rights of others. Leave out `person` to see yours.")
		}
		of.By, who = b.Principal(person), mark.Person(person.ID)
	}
	l, ok, err := b.listenerHere(ctx, o.in)
	if err != nil {
		return says(b.UserMessage(err))
	}
	if !ok {
		return says("No agent answers here, so nothing is done for anybody.")
	}
	a, err := b.Backend.Access(ctx, of, l.Name, o.in)
	if err != nil {
		return says(b.UserMessage(err))
	}
	return says(strings.ReplaceAll(accessText(a, who, l.Name, of.By.Roles), of.By.String(), mark.Person(of.By.ID)))
}

// accessText explains rights to people who have never heard of profiles.
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
		out.WriteString("Everything except what is refused to everybody.\n")
	}
	for _, p := range a.Profiles {
		fmt.Fprintf(&out, "- `%s`: %s\n", code(p.Name), p.Means)
	}
	if len(a.Profiles) > 1 {
		out.WriteString("Each of these must allow an action; the strictest one decides.\n")
	}
	out.WriteString("**Why**\n")
	for _, l := range a.Limits {
		fmt.Fprintf(&out, "- %s: `%s` (%s)\n", l.Who, code(l.Profile), l.From)
	}
	if len(roles) > 0 {
		out.WriteString(mark.Small("roles that count: "+strings.Join(roles, ", ")) + "\n")
	}
	if a.Answers != "" {
		fmt.Fprintf(&out, "Approvals are answered by: %s.\n", a.Answers)
	}
	if len(a.Gives) == 0 {
		fmt.Fprintf(&out, "%s %s no right to give agents more permissions.", who, have)
	} else {
		fmt.Fprintf(&out, "%s may give agents: `%s`.", who, strings.Join(a.Gives, "`, `"))
	}
	return out.String()
}
