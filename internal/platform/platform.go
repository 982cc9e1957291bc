// Package platform is what a chat platform implements to carry conversations: a connection
// that reports events, calls that post, edit and react, and the few facts that the
// neutral side (package connector) cannot know.
//
// It promises to be free of any platform's library. A platform that lacks a feature says
// so with Caps, or does not implement the optional interface, and the connector works
// without it. Package platformtest runs the same tests on every platform.
package platform

import (
	"context"
	"errors"
	"time"

	"chorus/internal/outbox"
	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// Caps are the features of a platform. The zero value is a platform that only posts text.
type Caps struct {
	Label   string        // its name for people, as in "Discord did not answer"
	MaxText int           // characters of a message; 0: 2,000
	Nonce   time.Duration // within this time, sending again with the same nonce is sure to create only one message
	Late    time.Duration // how long an abandoned call may still take effect

	Edits     bool // messages can be edited: a run shows its status while it works
	Reactions bool // messages can carry reactions
	Buttons   bool // messages can carry buttons
	Forms     bool // buttons can open forms: see FormOf
	// MaxPanel is the maximum number of characters of a panel; 0: there are no panels. Every bot of
	// ours recognizes panels, also in another process, as messages that are not part of a
	// conversation. So a status can be shown in rooms.
	MaxPanel int
	Hints    Hints
}

// Hints tell people what to do on this platform. Each is a sentence or empty.
type Hints struct {
	Write       string // how to let the bot write in a channel
	OpenThread  string // how to let it open threads
	MakeChannel string // how to let it create channels
	CopyLink    string // how to get a link to a message
	Rename      string // how to let it change its name
}

// Platform is one bot account. Its methods are called from several goroutines.
//
// Errors are an *outbox.Trouble or an *outbox.RateLimited if the platform said what is
// wrong; any other error means that the outcome is unknown. No method retries by
// itself except after a rate limit: the caller knows how long it can wait.
//
// Message ids are unique on the whole platform, and Older orders those of one channel. A
// platform with other ids composes them, for instance from channel and
// number. A thread that is opened on a message is a channel with the id of that message. In a
// channel that is a board (room.Channel) a message with an Entry becomes a post: a thread below
// that channel, which has the id of the message and starts with it.
type Platform interface {
	outbox.Platform

	// Name is the first part of the ids of its threads, and never changes.
	Name() string
	Caps() Caps
	// Run stays connected until ctx ends, and reports to the sink. It only returns errors that
	// reconnecting cannot fix. It is called once.
	Run(ctx context.Context, to Sink) error

	// Older reports whether one message got its id before another of the same channel.
	Older(a, b string) bool
	// Before and After are ids directly next to a message's own: no other message has them,
	// and there is none in between.
	Before(id string) string
	After(id string) string

	// Channel finds a channel, asking the platform if necessary. Known does not ask.
	Channel(ctx context.Context, id string) (room.Channel, error)
	Known(id string) (room.Channel, bool)
	// Member returns somebody with their current roles. No error and a false Member mean that
	// they do not exist or are hidden from us.
	Member(ctx context.Context, guild string, who room.Author) (room.Author, error)
	// Directory returns the roles and channels that can be named in a guild; the connector adds people.
	Directory(guild string) mention.Directory
}

// Sink receives a platform's events. The connector is one.
type Sink interface {
	// Take queues an event after earlier ones. It never blocks.
	Take(Event)
	// Journalled waits until everything taken before is in the journal, for platforms that
	// confirm deliveries. An error means that something is not: do not confirm.
	Journalled(ctx context.Context) error
	// Press and Invoke handle a button and a command; Complete suggests values for somebody who is
	// typing. The platform has already acknowledged them if necessary.
	Press(ctx context.Context, p Press) Answer
	// Form returns the form that a button opens (see FormOf), with its current values. It is called before the
	// press is acknowledged, and takes no longer than ctx.
	Form(ctx context.Context, p Press) (Form, bool)
	Invoke(ctx context.Context, i Invocation) Answer
	Complete(ctx context.Context, i Invocation, option string) []Choice
	// Speaks reports whether a command becomes a message. It is not acknowledged before Invoke
	// has answered, which takes no longer than ctx: an acknowledged command is never lost.
	Speaks(path string) bool
}

// Event is one of the types below.
type Event interface{ event() }

// Connected is the first event of every connection.
type Connected struct {
	Self    room.Author
	Resumed bool // the platform continues where it stopped: nothing was missed
}

// Joined is a guild that the bot is in. It comes with every connection, before the guild's
// channels. The connector greets new guilds.
type Joined struct {
	Guild, Name string
	At          time.Time // when the bot was added
	Greet       string    // the channel for newcomers, or the first in which the bot may write; "": there is none
}

// Listed names existing channels. Complete: all channels have been listed since the last
// Connected, as far as the platform lists any.
type Listed struct {
	Channels []Listing
	Complete bool
}

// Listing is a channel with its newest message.
type Listing struct {
	room.Channel
	Newest string // the id of its newest message, or an id older than any it will have
	Made   string // an id from the time of its creation; "": unknown
}

// Opened is a channel or thread that was just created.
type Opened struct{ Channel room.Channel }

// Removed is a channel or thread that was deleted, with all messages in it and below it.
type Removed struct{ Channel string }

// Said is a new message.
type Said struct{ Message room.Message }

// Edited is a message that was changed. Without an edit time only its decoration changed.
type Edited struct{ Message room.Message }

// Deleted are messages that were deleted.
type Deleted struct {
	Channel string
	IDs     []string
}

// Reacted is a reaction that was added or removed.
type Reacted struct {
	In      room.Channel
	Message string
	Emoji   string
	By      room.Author
	Added   bool
}

// Cleared means that all reactions of a message, or all with one emoji, were removed at once.
type Cleared struct {
	In      room.Channel
	Message string
	Emoji   string // "": all
}

// Pinned means that the pins of a channel changed.
type Pinned struct{ Channel string }

// Missed means that something happened in a channel that the platform could not report.
type Missed struct{ Channel, Message string }

func (Connected) event() {}
func (Joined) event()    {}
func (Listed) event()    {}
func (Opened) event()    {}
func (Removed) event()   {}
func (Said) event()      {}
func (Edited) event()    {}
func (Deleted) event()   {}
func (Reacted) event()   {}
func (Cleared) event()   {}
func (Pinned) event()    {}
func (Missed) event()    {}

// Passing reports whether a retry may succeed.
func Passing(err error) bool {
	var t *outbox.Trouble
	return !errors.As(err, &t) || t.Why == outbox.Temporary
}

// Closed reports whether something does not exist, or is hidden from us.
func Closed(err error) bool {
	return Is(err, outbox.Forbidden) || Is(err, outbox.Gone) || Is(err, outbox.Nowhere)
}

// Is reports whether an error is an outbox.Trouble of one kind.
func Is(err error, why outbox.Why) bool {
	var t *outbox.Trouble
	return errors.As(err, &t) && t.Why == why
}
