package discord

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/route"
	"chorus/internal/room/split"
)

// forkName is the entry in a message's menu.
const forkName = "Fork from here"

// forkMark stands in the id of a fork behind the platform thread that it was made in.
const forkMark = "-fork-"

// forkHere forks the conversation that a message belongs to, as it was with that message.
func (b *Bot) forkHere(ctx context.Context, o order) answer {
	if o.on == nil {
		return says("Choose this in the menu of a message.")
	}
	message := o.on.ID.String()
	places, err := b.Backend.Places(ctx, room.Transport, message)
	if err != nil {
		return says(plainly(err))
	}
	for _, p := range places {
		if p.Thread.Place() != o.in.Place() || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		row, err := b.Backend.Thread(ctx, p.Thread)
		if err != nil {
			return says(plainly(err))
		}
		return b.fork(ctx, o, row, p.Seq, message)
	}
	return says("That message belongs to no conversation with an agent, so there is nothing to fork.")
}

// forkWhole forks a conversation as it is now.
func (b *Bot) forkWhole(ctx context.Context, o order) answer {
	row, err := b.named(ctx, o.in, o.data.String("thread"))
	if err != nil {
		return says(plainly(err))
	}
	return b.fork(ctx, o, row, 0, "")
}

// fork makes the new conversation, and a place on Discord where it goes on: with replies a
// first message that can be replied to, else a thread of its own. Whoever dies in between leaves
// an empty thread, or a copy that nobody sees; giving the order again makes another.
func (b *Bot) fork(ctx context.Context, o order, row journal.Thread, atSeq int64, message string) answer {
	root, channel, err := b.forkPlace(ctx, o, row)
	if err != nil {
		return says(plainly(err))
	}
	into, err := chat.NewThreadID(room.Transport, row.ID.Place(), root, row.Agent)
	if err != nil {
		return says(plainly(err))
	}
	n, err := b.Backend.ForkInto(ctx, row, into, o.by, atSeq)
	if err != nil {
		return says(plainly(err))
	}
	from := "the conversation `" + titleOf(row) + "`"
	if message != "" {
		from = "[here](" + linkTo(o.in, message) + ")"
	}
	text := fmt.Sprintf("Forked from %s by %s: %s. ", from, people(o.by.String()), count(n, "message"))
	if channel == o.in.ID {
		text += "Reply to this message to go on from there."
	} else {
		text += "Say something in this thread to go on from there."
	}
	body, _ := json.Marshal(post{Text: text}) // strings only
	lane := b.lane(channel)
	if err := b.Backend.Wish(ctx, journal.Desired{Lane: lane, Key: "fork/" + root, Thread: into, Seq: 1, Body: body, Final: true}); err != nil {
		return says(plainly(err))
	}
	b.outbox.Wake(lane)
	if channel != o.in.ID {
		return says(fmt.Sprintf("Forked: it goes on in <#%s>.", channel))
	}
	return says("Forked: reply to the message that I write now.")
}

// linkTo is where a message stands.
func linkTo(in room.Channel, message string) string {
	return "https://discord.com/channels/" + first(in.Guild, room.Direct) + "/" + in.ID + "/" + message
}

// forkPlace says under which name a fork goes on, and in which channel.
func (b *Bot) forkPlace(ctx context.Context, o order, row journal.Thread) (root, channel string, err error) {
	listeners, err := b.Backend.Listeners(ctx, b.Name, b.me(), o.in)
	if err != nil {
		return "", "", err
	}
	if listenerOf(listeners, row.Agent).Name == "" {
		return "", "", connector.Refusal(fmt.Sprintf("the agent %s does not answer here any more, so nobody would go on with it", row.Agent))
	}
	if r := listenerOf(listeners, row.Agent).Routing; r == "" || r == route.Reply {
		root := "fork-" + o.interaction.ID().String()
		if o.in.Parent != "" {
			root = o.in.ID + forkMark + o.interaction.ID().String()
		}
		return root, o.in.ID, nil
	}
	if o.in.Guild == "" || o.in.Guild == room.Direct {
		return "", "", connector.Refusal("a direct message is one conversation, and has no threads to fork into; ask in a channel of a server")
	}
	if o.in.Private {
		return "", "", connector.Refusal("a fork would stand in a thread that everybody sees, and this one is private; nothing was done")
	}
	if m := o.interaction.Member(); m != nil && !m.Permissions.Has(discord.PermissionCreatePublicThreads) {
		return "", "", connector.Refusal("a fork stands in a thread of its own here, and you may not open threads in this channel")
	}
	name := split.Clip("fork: "+titleOf(row), 90)
	made, err := again(ctx, b.rest, "open thread", func(ctx context.Context) (*discord.GuildThread, error) {
		return b.rest.CreateThread(number(o.in.Home()), discord.GuildPublicThreadCreate{Name: name}, rest.WithCtx(ctx))
	})
	if err != nil {
		return "", "", fmt.Errorf("no thread could be opened for the fork; the bot needs the right Create Public Threads: %w", err)
	}
	b.world.channel(*made)
	return made.ID().String(), made.ID().String(), nil
}
