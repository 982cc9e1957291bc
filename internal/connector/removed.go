package connector

import (
	"context"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// Deleting a channel or thread deletes every message in it. So people's messages there are forgotten, like
// single deleted messages, and the conversations that were held there are deleted.

// removals is the kind of memo for deleted channels that are not handled yet.
func (b *Bot) removals() string { return "removed/" + b.transport + "/" + b.Name }

// removed records that a channel was deleted, and handles it without delaying other channels.
func (b *Bot) removed(ctx context.Context, channel string) error {
	if err := b.Backend.Remember(ctx, b.removals(), channel, []byte("{}")); err != nil {
		return err
	}
	b.upToDate(channel)
	b.inBackground(b.removeAll)
	return nil
}

// whatRemoved is the kind of an arrival that records that a deleted channel was handled.
const whatRemoved = "removed"

// vanished is removed for a channel that the platform no longer knows, because it was deleted while nobody was connected.
func (b *Bot) vanished(ctx context.Context, channel string) error {
	done, err := b.Backend.ArrivalsUnder(ctx, b.transport, b.Name, whatRemoved, channel)
	if err != nil {
		return err
	}
	if _, before := done[channel]; before {
		return nil
	}
	// Erased messages do not come back, so ask once more.
	_, err = callWithin(ctx, b, b.CallWait, "channel", func(ctx context.Context) (room.Channel, error) { return b.Platform.Channel(ctx, channel) })
	if !platform.Is(err, outbox.Nowhere) {
		return ctx.Err()
	}
	return b.removed(ctx, channel)
}

// removeAll handles the deleted channels. The next recheck retries failures.
func (b *Bot) removeAll(ctx context.Context) {
	b.removing.Lock()
	defer b.removing.Unlock()
	memos, err := b.Backend.Memos(ctx, b.removals())
	for _, memo := range memos {
		whole, rerr := b.removeConversations(ctx, memo.Key)
		if rerr == nil && whole {
			_, rerr = b.Backend.Arrive(ctx, journal.Arrival{Platform: b.transport, Bot: b.Name, What: whatRemoved, PlatformID: memo.Key})
		}
		if rerr == nil && whole {
			rerr = b.Backend.Forget(ctx, b.removals(), memo.Key)
		}
		if rerr != nil {
			err = rerr
		}
	}
	if err != nil && ctx.Err() == nil {
		b.Log.Warn("what was said in a deleted channel is not forgotten yet", "event", "removal_failed", "error", err)
	}
}

// removeConversations forgets people's messages in a channel, and deletes the conversations that were held there. It may be
// repeated. false: something is still to be done.
func (b *Bot) removeConversations(ctx context.Context, channel string) (bool, error) {
	held, err := b.Backend.HeldIn(ctx, channel)
	if err != nil {
		return false, err
	}
	whole := true
	for _, thread := range held {
		if !b.Backend.Serves(b.Name, thread) {
			continue // another bot of ours is told, too
		}
		if err := b.messagesDeleted(ctx, thread, channel); err != nil {
			return false, err
		}
		if b.Backend.Display(thread).KeepDeleted {
			continue
		}
		published, err := b.Backend.Reader(ctx, b.publisher.Reader(), thread)
		if err != nil {
			return false, err
		}
		done, err := b.Backend.DeletedOnPlatform(ctx, thread, published)
		if err != nil {
			return false, err
		}
		whole = whole && done
	}
	// In a thread that was opened on an answer people continue a conversation of the parent channel, which stays.
	places, err := b.Backend.Places(ctx, b.transport, channel)
	if err != nil {
		return false, err
	}
	for _, p := range places {
		if p.Ours && b.Backend.Serves(b.Name, p.Thread) {
			if err := b.messagesDeleted(ctx, p.Thread, channel); err != nil {
				return false, err
			}
			if err := b.answersDeleted(ctx, p.Thread, channel); err != nil {
				return false, err
			}
		}
	}
	return whole, nil
}

// answersDeleted informs a remaining conversation that its agent's messages in a channel were deleted.
func (b *Bot) answersDeleted(ctx context.Context, thread chat.ThreadID, channel string) error {
	ids, err := b.Backend.AnswersIn(ctx, thread, channel)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := b.answerDeleted(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// messagesDeleted informs everybody who received a conversation's messages from a channel that they were deleted.
func (b *Bot) messagesDeleted(ctx context.Context, thread chat.ThreadID, channel string) error {
	ids, err := b.Backend.MessagesIn(ctx, thread, channel)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := b.messageDeleted(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
