package discord

import (
	"context"
	"slices"
	"strings"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/chat"
	"chorus/internal/room"
)

// orders are one entry of Discord's list of commands: what Discord is told of it, and who
// carries out each of its paths ("/agent/list"; of an entry in a menu its name).
type orders struct {
	create   discord.ApplicationCommandCreate
	carry    map[string]handler
	complete map[string]completer // by path; nil: nothing is proposed
}

// handler carries out an order. It was acknowledged already; what it gives is shown to
// whoever gave it, and to nobody else.
type handler func(b *Bot, ctx context.Context, o order) answer

// completer proposes values for the option that somebody is typing; at most 25 are shown.
type completer func(b *Bot, ctx context.Context, o asking) []discord.AutocompleteChoice

// order is a command that somebody gave.
type order struct {
	interaction discord.Interaction
	data        discord.SlashCommandInteractionData // of a slash command
	on          *discord.Message                    // what an entry in a message's menu was chosen for
	by          chat.Principal
	in          room.Channel
}

// asking is a command that somebody is still typing.
type asking struct {
	interaction discord.Interaction
	data        discord.AutocompleteInteractionData
	by          chat.Principal
	in          room.Channel
}

// answer is what is shown for an order.
type answer struct {
	text    string
	buttons []discord.LayoutComponent
	file    attached
}

// attached is a text that goes along as a file; without a name there is none.
type attached struct{ name, text string }

// files are made anew for each try: a reader is read once.
func (a attached) files() []*discord.File {
	if a.name == "" {
		return nil
	}
	return []*discord.File{discord.NewFile(a.name, "", strings.NewReader(a.text))}
}

func says(text string) answer { return answer{text: text} }

// mayManage reports whether the giver keeps order in the channel.
func (o order) mayManage() bool { return may(o.interaction) }

// keeps reports whether the giver keeps the server.
func (o order) keeps() bool { return keeps(o.interaction) }

// allOrders is every entry there is, in the order in which Discord is told of them.
func allOrders() []orders {
	return slices.Concat(agentOrders(), settingsOrders(), runOrders(), lookOrders(), threadOrders(), contextOrders(), whyOrders())
}

func handlerOf(path string) handler {
	for _, o := range allOrders() {
		if h := o.carry[path]; h != nil {
			return h
		}
	}
	return nil
}

func completerOf(path string) completer {
	for _, o := range allOrders() {
		if c := o.complete[path]; c != nil {
			return c
		}
	}
	return nil
}

// register tells Discord which commands there are. Doing it again changes nothing.
func (b *Bot) register(ctx context.Context) {
	b.mu.Lock()
	app := number(b.app)
	b.mu.Unlock()
	var list []discord.ApplicationCommandCreate
	for _, o := range allOrders() {
		list = append(list, o.create)
	}
	_, err := again(ctx, b.rest, "register commands", func(ctx context.Context) ([]discord.ApplicationCommand, error) {
		if b.Guild != "" {
			return b.rest.SetGuildCommands(app, number(b.Guild), list, rest.WithCtx(ctx))
		}
		return b.rest.SetGlobalCommands(app, list, rest.WithCtx(ctx))
	})
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("the commands could not be registered", "event", "commands_failed", "error", err)
	}
}

// order carries out a command and gives what is shown to whoever gave it.
func (b *Bot) order(ctx context.Context, i discord.ApplicationCommandInteraction) answer {
	o := order{interaction: i, by: b.clicker(ctx, i)}
	path := ""
	switch data := i.Data.(type) {
	case discord.SlashCommandInteractionData:
		o.data, path = data, data.CommandPath()
	case discord.MessageCommandInteractionData:
		m := data.TargetMessage()
		o.on, path = &m, data.CommandName()
	}
	h := handlerOf(path)
	if h == nil {
		return says("There is no such command.")
	}
	var err error
	if o.in, err = b.channelOf(ctx, i.Channel().ID().String()); err != nil {
		return says(plainly(err))
	}
	return h(b, ctx, o)
}

// propose answers somebody who is typing; nothing is proposed rather than too late.
func (b *Bot) propose(ctx context.Context, i discord.AutocompleteInteraction) {
	ctx, cancel := context.WithTimeout(ctx, deferTime)
	defer cancel()
	choices := []discord.AutocompleteChoice{}
	if c := completerOf(i.Data.CommandPath()); c != nil {
		if in, err := b.channelOf(ctx, i.Channel().ID().String()); err == nil {
			choices = append(choices, c(b, ctx, asking{interaction: i, data: i.Data, by: b.clicker(ctx, i), in: in})...)
		}
	}
	choices = choices[:min(len(choices), maxChoices)]
	b.acknowledge(ctx, i, discord.InteractionResponse{Type: discord.InteractionResponseTypeAutocompleteResult, Data: discord.AutocompleteResult{Choices: choices}})
}

// maxChoices is how many proposals Discord takes.
const maxChoices = 25
