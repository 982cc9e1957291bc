package discord

import (
	"context"
	"net/http"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/room"
)

// renewed has what follows from settings follow them. It never waits.
func (b *Bot) renewed(context.Context) {
	select {
	case b.names <- struct{}{}:
	default: // it rings already
	}
}

// longestNick is what Discord takes.
const longestNick = 32

// followNames keeps our name in each guild in step with the agent's inner name. It is set
// once for each name: whoever changes it by hand is not argued with.
func (b *Bot) followNames(ctx context.Context) {
	renewals := b.Backend.Reloads(ctx)
	done := map[string]string{} // by guild
	for {
		select {
		case <-ctx.Done():
			return
		case <-renewals:
		case <-b.names:
		}
		for guild, channels := range b.world.guilds() {
			want := []rune(b.Backend.BotName(ctx, b.Name, guild, channels))
			name := string(want[:min(len(want), longestNick)])
			if name != "" && done[guild] != name && b.callMyself(ctx, guild, name) {
				done[guild] = name
			}
		}
	}
}

// callMyself sets our nickname where it differs. false: it is worth another try.
func (b *Bot) callMyself(ctx context.Context, guild, name string) bool {
	me := b.me()
	member, err := again(ctx, b.rest, "own member", func(ctx context.Context) (*discord.Member, error) {
		return b.rest.GetMember(number(guild), number(me.ID), rest.WithCtx(ctx))
	})
	if err == nil {
		if now := member.Nick; now != nil && *now == name || now == nil && me.Name == name {
			return true
		}
		_, err = again(ctx, b.rest, "nickname", func(ctx context.Context) (*discord.Member, error) {
			return b.rest.UpdateCurrentMember(number(guild), discord.CurrentMemberUpdate{Nick: &name}, rest.WithCtx(ctx), rest.WithReason("innerName"))
		})
	}
	switch {
	case err == nil:
		b.Log.Info("called as the agent is", "event", "nickname_set", "guild", guild, "name", name)
	case ctx.Err() != nil:
		return false
	case status(err) == http.StatusForbidden:
		b.Log.Warn("may not change my nickname; give my role the permission Change Nickname, or name me yourself", "event", "nickname_refused", "guild", guild, "name", name)
	default:
		b.Log.Warn("could not change my nickname", "event", "nickname_failed", "guild", guild, "name", name, "error", err)
	}
	return true
}

// guilds are the channels that are known, by guild.
func (w *world) guilds() map[string][]room.Channel {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string][]room.Channel{}
	for _, c := range w.channels {
		if c.Guild != "" && c.Guild != room.Direct {
			out[c.Guild] = append(out[c.Guild], c)
		}
	}
	return out
}
