package discord

import (
	"context"
	"slices"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/transport/discord/gateway"
)

// historyPage is the most that Discord returns at once.
const historyPage = 100

// ReadAfter implements platform.History. An empty after means from the beginning, which must be
// explicit: without it Discord returns the newest messages.
func (c *Client) ReadAfter(ctx context.Context, channel, after string) ([]room.Message, bool, error) {
	got, err := c.rest.GetMessages(gateway.ID(channel), 0, 0, max(gateway.ID(after), 1), historyPage, rest.WithCtx(ctx))
	if err != nil {
		return nil, false, gateway.Trouble(err)
	}
	slices.Reverse(got) // Discord returns the newest first
	return c.messages(ctx, channel, got, historyPage)
}

// ReadBefore implements platform.History.
func (c *Client) ReadBefore(ctx context.Context, channel, before string, limit int) ([]room.Message, bool, error) {
	limit = min(limit, historyPage)
	got, err := c.rest.GetMessages(gateway.ID(channel), 0, gateway.ID(before), 0, limit, rest.WithCtx(ctx))
	if err != nil {
		return nil, false, gateway.Trouble(err)
	}
	return c.messages(ctx, channel, got, limit)
}

func (c *Client) messages(ctx context.Context, channel string, list []discord.Message, page int) ([]room.Message, bool, error) {
	in, err := c.Channel(ctx, channel)
	if err == nil {
		err = c.learnRoles(ctx, in.Guild)
	}
	if err != nil {
		return nil, false, err
	}
	out := make([]room.Message, len(list))
	for i, m := range list {
		out[i] = c.message(m, in)
	}
	return out, len(list) == page, nil
}

// Message implements platform.History.
func (c *Client) Message(ctx context.Context, channel, id string) (room.Message, error) {
	got, err := c.rest.GetMessage(gateway.ID(channel), gateway.ID(id), rest.WithCtx(ctx))
	if err != nil {
		return room.Message{}, gateway.Trouble(err)
	}
	in, err := c.Channel(ctx, channel)
	if err != nil {
		return room.Message{}, err
	}
	return c.message(*got, in), nil
}

// The limits of reading pins.
const (
	pinPage  = 50 // Discord's maximum
	pinPages = 5
)

// Pins implements platform.Pins.
func (c *Client) Pins(ctx context.Context, in room.Channel) ([]room.Message, error) {
	var out []room.Message
	var before time.Time
	for range pinPages {
		page, err := c.rest.GetChannelPins(gateway.ID(in.ID), before, pinPage, rest.WithCtx(ctx))
		if err != nil {
			return nil, gateway.Trouble(err)
		}
		for _, pin := range page.Items {
			before = pin.PinnedAt
			out = append(out, c.message(pin.Message, in))
		}
		if !page.HasMore {
			break
		}
	}
	return out, nil
}

// maxReactions limits how many people are listed for one emoji.
const maxReactions = 100

// ReactionsOf implements platform.Reactions.
func (c *Client) ReactionsOf(ctx context.Context, in room.Channel, message string, want func(emoji string) bool) ([]platform.Reacted, error) {
	m, err := c.rest.GetMessage(gateway.ID(in.ID), gateway.ID(message), rest.WithCtx(ctx))
	if err != nil {
		return nil, gateway.Trouble(err)
	}
	var out []platform.Reacted
	for _, r := range m.Reactions {
		if !want(r.Emoji.Name) {
			continue
		}
		users, err := c.rest.GetReactions(gateway.ID(in.ID), gateway.ID(message), r.Emoji.Name, discord.MessageReactionTypeNormal, 0, maxReactions, rest.WithCtx(ctx))
		if err != nil {
			return nil, gateway.Trouble(err)
		}
		for _, u := range users {
			out = append(out, platform.Reacted{In: in, Message: message, Emoji: r.Emoji.Name, By: c.author(in.Guild, u, nil, ""), Added: true})
		}
	}
	return out, nil
}

// typingTime limits the call that shows typing.
const typingTime = 5 * time.Second

// ShowTyping implements platform.Typing.
func (c *Client) ShowTyping(ctx context.Context, channel string) {
	ctx, cancel := context.WithTimeout(ctx, typingTime)
	defer cancel()
	if err := c.rest.SendTyping(gateway.ID(channel), rest.WithCtx(ctx)); err != nil && ctx.Err() == nil {
		c.Log.Debug("could not show that somebody writes", "event", "typing_failed", "channel", channel, "error", err)
	}
}
