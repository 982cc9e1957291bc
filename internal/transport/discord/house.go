package discord

import (
	"context"
	"iter"
	"time"

	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/desk"
	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/route"
)

type threadID = chat.ThreadID

// House is the program as a connector needs it.
type House interface {
	Heart
	Desk
	Agents
	Journal
	Outbox
	Places
	Orders
	Keeping
	Names
	Talks
	Pins
	Files
}

// Item is what a watcher of a conversation sees: an event, or a live piece between two.
type Item struct {
	Event *chat.Event
	Live  chat.Live
}

// Heart runs conversations.
type Heart interface {
	// Arrive writes what came from the platform, once, and wakes whoever must answer.
	Arrive(ctx context.Context, a journal.Arrival) (journal.Arrived, error)
	// ArriveQuietly is Arrive for one of several that come at once: tell wakes, and is never nil.
	ArriveQuietly(ctx context.Context, a journal.Arrival) (done journal.Arrived, tell func(), err error)
	Watch(ctx context.Context, thread chat.ThreadID, after int64) iter.Seq2[Item, error]
	Abort(ctx context.Context, thread chat.ThreadID, by string, all bool) (bool, error)
	Steer(ctx context.Context, thread chat.ThreadID, s chat.Steered) (asPrompt bool, err error)
}

// Desk is where questions are answered.
type Desk interface {
	Approval(ctx context.Context, id string) (desk.Approval, error)
	Answer(ctx context.Context, id string, by chat.Principal, ok bool, note string) error
	// OpenCards are the questions of a bot that nobody has answered yet.
	OpenCards(ctx context.Context, bot string) ([]Card, error)
}

// Listener is an agent that hears in a channel, with the rules of its rooms.
type Listener struct {
	route.Listener
	Rules    activate.Rules
	MaxChars int // a message is cut there; 0: never
	Waiting  int // messages that may wait in one conversation; 0: as everywhere

	Roles     []string // that may order its past about; none: everybody
	Past      int      // messages of a room that it knows when it comes there
	PastChars int      // and how many characters of them
}

func (l Listener) isRoom() bool { return l.Routing == route.Room }

// Manner is how a conversation is shown.
type Manner struct {
	Room       bool   // it is a whole channel: other programs read what stands there
	ToolOutput bool   // each call and its result are posted
	Thinking   bool   // what the model thought is posted
	Name       string // of the agent, as those posts call it
	Footer     string // off, short or full
	// Price is what tokens cost, in billionths of a dollar; nil: not known.
	Price func(model string, u chat.Usage) int64
}

// Agents says who answers where.
type Agents interface {
	// Listeners are those who hear in a channel through a bot.
	Listeners(ctx context.Context, bot string, self room.Author, in room.Channel) ([]Listener, error)
	// Serves reports whether a bot speaks for the thread's agent.
	Serves(bot string, thread chat.ThreadID) bool
	// Manner is how a conversation is shown.
	Manner(thread chat.ThreadID) Manner
	// Row describes a conversation that begins.
	Row(ctx context.Context, thread chat.ThreadID, owner chat.Principal, title string) (journal.Thread, error)
}

// Files keeps what people attach, and what is still to be fetched of it.
type Files interface {
	// Keep lays a file into the workspace of a thread and gives what its agent is shown of
	// it: where it lies, and its picture or its words. A file that cannot be kept says so itself.
	Keep(ctx context.Context, thread chat.ThreadID, file chat.File, data []byte) (chat.Blocks, error)
	// Blob gives bytes that were kept.
	Blob(ctx context.Context, hash string) ([]byte, error)
	Remember(ctx context.Context, kind, key string, value []byte) error
	Memos(ctx context.Context, kind string) ([]journal.Memo, error)
	Forget(ctx context.Context, kind, key string) error
}

// Journal is the part of the store that is read.
type Journal interface {
	Thread(ctx context.Context, thread chat.ThreadID) (journal.Thread, error)
	ThreadsIn(ctx context.Context, place string, limit int) ([]journal.Thread, error)
	Event(ctx context.Context, thread chat.ThreadID, seq int64) (chat.Event, error)
	// EventNow is Event with the words that a message has now, after its edits.
	EventNow(ctx context.Context, thread chat.ThreadID, seq int64) (chat.Event, error)
	Snapshot(ctx context.Context, thread chat.ThreadID, codec string) (journal.Snapshot, error)
}

// Outbox is where wishes are written, and how far the conversations have been told.
type Outbox interface {
	outbox.Store
	Reader(ctx context.Context, name string, thread chat.ThreadID) (int64, error)
	// BehindSince are the threads that a reader has not read to their end, among those that have changed since a
	// mark and some others, and the next mark. Mark 0: among all.
	BehindSince(ctx context.Context, reader, transport string, mark int64, others []chat.ThreadID) ([]chat.ThreadID, int64, error)
	// Writes are two numbers that stay while nobody writes.
	Writes(ctx context.Context) (own, others int64, err error)
	Plan(ctx context.Context, p journal.Plan) error
	Wish(ctx context.Context, wishes ...journal.Desired) error
	// FailedSince are the things of a bot that were given up since a moment.
	FailedSince(ctx context.Context, platform, bot string, since time.Time) ([]journal.Outgoing, error)
	// PruneOutbox forgets some of what was shown to its end before a moment.
	PruneOutbox(ctx context.Context, platform, bot, reader string, before time.Time) (int64, error)
}

// Places knows what messages belong to, and how far channels have been read.
type Places interface {
	Places(ctx context.Context, platform, message string) ([]journal.Place, error)
	// ArrivalsUnder are the newest versions of what arrived under ids that begin alike.
	ArrivalsUnder(ctx context.Context, platform, bot, what, begins string) (map[string]int, error)
	Cursor(ctx context.Context, lane journal.Lane) (string, error)
	Cursors(ctx context.Context, platform, bot string) (map[string]string, error)
	MoveCursor(ctx context.Context, lane journal.Lane, message string) error
	// LastArrivals are the newest messages that were heard through a bot, the newest first.
	LastArrivals(ctx context.Context, platform, bot, kind string, limit int) ([]string, error)
}

// Orders is what people can order beside talking.
type Orders interface {
	GetSession(ctx context.Context, by command.Caller, id string) (command.Session, error)
	Costs(ctx context.Context, by command.Caller, q command.CostQuery) (command.Costs, error)
	// GuildCosts are what everybody spent in a guild. Other guilds' are nobody's business there.
	GuildCosts(ctx context.Context, by Giver, q command.CostQuery) (command.Costs, error)
	Audit(ctx context.Context, by command.Caller, q command.AuditQuery) (command.List[command.AuditLine], error)
}
