package connector

import (
	"context"

	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/activate"
)

// reactionsMeanwhile takes the reactions to open cards that were added while nobody was
// connected. Reactions that were already taken have no effect. A no precedes a yes.
func (b *Bot) reactionsMeanwhile(ctx context.Context) error {
	if b.can.reactions == nil {
		return nil
	}
	cards, err := b.Backend.OpenCards(ctx, b.Name)
	if err != nil {
		return err
	}
	for _, c := range cards {
		if err := b.reactionsTo(ctx, c); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			b.Log.Warn("the reactions to a card could not be read", "event", "reactions_failed", "channel", c.Channel, "message", c.Message, "error", err)
		}
	}
	return nil
}

// reactionsTo queues the reactions to one card with the live ones. Reactions of people whose roles are unknown
// do not count.
func (b *Bot) reactionsTo(ctx context.Context, c Card) error {
	in, err := b.channelOf(ctx, c.Channel)
	if err != nil {
		return err
	}
	for _, order := range []activate.Order{activate.Deny, activate.Approve} {
		list, err := callWithin(ctx, b, b.CallWait, "reactions", func(ctx context.Context) ([]platform.Reacted, error) {
			return b.can.reactions.ReactionsOf(ctx, in, c.Message, func(emoji string) bool {
				return activate.Ordered(room.Event{Kind: room.Reacted, Emoji: emoji, Added: true}, activate.On{Card: true}, room.Agent{}) == order
			})
		})
		if err != nil {
			return err
		}
		for _, r := range list {
			if r.By.Bot {
				continue
			}
			if in.Guild != room.Direct {
				who, err := b.Platform.Member(ctx, in.Guild, r.By)
				if err != nil || !who.Member {
					b.Log.Info("a reaction to a card is of somebody who is not to be found", "event", "reactions_failed", "message", c.Message, "error", err)
					continue
				}
				r.By = who
			}
			b.queue.put(r)
		}
	}
	return nil
}
