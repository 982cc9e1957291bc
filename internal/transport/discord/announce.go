package discord

import (
	"context"
	"encoding/json"

	"chorus/internal/journal"
)

// Announce says something in a channel that belongs to no conversation. The same key is
// said once, however often it is asked for.
func (b *Bot) Announce(ctx context.Context, channel, key, text string) error {
	body, _ := json.Marshal(post{Text: b.Backend.Redact(text)}) // strings only
	return b.wish(ctx, channel, journal.Desired{Lane: b.lane(channel), Key: key, Body: body, Final: true})
}
