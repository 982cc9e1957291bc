package platform

import (
	"context"

	"chorus/internal/room"
)

// What follows is optional: a platform implements it or does not.

// History reads what was said before. Without it, what is said while nobody is connected
// is lost, unless the platform delivers it again itself.
type History interface {
	// ReadAfter gives messages that follow an id, the oldest first; more: there are further ones.
	ReadAfter(ctx context.Context, channel, after string) (list []room.Message, more bool, err error)
	// ReadBefore gives messages that precede an id ("": the newest), the newest first, at
	// most limit; more: there may be older ones.
	ReadBefore(ctx context.Context, channel, before string, limit int) (list []room.Message, more bool, err error)
	Message(ctx context.Context, channel, id string) (room.Message, error)
}

// Threads opens threads below channels.
type Threads interface {
	// OpenOn opens a thread on a message and gives its channel; one that is there already is no error.
	OpenOn(ctx context.Context, channel, message, name string) (room.Channel, error)
	Open(ctx context.Context, channel, name string) (room.Channel, error)
}

// Pins lists pinned messages.
type Pins interface {
	Pins(ctx context.Context, in room.Channel) ([]room.Message, error)
}

// Reactions lists who reacted to a message, with the emoji for which want says so.
type Reactions interface {
	ReactionsOf(ctx context.Context, in room.Channel, message string, want func(emoji string) bool) ([]Reacted, error)
}

// Readers says whether somebody can read a channel's history themselves; in doubt not.
type Readers interface {
	MayRead(ctx context.Context, guild, channel, user string) (bool, error)
}

// Typing shows for some seconds that somebody writes. Failing is not worth an error.
type Typing interface {
	ShowTyping(ctx context.Context, channel string)
}

// Direct finds or opens the channel of direct messages with somebody. "": they have none.
type Direct interface {
	DirectChannel(ctx context.Context, user string) (string, error)
}

// Names sets the bot's name in a guild.
type Names interface {
	// Guilds are the channels that are known, by guild.
	Guilds() map[string][]room.Channel
	// Rename sets the name if it differs; false: it was that already.
	Rename(ctx context.Context, guild, name string) (bool, error)
}

// Channels makes and deletes channels for agents.
type Channels interface {
	ChannelsOf(ctx context.Context, guild string) ([]ChannelInfo, error)
	MakeChannel(ctx context.Context, c NewChannel) (room.Channel, error)
	DeleteChannel(ctx context.Context, id, reason string) error
}

// Managers knows who may manage a guild's channels, and archives them.
type Managers interface {
	// MayManageChannels says whether somebody could make and change channels themselves; in doubt not.
	MayManageChannels(ctx context.Context, guild, user string) (bool, error)
	// ArchiveChannel lets nobody write in a channel any more, which its name says from then on. One that is archived stays as it is.
	ArchiveChannel(ctx context.Context, id, reason string) error
}

// ChannelInfo is a channel in which people write.
type ChannelInfo struct {
	room.Channel
	Topic string
}

// NewChannel is a channel to be made.
type NewChannel struct {
	Guild, Name, Topic string
	Beside             string // the channel next to which it should be
	Reason             string // for the platform's own audit log
	Board              bool   // it is a board; a platform that has none makes another channel
}

// Downloads fetches what people attach.
type Downloads interface {
	// Download gives a file's bytes, at most limit; ErrTooLarge beyond that, ErrStale when its
	// address does not lead to it any more, a Refusal for what will never be had.
	Download(ctx context.Context, url string, limit int64) ([]byte, error)
}

// Links says where people find a message.
type Links interface {
	Link(guild, channel, message string) string
}

// Reconnects makes new connections, because the present ones report nothing. It does not wait.
type Reconnects interface {
	Reconnect()
}

// Commander takes the list of commands that people can choose from.
type Commander interface {
	Register(ctx context.Context, list []Command) error
}

// BotRoles names the role that a guild made for a bot's user, which people mention by
// mistake; "": there is none.
type BotRoles interface {
	BotRole(guild, user string) string
}
