package discord

import "context"

// renewed has what follows from settings follow them: names.
func (b *Bot) renewed(context.Context) {}
