package discord

import (
	"context"
	"fmt"
	"strings"

	"github.com/disgoorg/disgo/discord"
)

// agentOrders are about the agents themselves.
func agentOrders() []orders {
	return []orders{
		{create: discord.SlashCommandCreate{Name: "agent", Description: "Agents", Options: []discord.ApplicationCommandOption{
			discord.ApplicationCommandOptionSubCommand{Name: "list", Description: "Which agents there are"}}},
			carry: map[string]handler{"/agent/list": forKeepers((*Bot).agents)}},
	}
}

func (b *Bot) agents(ctx context.Context, o order) answer {
	list, err := b.House.ListAgents(ctx, caller(o.by))
	if err != nil {
		return says(plainly(err))
	}
	var out strings.Builder
	for _, a := range list.Items {
		fmt.Fprintf(&out, "- **%s** %s %s\n", a.Name, a.Model, a.Description)
	}
	return says(first(strings.TrimSpace(out.String()), "There are no agents."))
}
