// Package platform is what a chat platform implements to carry conversations: a connection
// that reports what happened, calls that post, edit and react, and the few facts the
// neutral side (package connector) cannot know.
//
// It promises to be free of any platform's library. A platform that lacks something says
// so with Caps, or does not implement the optional interface, and the connector does
// without. Package platformtest asks every platform the same questions.
package platform

import (
	"context"
	"errors"
	"time"

	"chorus/internal/outbox"
	"chorus/internal/room"
	"chorus/internal/room/mention"
)

// Caps is what a platform can do. The zero value is one that posts text and nothing else.
type Caps struct {
	Label   string        // what people call it, as in "Discord did not answer"
	MaxText int           // characters of a message; 0: 2,000
	Nonce   time.Duration // a message sent again with the same nonce within it is surely made once
	Late    time.Duration // a call that was given up may still be done for so long

	Edits     bool // messages can be edited: a run shows its status while it works
	Reactions bool // messages can carry reactions
	Buttons   bool // messages can carry buttons
	Forms     bool // buttons can open forms: see FormOf
	// MaxPanel is how many characters a panel may have; 0: there are none. Panels are messages
	// that every bot of ours knows again, also in another process, as no words of a
	// conversation: so a status can be shown in rooms.
	MaxPanel int
	Hints    Hints
}

// Hints tell people what to do on this platform. Each is a sentence or empty.
type Hints struct {
	Write       string // how to let the bot write in a channel
	OpenThread  string // how to let it open threads
	MakeChannel string // how to let it make channels
	CopyLink    string // how to get a link to a message
	Rename      string // how to let it change its name
}

// Platform is one bot account. Its methods are called from several goroutines.
//
// Errors are an *outbox.Trouble or an *outbox.RateLimited where the platform said what is
// wrong; any other error means that nobody knows what happened. No method tries again by
// itself except to wait for a rate limit: the caller knows how long it can wait.
//
// Message ids are unique on the whole platform, and Older orders those of one channel. A
// platform whose own ids are not like that composes them, for instance of channel and
// number. A thread that is opened on a message is a channel with the id of that message. In a
// channel that is a board (room.Channel) a message with an Entry becomes a post: a thread below
// that channel, which has the id of the message and begins with it.
type Platform interface {
	outbox.Platform

	// Name is the first part of the ids of its threads, and never changes.
	Name() string
	Caps() Caps
	// Run stays connected until ctx ends, and reports to the sink. An error is one that
	// connecting again cannot repair. It is called once.
	Run(ctx context.Context, to Sink) error

	// Older reports whether one message was given its id before another of the same channel.
	Older(a, b string) bool
	// Before and After are ids directly next to a message's own: no other message has them,
	// and none is between them and it.
	Before(id string) string
	After(id string) string

	// Channel finds a channel, asking the platform if it must. Known does not ask.
	Channel(ctx context.Context, id string) (room.Channel, error)
	Known(id string) (room.Channel, bool)
	// Member is somebody with the roles they have now. Without an error and without Member
	// they are not there, or hidden from us.
	Member(ctx context.Context, guild string, who room.Author) (room.Author, error)
	// Directory is which roles and channels can be named in a guild; the connector adds people.
	Directory(guild string) mention.Directory
}

// Sink takes what a platform reports. The connector is one.
type Sink interface {
	// Take queues an event behind those before it. It never waits.
	Take(Event)
	// Journalled waits until everything taken before is in the journal, for platforms that
	// confirm what they delivered. An error means that something is not: do not confirm.
	Journalled(ctx context.Context) error
	// Press and Invoke carry out a button and a command; Complete proposes values for what
	// somebody is typing. The platform has acknowledged them already where it must.
	Press(ctx context.Context, p Press) Answer
	// Form is the form that a button opens (see FormOf), with what stands in it already. It is asked for before the
	// press is acknowledged, and takes no longer than ctx.
	Form(ctx context.Context, p Press) (Form, bool)
	Invoke(ctx context.Context, i Invocation) Answer
	Complete(ctx context.Context, i Invocation, option string) []Choice
	// Speaks reports a command that becomes a message. It is not acknowledged before Invoke
	// has answered, which takes no longer than ctx: what was acknowledged is never lost.
	Speaks(path string) bool
}

// Event is one of the types below.
type Event interface{ event() }

// Connected is the first event of a connection, and of every later one.
type Connected struct {
	Self    room.Author
	Resumed bool // the platform goes on where it stopped: nothing was missed
}

// Joined is a guild that the bot is in. It comes with every connection, in front of the guild's
// channels; the connector greets where it is new.
type Joined struct {
	Guild, Name string
	At          time.Time // when the bot was added
	Greet       string    // the channel for newcomers, or the first in which the bot may write; "": there is none
}

// Listed names channels that exist. Complete: all of them have been named since the last
// Connected, as far as the platform names any.
type Listed struct {
	Channels []Listing
	Complete bool
}

// Listing is a channel with how far it goes.
type Listing struct {
	room.Channel
	Newest string // the id of its newest message, or one that is older than any it will have
	Made   string // an id from the moment it was made; "": not known
}

// Opened is a channel or thread that was made just now.
type Opened struct{ Channel room.Channel }

// Removed is a channel or thread that was deleted, with all that was said in it and below it.
type Removed struct{ Channel string }

// Said is a new message.
type Said struct{ Message room.Message }

// Edited is a message that was changed. Without a time of the edit only its decoration was.
type Edited struct{ Message room.Message }

// Deleted are messages that were taken away.
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

// Cleared are all reactions of a message that were removed at once, or all with one emoji.
type Cleared struct {
	In      room.Channel
	Message string
	Emoji   string // "": all
}

// Pinned says that the pins of a channel changed.
type Pinned struct{ Channel string }

// Missed says that something happened in a channel which the platform could not report.
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

// Passing reports whether an error may be gone at the next try.
func Passing(err error) bool {
	var t *outbox.Trouble
	return !errors.As(err, &t) || t.Why == outbox.Temporary
}

// Closed reports that something is not there, or not for us.
func Closed(err error) bool {
	return Is(err, outbox.Forbidden) || Is(err, outbox.Gone) || Is(err, outbox.Nowhere)
}

// Is reports whether an error is a trouble of one sort.
func Is(err error, why outbox.Why) bool {
	var t *outbox.Trouble
	return errors.As(err, &t) && t.Why == why
}
