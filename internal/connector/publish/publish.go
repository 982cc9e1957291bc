// Package publish shows conversations on a chat platform. It turns the events of each into the messages, cards and reactions that people
// should see, and writes these to the outbox. It promises that everything in the journal is shown eventually, also after a crash between
// any two steps, and that nothing is shown twice.
package publish

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/connector/approvalcard"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room/mention"
)

// Item is what a watcher of a conversation receives: an event, or live text between two.
type Item struct {
	Event *chat.Event
	Live  chat.Live
}

// Display is how a conversation is shown.
type Display struct {
	Room       bool   // the conversation is a whole channel: other programs read its messages
	ToolOutput bool   // post each call and its result
	Thinking   bool   // post the model's thinking
	Name       string // the agent's name in those posts
	Footer     string // off, short or full
	// NotifyPeople notifies the people that the agent mentions; without it only programs are notified.
	NotifyPeople bool
	KeepDeleted  bool // the journal keeps the text of deleted messages
	// Price is the price of tokens in billionths of a dollar; nil: unknown.
	Price func(model string, u chat.Usage) int64
}

// Shown is where a conversation of another transport is shown: in a channel, not yet anywhere, or never.
type Shown struct {
	Channel string
	Later   bool // without a channel: there will be one
}

// Backend is the part of the program that conversations are published from.
type Backend interface {
	Store
	Watch(ctx context.Context, thread chat.ThreadID, after int64) iter.Seq2[Item, error]
	// Serves reports whether a bot posts for the thread's agent.
	Serves(bot string, thread chat.ThreadID) bool
	Display(thread chat.ThreadID) Display
	// Redact removes secrets from a text.
	Redact(text string) string
}

// Store stores wanted messages, and how far conversations were published.
type Store interface {
	Reader(ctx context.Context, name string, thread chat.ThreadID) (int64, error)
	// BehindSince returns the threads that a reader has not read completely, among those that have changed since a
	// mark and some others, and the next mark. Mark 0: among all.
	BehindSince(ctx context.Context, reader, transport string, mark int64, others []chat.ThreadID) ([]chat.ThreadID, int64, error)
	// Writes returns two numbers that stay the same while nobody writes.
	Writes(ctx context.Context) (own, others int64, err error)
	Plan(ctx context.Context, p journal.Plan) error
	SetDesired(ctx context.Context, desired ...journal.Desired) error
}

// Outbox delivers to the platform what was written for it.
type Outbox interface {
	Wake(lanes ...journal.Lane)
	Preview(lane journal.Lane, key string, body json.RawMessage)
}

// Options configure a publisher. Only ShownIn may be missing.
type Options struct {
	Bot      string // its name, part of its lanes
	Platform platform.Platform
	Backend  Backend
	Outbox   Outbox
	// ShownIn returns where this platform shows a conversation that is held elsewhere; nil: it shows none.
	ShownIn func(ctx context.Context, thread chat.ThreadID) (Shown, error)
	// Connected reports whether the bot knows who it is: before that nothing can be posted.
	Connected func() bool
	// Directory returns who and what can be named in a guild.
	Directory func(guild string) mention.Directory
	// Notifies returns whom a post mentions and notifies.
	Notifies func(guild, text string, people bool) (users []string)
	Retry    platform.Retry
	Log      *slog.Logger

	Typing   time.Duration // between two typing notices
	Preview  time.Duration // between two edits of a message that is being written
	Idle     time.Duration // after which a conversation without news is no longer watched
	CallWait time.Duration // how long one unanswered call delays others
}

// Publisher publishes the conversations that one bot serves.
type Publisher struct {
	Options
	transport string // the platform's name
	caps      platform.Caps
	cards     approvalcard.Writer
	typing    platform.Typing  // nil: the platform does not show typing
	threads   platform.Threads // nil: the platform has none
	work      sync.WaitGroup

	mu            sync.Mutex
	conversations map[chat.ThreadID]*conversation
	running       context.Context // ends with the bot; nil: it does not run
}

// New makes a publisher. It publishes nothing yet.
func New(o Options) *Publisher {
	p := &Publisher{Options: o, transport: o.Platform.Name(), caps: o.Platform.Caps(), conversations: map[chat.ThreadID]*conversation{}}
	p.cards = approvalcard.Writer{Platform: p.transport, Caps: p.caps}
	p.typing, _ = o.Platform.(platform.Typing)
	p.threads, _ = o.Platform.(platform.Threads)
	return p
}

// Start publishes until ctx ends. It may be called once.
func (p *Publisher) Start(ctx context.Context) {
	p.mu.Lock()
	p.running = ctx
	p.mu.Unlock()
	p.work.Go(func() { p.publishAll(ctx) })
}

// Wait waits for the end of everything that Start began. Its context must end, and nobody may call Wake any more.
func (p *Publisher) Wait() { p.work.Wait() }

// Wake publishes a conversation, unless that is already happening. It ends with the bot.
func (p *Publisher) Wake(ctx context.Context, thread chat.ThreadID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conversations[thread] != nil || p.running == nil || ctx.Err() != nil {
		return
	}
	ctx = p.running
	c := p.conversation(thread)
	p.conversations[thread] = c
	p.work.Go(func() {
		err := c.run(ctx)
		p.mu.Lock()
		delete(p.conversations, thread)
		p.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("a conversation could not be published; trying again", "event", "publish_failed", "thread", thread, "error", err)
		}
	})
}

// AskedBy reports whether somebody asked for a conversation's active run.
func (p *Publisher) AskedBy(thread chat.ThreadID, user string) bool {
	p.mu.Lock()
	c := p.conversations[thread]
	p.mu.Unlock()
	return c != nil && c.askedBy(user)
}

// Reader is the name under which publishing progress is stored. All
// bots of a platform share it: each conversation is published by one of them, and which one may change.
func (p *Publisher) Reader() string { return p.transport }

// lane is the queue of a channel's messages.
func (p *Publisher) lane(channel string) journal.Lane {
	return journal.Lane{Platform: p.transport, Bot: p.Bot, Channel: channel}
}

// sweepEvery limits how long a conversation that changed unnoticed (in another process, at a
// restart) stays unpublished.
const sweepEvery = 2 * time.Second

// publishAll looks for conversations with unpublished changes until ctx ends.
// It skips the search if the last one found nothing and nothing was written since.
func (p *Publisher) publishAll(ctx context.Context) {
	var seen [2]int64
	own := &sweep{publisher: p, transport: p.transport}
	tasks := &sweep{publisher: p, transport: chat.WorkTransport}
	done := false
	for {
		if p.Connected() {
			here, others, err := p.Backend.Writes(ctx)
			if now := [2]int64{here, others}; err != nil || !done || now != seen {
				done, seen = own.look(ctx), now
				done = (p.ShownIn == nil || tasks.look(ctx)) && done
			}
		}
		if !await.For(ctx, sweepEvery) {
			return
		}
	}
}

// maxBehind limits how many conversations one look wakes.
const maxBehind = 1000

// sweep tracks how far the journal was checked. The first look covers all
// conversations, every other one those that have changed since, or were behind.
type sweep struct {
	publisher *Publisher
	transport string
	mark      int64
	behind    []chat.ThreadID
}

// look wakes the conversations that are behind; true: none of ours was.
func (s *sweep) look(ctx context.Context) bool {
	p := s.publisher
	list, mark, err := p.Backend.BehindSince(ctx, p.Reader(), s.transport, s.mark, s.behind)
	if err != nil {
		if ctx.Err() == nil {
			p.Log.Warn("could not look for what is to be published", "event", "sweep_failed", "error", err)
		}
		return false
	}
	// Conversations that another bot serves stay with it as long as this program runs.
	s.mark, s.behind = mark, slices.DeleteFunc(list, func(t chat.ThreadID) bool { return !p.Backend.Serves(p.Bot, t) || !s.shown(ctx, t) })
	for _, thread := range s.behind[:min(len(s.behind), maxBehind)] {
		p.Wake(ctx, thread)
	}
	return len(s.behind) == 0
}

// shown reports whether a conversation has a place on this platform, or will have one.
func (s *sweep) shown(ctx context.Context, thread chat.ThreadID) bool {
	if s.transport == s.publisher.transport {
		return true
	}
	at, err := s.publisher.ShownIn(ctx, thread)
	if err != nil && ctx.Err() == nil {
		s.publisher.Log.Warn("could not find where a task is shown; trying again", "event", "task_place_failed", "thread", thread, "error", err)
	}
	return err != nil || at.Channel != "" || at.Later
}
