package commands

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"chorus/internal/connector"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
)

// agentName is the agent that a command names, normalized.
func (o request) agentName() string {
	return strings.ToLower(strings.TrimSpace(o.Text["name"]))
}

const onlyInGuilds = "This only works on servers: direct messages have no agents of their own."

func (b *Set) agents(ctx context.Context, o request) platform.Answer {
	by, ok := o.caller()
	if !ok {
		return says(onlyInGuilds)
	}
	list, err := b.Backend.GuildAgents(ctx, by)
	if err != nil {
		return says(b.UserMessage(err))
	}
	var out strings.Builder
	for _, a := range list {
		fmt.Fprintf(&out, "- **%s**", a.Name)
		if a.Channel != "" {
			fmt.Fprintf(&out, " in %s", mark.Channel(a.Channel))
		}
		fmt.Fprintf(&out, ", model `%s`, permissions `%s`", code(a.Model), code(a.Permissions))
		if a.Description != "" {
			fmt.Fprintf(&out, ": %s", a.Description)
		}
		out.WriteByte('\n')
	}
	a := says(cmp.Or(strings.TrimSpace(out.String()), "There are no agents yet; create one with "+b.typed("agent init", "")+"."))
	if len(list) > 0 {
		pick := platform.Select{Value: platform.ButtonValue(pressAgent, "list"), Hint: "Change one of them"}
		for _, one := range list {
			pick.Choices = append(pick.Choices, platform.Choice{Label: one.Name, Value: one.Name})
		}
		a.Panel, a.Selects = true, []platform.Select{pick}
	}
	return a
}

// code is text for between backticks.
func code(s string) string { return strings.ReplaceAll(s, "`", "'") }

func (b *Set) configAgent(ctx context.Context, o request) platform.Answer {
	by, ok := o.caller()
	if !ok {
		return says(onlyInGuilds)
	}
	name, key := o.agentName(), strings.TrimSpace(o.Text["key"])
	if name == "" {
		l, _, err := b.listenerHere(ctx, o.in)
		if err != nil {
			return says(b.UserMessage(err))
		}
		name = l.Name
	}
	if name == "" {
		return says("No agent answers here; name one with `name`.")
	}
	value, change := o.Text["value"]
	if !change {
		now, err := b.Backend.AgentSetting(ctx, by, name, key)
		if err != nil {
			return says(b.UserMessage(err))
		}
		text := fmt.Sprintf("%s of **%s** is %s\n%s", now.Key, name, shownValue(now.Value), mark.Small(now.From))
		return platform.Answer{Text: text, Panel: true, Selects: b.chooser(ctx, by, name, now.Key)}
	}
	now, note, err := b.Backend.SetAgent(ctx, by, name, key, value)
	if err != nil {
		return says(b.UserMessage(err))
	}
	b.NamesChanged()
	return says(settled(fmt.Sprintf("%s of **%s**", now.Key, name), now, note))
}

// settled describes the effective value after a change.
func settled(what string, now connector.Setting, note string) string {
	text := fmt.Sprintf("%s is now %s\n%s", what, shownValue(now.Value), mark.Small(now.From+"; effective from the next run"))
	if note != "" {
		text += "\n" + note
	}
	return text
}

// shownValue formats a value for people: inline if it is one line, otherwise as a block.
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

// proposeForAgent suggests values for the option being typed.
func (b *Set) proposeForAgent(ctx context.Context, o request, option string) []platform.Choice {
	by, part := connector.Caller{By: o.by, Guild: o.in.Guild}, o.Text[option]
	switch option {
	case "name":
		return choices(b.Backend.ProposeAgents(ctx, by, part))
	case "key":
		return choices(b.Backend.ProposeKeys(part))
	case "value":
		return choices(b.Backend.ProposeValues(ctx, by, o.Text["key"], part))
	default: // model and permissions are keys themselves
		return choices(b.Backend.ProposeValues(ctx, by, option, part))
	}
}

// maxChoice is the maximum length of a suggestion.
const maxChoice = 100

func choices(list []string) []platform.Choice {
	var out []platform.Choice
	for _, s := range list {
		if len([]rune(s)) <= maxChoice {
			out = append(out, platform.Choice{Label: s, Value: s})
		}
	}
	return out
}
