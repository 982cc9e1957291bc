package connector

import (
	"cmp"
	"context"

	"chorus/internal/await"
	"chorus/internal/outbox"
	"chorus/internal/platform"
)

// NamesChanged updates our names in guilds to the settings. It does not block.
func (b *Bot) NamesChanged() { await.Notify(b.renames) }

// maxName is the maximum length of a name.
const maxName = 32

// followNames keeps our name in each guild the same as the agent's inner name. It sets each
// name only once, so a manual change is not overruled.
func (b *Bot) followNames(ctx context.Context) {
	if b.can.names == nil {
		return
	}
	reloads := b.Backend.Reloads(ctx)
	done := map[string]string{} // by guild
	for {
		select {
		case <-ctx.Done():
			return
		case <-reloads:
		case <-b.renames:
		}
		for guild, channels := range b.can.names.Guilds() {
			want := []rune(b.Backend.BotName(ctx, b.Name, guild, channels))
			name := string(want[:min(len(want), maxName)])
			if name != "" && done[guild] != name && b.rename(ctx, guild, name) {
				done[guild] = name
			}
		}
	}
}

// rename sets our name if it differs. false: retry later.
func (b *Bot) rename(ctx context.Context, guild, name string) bool {
	set, err := Again(ctx, b, "name", func(ctx context.Context) (bool, error) { return b.can.names.Rename(ctx, guild, name) })
	switch {
	case err == nil && set:
		b.Log.Info("called as the agent is", "event", "nickname_set", "guild", guild, "name", name)
	case err == nil:
	case ctx.Err() != nil:
		return false
	case platform.Is(err, outbox.Forbidden):
		b.Log.Warn("not allowed to change my name; "+cmp.Or(b.caps.Hints.Rename, "name me yourself"), "event", "nickname_refused", "guild", guild, "name", name)
	default:
		b.Log.Warn("could not change my name", "event", "nickname_failed", "guild", guild, "name", name, "error", err)
	}
	return true
}
