package discord

import (
	"context"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/room"
)

// patience is how long one thing that Discord does not answer, while it answers others, holds
// up whoever hears: a channel, a thread, a member that is broken there.
const patience = 30 * time.Second

// patiently is again for those behind whom others wait: it ends when only this call is not
// answered. Where nothing is, there is nothing to go on to, and it waits as long as it takes.
func patiently[T any](ctx context.Context, b *Bot, wait time.Duration, what string, call func(context.Context) (T, error)) (T, error) {
	for {
		within, cancel := context.WithTimeout(ctx, wait)
		got, err := again(within, b.rest, what, call)
		late := within.Err() != nil
		cancel()
		if err == nil || !late || ctx.Err() != nil || b.answered(ctx) {
			return got, err
		}
	}
}

// answered reports whether Discord says anything at all.
func (b *Bot) answered(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := b.rest.once.GetGateway(rest.WithCtx(ctx))
	return err == nil || !passing(err)
}

// readOn reads a channel's history from its cursor on. One that cannot be read now is left to the
// patrol, and those that follow are waited for less. An error is the end of ctx.
func (b *Bot) readOn(ctx context.Context, channel string, wait *time.Duration) error {
	_, err := b.readNews(ctx, channel, *wait)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	b.Log.Warn("a channel could not be read; looking again later", "event", "catch_up_failed", "channel", channel, "error", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.stirred[channel]; !there {
		b.stirred[channel] = stirring{time.Now()}
	}
	*wait = min(*wait, b.FirstBackoff)
	return nil
}

// lateGuilds is put behind a READY: who has not told of itself by then is not waited for.
type lateGuilds struct{}

// guildsLate reads direct messages on, whatever guilds are not to be had.
func (b *Bot) guildsLate(ctx context.Context) error {
	b.mu.Lock()
	n := len(b.guilds)
	clear(b.guilds)
	b.mu.Unlock()
	if n == 0 {
		return nil
	}
	b.Log.Warn("guilds have not told of themselves; going on without them", "event", "guilds_late", "guilds", n)
	return b.direct(ctx)
}

// guildGone takes a guild off the list of those that are waited for: it is gone, or not to be had.
func (b *Bot) guildGone(ctx context.Context, guild string) error {
	b.mu.Lock()
	waited := b.guilds[guild]
	delete(b.guilds, guild)
	b.mu.Unlock()
	if !waited {
		return nil
	}
	return b.direct(ctx)
}

// learnRoles asks for the roles of a guild that has not told of itself, because it is about to or
// because another shard hears of it: without their names nobody would have any.
func (b *Bot) learnRoles(ctx context.Context, guild string) error {
	if guild == "" || guild == room.Direct || b.world.hasRoles(guild) {
		return nil
	}
	roles, err := patiently(ctx, b, b.Patience, "roles", func(ctx context.Context) ([]discord.Role, error) {
		return b.rest.GetRoles(number(guild), rest.WithCtx(ctx))
	})
	if err != nil && !passing(err) {
		return nil // it is closed to us: nobody has any
	}
	for _, r := range roles {
		b.world.roleOf(guild, r)
	}
	return err
}
