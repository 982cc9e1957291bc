package discord

import (
	"context"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/connector"
	"chorus/internal/room"
	"chorus/internal/room/activate"
)

// manySigned bounds how many people are asked after who put one sign on a card.
const manySigned = 100

// signedMeanwhile hears of the signs on open cards that were put there while nobody listened. Those
// that were heard before change nothing. A no goes before a yes.
func (b *Bot) signedMeanwhile(ctx context.Context) error {
	cards, err := b.Backend.OpenCards(ctx, b.Name)
	if err != nil {
		return err
	}
	for _, c := range cards {
		if err := b.signedOn(ctx, c); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			b.Log.Warn("the signs on a card could not be read", "event", "signs_failed", "channel", c.Channel, "message", c.Message, "error", err)
		}
	}
	return nil
}

// signedOn hears of the signs on one card.
func (b *Bot) signedOn(ctx context.Context, c connector.Card) error {
	in, err := b.channelOf(ctx, c.Channel)
	if err != nil {
		return err
	}
	card, err := patiently(ctx, b, b.Patience, "card", func(ctx context.Context) (*discord.Message, error) {
		return b.rest.GetMessage(number(c.Channel), number(c.Message), rest.WithCtx(ctx))
	})
	if err != nil {
		return err
	}
	for _, order := range []activate.Order{activate.Deny, activate.Approve} {
		for _, r := range card.Reactions {
			sign := r.Emoji.Name
			if activate.Ordered(room.Event{Kind: room.Reacted, Emoji: sign, Added: true}, activate.On{Card: true}, room.Agent{}) != order {
				continue
			}
			users, err := patiently(ctx, b, b.Patience, "signs", func(ctx context.Context) ([]discord.User, error) {
				return b.rest.GetReactions(number(c.Channel), number(c.Message), sign, discord.MessageReactionTypeNormal, 0, manySigned, rest.WithCtx(ctx))
			})
			if err != nil {
				return err
			}
			for _, u := range users {
				b.signed(ctx, in, c, sign, u)
			}
		}
	}
	return nil
}

// signed puts somebody's sign where live ones are heard. Without their roles nobody's counts.
func (b *Bot) signed(ctx context.Context, in room.Channel, c connector.Card, sign string, by discord.User) {
	if by.Bot {
		return
	}
	e := gateway.EventMessageReactionAdd{UserID: by.ID, ChannelID: number(c.Channel), MessageID: number(c.Message), Emoji: discord.PartialEmoji{Name: &sign}}
	if in.Guild != room.Direct {
		guild := number(in.Guild)
		member, err := b.rest.GetMember(guild, by.ID, rest.WithCtx(ctx))
		if err != nil {
			b.Log.Info("a sign on a card is of somebody who is not to be found", "event", "signs_failed", "message", c.Message, "error", err)
			return
		}
		e.GuildID, e.Member = &guild, member
	}
	b.queue.put(e)
}
