package platform

import (
	"context"

	"chorus/internal/room"
)

// The following interfaces are optional.

// History reads earlier messages. Without it, messages sent while nobody is connected
// are lost, unless the platform delivers them again itself.
type History interface {
	// ReadAfter returns messages that follow an id, the oldest first. more: there are further ones.
	ReadAfter(ctx context.Context, channel, after string) (list []room.Message, more bool, err error)
	// ReadBefore returns messages that precede an id ("": the newest), the newest first, at
	// most limit. more: there may be older ones.
	ReadBefore(ctx context.Context, channel, before string, limit int) (list []room.Message, more bool, err error)
	Message(ctx context.Context, channel, id string) (room.Message, error)
}

// Threads opens threads below channels.
type Threads interface {
	// OpenOn opens a thread on a message and returns its channel. An existing thread is not an error.
	OpenOn(ctx context.Context, channel, message, name string) (room.Channel, error)
	Open(ctx context.Context, channel, name string) (room.Channel, error)
}

// Pins lists pinned messages.
type Pins interface {
	Pins(ctx context.Context, in room.Channel) ([]room.Message, error)
}

// Reactions lists who reacted to a message, for the emoji that want accepts.
type Reactions interface {
	ReactionsOf(ctx context.Context, in room.Channel, message string, want func(emoji string) bool) ([]Reacted, error)
}

// Readers reports whether somebody can read a channel's history themselves; if in doubt, not.
type Readers interface {
	MayRead(ctx context.Context, guild, channel, user string) (bool, error)
}

// Typing shows for some seconds that somebody is typing. It reports no errors.
type Typing interface {
	ShowTyping(ctx context.Context, channel string)
}

// Direct finds or opens the channel for direct messages with somebody. "": they have none.
type Direct interface {
	DirectChannel(ctx context.Context, user string) (string, error)
}

// Names sets the bot's name in a guild.
type Names interface {
	// Guilds are the known channels, by guild.
	Guilds() map[string][]room.Channel
	// Rename sets the name if it differs; false: it did not differ.
	Rename(ctx context.Context, guild, name string) (bool, error)
}

// Channels creates and deletes channels for agents.
type Channels interface {
	ChannelsOf(ctx context.Context, guild string) ([]ChannelInfo, error)
	MakeChannel(ctx context.Context, c NewChannel) (room.Channel, error)
	DeleteChannel(ctx context.Context, id, reason string) error
}

// Managers knows who may manage a guild's channels, and archives them.
type Managers interface {
	// MayManageChannels reports whether somebody could create and change channels themselves; if in doubt, not.
	MayManageChannels(ctx context.Context, guild, user string) (bool, error)
	// ArchiveChannel makes a channel read-only and marks that in its name. An archived channel stays as it is.
	ArchiveChannel(ctx context.Context, id, reason string) error
}

// ChannelInfo is a channel in which people write.
type ChannelInfo struct {
	room.Channel
	Topic string
}

// NewChannel is a channel to create.
type NewChannel struct {
	Guild, Name, Topic string
	Beside             string // the channel next to it
	Reason             string // for the platform's own audit log
	Board              bool   // a board; a platform without boards makes an ordinary channel
}

// Downloads fetches what people attach.
type Downloads interface {
	// Download returns a file's bytes, at most limit; ErrTooLarge beyond that, ErrStale if its
	// address no longer works, a Refusal for a file that can never be fetched.
	Download(ctx context.Context, url string, limit int64) ([]byte, error)
}

// Links returns the address of a message for people.
type Links interface {
	Link(guild, channel, message string) string
}

// Reconnects replaces connections that report nothing. It does not block.
type Reconnects interface {
	Reconnect()
}

// Commander accepts the list of commands that people can choose from.
type Commander interface {
	Register(ctx context.Context, list []Command) error
}

// BotRoles returns the role that a guild created for a bot's user, which people mention by
// mistake; "": there is none.
type BotRoles interface {
	BotRole(guild, user string) string
}
