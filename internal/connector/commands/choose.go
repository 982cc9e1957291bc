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

// pressSet is the action of lists for choosing a setting, pressAgent that of the list of agents. Their value is the
// agent and the key, or the key for the whole server.
const (
	pressSet   = "set"
	pressAgent = "agent"
)

// hints are the texts of lists of frequent settings.
var hints = map[string]string{"model": "Choose the model", "permissions": "Choose its permissions"}

// chooser is the list of values for a setting; none: any value is possible.
func (b *Set) chooser(ctx context.Context, by connector.Caller, agent, key string) []platform.Select {
	list := choices(b.Backend.ProposeValues(ctx, by, key, ""))
	if len(list) == 0 {
		return nil
	}
	hint := cmp.Or(hints[key], "Choose another value")
	return []platform.Select{{Value: platform.ButtonValue(pressSet, agent+"/"+key), Hint: hint, Choices: list}}
}

// chosenAgent shows an agent with its settings to choose.
func (b *Set) chosenAgent(ctx context.Context, by connector.Caller, agent, said string) platform.Answer {
	a := platform.Answer{Panel: true, Replace: true}
	var out strings.Builder
	if said != "" {
		out.WriteString(said + "\n")
	}
	fmt.Fprintf(&out, "**%s**\n", agent)
	for _, key := range []string{"model", "permissions"} {
		now, err := b.Backend.AgentSetting(ctx, by, agent, key)
		if err != nil {
			return platform.Answer{Text: b.UserMessage(err), Replace: true}
		}
		fmt.Fprintf(&out, "- %s: %s (%s)\n", now.Key, shownValue(now.Value), now.From)
		a.Selects = append(a.Selects, b.chooser(ctx, by, agent, key)...)
	}
	out.WriteString(mark.Small(b.typed("agent config", "key:temperature value:0.3 name:"+agent) + " changes other settings"))
	a.Text = out.String()
	return a
}

// choose sets what somebody chose from a list. Our own rights decide whether they may, as for the command.
func (b *Set) choose(ctx context.Context, p platform.Press, id string) platform.Answer {
	o := request{platform.Invocation{By: p.By, In: p.In, Allowed: p.Allowed}, b.Principal(p.By), p.In}
	by, ok := o.caller()
	if !ok || p.Chosen == "" {
		return platform.Answer{Text: onlyInGuilds, Replace: true}
	}
	agent, key, _ := strings.Cut(id, "/")
	if agent == "" {
		if !p.Allowed.ManageGuild {
			return platform.Answer{Text: "This is for " + those(platform.ManageGuild) + ".", Replace: true}
		}
		now, note, err := b.Backend.SetGuild(ctx, by, key, p.Chosen)
		if err != nil {
			return says(b.UserMessage(err))
		}
		a := b.showSettings(ctx, o)
		a.Text, a.Replace = settled(now.Key+" of this server", now, note)+"\n"+a.Text, true
		return a
	}
	now, note, err := b.Backend.SetAgent(ctx, by, agent, key, p.Chosen)
	if err != nil {
		return says(b.UserMessage(err))
	}
	b.NamesChanged()
	said := settled(fmt.Sprintf("%s of **%s**", now.Key, agent), now, note)
	if hints[key] == "" {
		return platform.Answer{Text: said, Panel: true, Replace: true, Selects: b.chooser(ctx, by, agent, key)}
	}
	return b.chosenAgent(ctx, by, agent, said)
}
