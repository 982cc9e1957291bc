package commands

import (
	"context"
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mark"
	"chorus/internal/room/route"
	"chorus/internal/room/split"
	"chorus/internal/text"
)

// forkMark separates, in the id of a fork, the platform thread in which it was made.
const forkMark = "-fork-"

// forkHere forks the conversation of a message, up to that message.
func (b *Set) forkHere(ctx context.Context, o request) platform.Answer {
	if o.On == nil {
		return says("Use this from the menu of a message.")
	}
	message := o.On.ID
	places, err := b.Backend.Places(ctx, b.Transport(), message)
	if err != nil {
		return says(b.UserMessage(err))
	}
	for _, p := range places {
		if p.Thread.Place() != o.in.Place() || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		row, err := b.Backend.Thread(ctx, p.Thread)
		if err != nil {
			return says(b.UserMessage(err))
		}
		return b.fork(ctx, o, row, p.Seq, message)
	}
	return says("That message is not part of a conversation with an agent, so there is nothing to fork.")
}

// forkWhole forks a conversation in its current state.
func (b *Set) forkWhole(ctx context.Context, o request) platform.Answer {
	row, err := b.named(ctx, o.in, o.Text["thread"])
	if err != nil {
		return says(b.UserMessage(err))
	}
	return b.fork(ctx, o, row, 0, "")
}

// fork creates the new conversation, and a place on the platform to continue it: a
// first message to reply to, or a thread. A crash in between leaves
// an empty thread, or a copy that nobody sees; repeating the command makes another.
func (b *Set) fork(ctx context.Context, o request, row journal.Thread, atSeq int64, message string) platform.Answer {
	root, channel, err := b.forkPlace(ctx, o, row)
	if err != nil {
		return says(b.UserMessage(err))
	}
	into, err := chat.NewThreadID(b.Transport(), row.ID.Place(), root, row.Agent)
	if err != nil {
		return says(b.UserMessage(err))
	}
	n, err := b.Backend.ForkInto(ctx, row, into, o.by, atSeq)
	if err != nil {
		return says(b.UserMessage(err))
	}
	from := "the conversation `" + titleOf(row) + "`"
	if message != "" && b.HasLinks() {
		from = "[here](" + b.Link(ctx, o.in.ID, message) + ")"
	}
	text := fmt.Sprintf("Forked from %s by %s: %s. ", from, b.MentionPeople(o.by.String()), text.Count(n, "message"))
	if channel == o.in.ID {
		text += "Reply to this message to continue from there."
	} else {
		text += "Write in this thread to continue from there."
	}
	if err := b.SetDesired(ctx, journal.Desired{Lane: b.Lane(channel), Key: "fork/" + root, Thread: into, Seq: 1, Body: platform.Post{Text: text}.Body(), Final: true}); err != nil {
		return says(b.UserMessage(err))
	}
	if channel != o.in.ID {
		return says("Forked: continue in " + mark.Channel(channel) + ".")
	}
	return says("Forked: reply to my next message.")
}

// forkPlace returns the name and the channel of a fork.
func (b *Set) forkPlace(ctx context.Context, o request, row journal.Thread) (root, channel string, err error) {
	listeners, err := b.Backend.Listeners(ctx, b.Name, b.Self(), o.in)
	if err != nil {
		return "", "", err
	}
	if connector.ListenerOf(listeners, row.Agent).Name == "" {
		return "", "", connector.Refusal(fmt.Sprintf("the agent %s no longer answers here, so nobody would continue the fork", row.Agent))
	}
	if r := connector.ListenerOf(listeners, row.Agent).Routing; r == "" || r == route.Reply {
		root := "fork-" + o.ID
		if o.in.Parent != "" {
			root = o.in.ID + forkMark + o.ID
		}
		return root, o.in.ID, nil
	}
	if o.in.Guild == "" || o.in.Guild == room.Direct {
		return "", "", connector.Refusal("a direct message is one conversation without threads to fork into; use this in a channel of a server")
	}
	if o.in.Private {
		return "", "", connector.Refusal("the fork would be in a public thread, and this one is private, so nothing was done")
	}
	if !o.Allowed.OpenThreads {
		return "", "", connector.Refusal("a fork here needs a thread of its own, and you may not open threads in this channel")
	}
	name := split.Clip("fork: "+titleOf(row), 90)
	if b.opens == nil {
		return "", "", connector.Refusal(b.Caps().Label + " has no threads, so there is no place for a fork")
	}
	made, err := connector.Again(ctx, b.Bot, "open thread", func(ctx context.Context) (room.Channel, error) {
		return b.opens.Open(ctx, o.in.Home(), name)
	})
	if err != nil {
		return "", "", fmt.Errorf("no thread could be opened for the fork; %s: %w", b.Caps().Hints.OpenThread, err)
	}
	return made.ID, made.ID, nil
}
