// Package connector is the part that all chat platforms share: which
// conversation a message belongs to, who answers, what is shown of a run, and how both
// survive a lost connection or a crash.
//
// It promises not to know any platform by name, or any of its types.
package connector

import (
	"context"
	"iter"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/connector/publish"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/outbox"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/pins"
	"chorus/internal/room/route"
)

// Backend is the program as a connector needs it: one small interface per concern, none
// of which may be nil. Executor executes operations.
type Backend struct {
	Runner
	Approver
	Agents
	Journal
	Outbox
	Openings
	ReadState
	operation.Executor
	Admin
	BotNames
	Conversations
	Pins
	Files
}

// Runner runs conversations.
type Runner interface {
	// Arrive stores what came from the platform, once, and wakes those who must answer.
	Arrive(ctx context.Context, a journal.Arrival) (journal.Arrived, error)
	// ArriveQuietly is Arrive for one of several arrivals that belong together: wake is never nil, and
	// the caller calls it when all of them are stored.
	ArriveQuietly(ctx context.Context, a journal.Arrival) (done journal.Arrived, wake func(), err error)
	Watch(ctx context.Context, thread chat.ThreadID, after int64) iter.Seq2[publish.Item, error]
	Abort(ctx context.Context, thread chat.ThreadID, by string, all bool) (bool, error)
}

// Approver handles the approvals that runs wait for.
type Approver interface {
	Approval(ctx context.Context, id string) (approval.Approval, error)
	Approvals(ctx context.Context, f approval.Filter) ([]approval.Approval, error)
	Answer(ctx context.Context, id string, by chat.Principal, ok bool, note string) error
	// OpenCards are a bot's messages for approvals that are still pending.
	OpenCards(ctx context.Context, bot string) ([]Card, error)
	// ApprovalDetails returns everything known about an approval.
	ApprovalDetails(ctx context.Context, id string) (operations.Approval, error)
}

// Card is the message for a pending approval.
type Card struct{ Channel, Message string }

// Listener is an agent that reads a channel, with the rules of its rooms.
type Listener struct {
	route.Listener
	Rules    activate.Rules
	MaxChars int // messages are cut to this length; 0: never
	Waiting  int // prompts that may wait in one conversation; 0: the default

	Blocked      []string      // ids or user names of people it ignores
	Cooldown     time.Duration // minimum time between two answered messages of one person; 0: none
	Roles        []string      // may use .history; none: everybody
	History      int           // how many earlier messages of a room it sees when it joins
	HistoryChars int           // and how many characters of them; 0: no limit
}

// IsRoom reports whether the whole channel is one conversation.
func (l Listener) IsRoom() bool { return l.Routing == route.Room }

// Agents decides who answers where.
type Agents interface {
	// Listeners are the agents that read a channel through a bot.
	Listeners(ctx context.Context, bot string, self room.Author, in room.Channel) ([]Listener, error)
	// Serves reports whether a bot posts for the thread's agent.
	Serves(bot string, thread chat.ThreadID) bool
	Display(thread chat.ThreadID) publish.Display
	// Greets reports whether a bot introduces itself in new places.
	Greets(bot string) bool
	// NewThread describes a conversation that is about to start.
	NewThread(ctx context.Context, thread chat.ThreadID, owner chat.Principal, title string) (journal.Thread, error)
}

// Files stores attachments, and what is still to be downloaded.
type Files interface {
	// SaveFile puts a file into the workspace of a thread and returns what its agent sees
	// of it: its path, and its image or its text.
	SaveFile(ctx context.Context, thread chat.ThreadID, file chat.File, data []byte) (chat.Blocks, error)
	// CachedImage is a picture fetched from an address before; CacheImage stores one.
	CachedImage(address string) ([]byte, bool)
	CacheImage(address string, data []byte)
	Blob(ctx context.Context, hash string) ([]byte, error)
	Remember(ctx context.Context, kind, key string, value []byte) error
	Memos(ctx context.Context, kind string) ([]journal.Memo, error)
	Forget(ctx context.Context, kind, key string) error
}

// Journal is the part of the store that the connector reads.
type Journal interface {
	Thread(ctx context.Context, thread chat.ThreadID) (journal.Thread, error)
	ThreadsIn(ctx context.Context, place string, limit int) ([]journal.Thread, error)
	Event(ctx context.Context, thread chat.ThreadID, seq int64) (chat.Event, error)
	// EventNow is Event with a message's text after its edits.
	EventNow(ctx context.Context, thread chat.ThreadID, seq int64) (chat.Event, error)
}

// Outbox stores wanted messages, and how far conversations were published.
type Outbox interface {
	outbox.Store
	publish.Store
	// FailedSince returns the rows of a bot that were given up since a time.
	FailedSince(ctx context.Context, platform, bot string, since time.Time) ([]journal.Outgoing, error)
	// PruneOutbox deletes some of the rows that were delivered before a time.
	PruneOutbox(ctx context.Context, platform, bot, reader string, before time.Time) (int64, error)
}

// Openings are conversations that start with words of ours.
type Openings interface {
	// PlaceMessage records that a posted message starts a conversation.
	PlaceMessage(ctx context.Context, lane journal.Lane, key string, thread chat.ThreadID, seq int64) error
	// Opened reports the result of an opening: its thread and the prompt there, or why there is none.
	Opened(ctx context.Context, key string, thread chat.ThreadID, seq int64, why string) error
}

// ReadState knows which threads messages belong to, and how far channels have been read.
type ReadState interface {
	Places(ctx context.Context, platform, message string) ([]journal.Place, error)
	// ArrivalsUnder returns the newest versions of arrivals under ids with a common prefix.
	ArrivalsUnder(ctx context.Context, platform, bot, what, prefix string) (map[string]int, error)
	Cursor(ctx context.Context, lane journal.Lane) (string, error)
	Cursors(ctx context.Context, platform, bot string) (map[string]string, error)
	// MoveCursor moves a cursor if it is still at from ("": there is none yet); false: it is not.
	MoveCursor(ctx context.Context, lane journal.Lane, from, to string) (bool, error)
	// LastArrivals returns the newest messages that came through a bot, newest first.
	LastArrivals(ctx context.Context, platform, bot, kind string, limit int) ([]string, error)
}

// Pins stores pinned configuration of channels.
type Pins interface {
	// KeepPins takes all .config messages that are pinned in a channel, and returns their
	// problems. Of several bots only one gets them; the others get nothing.
	KeepPins(ctx context.Context, bot string, in room.Channel, list []room.Message) ([]pins.Trouble, error)
	// Recall returns what was remembered; nil if nothing was.
	Recall(ctx context.Context, kind, key string) ([]byte, error)
}

// BotNames returns the names of bots.
type BotNames interface {
	// BotName is the name for a bot in a guild with these channels; "": do not change it.
	BotName(ctx context.Context, bot, guild string, channels []room.Channel) string
	// Reloads sends when the configuration was reloaded, until ctx ends.
	Reloads(ctx context.Context) <-chan struct{}
}

// Refusal is an error whose text is written for people and models.
type Refusal string

func (r Refusal) Error() string { return string(r) }
