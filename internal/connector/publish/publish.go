// Package publish shows conversations on a chat platform: it folds what happens in each into the messages, cards and reactions that people
// should see, and writes these into the outbox. It promises that whatever the journal has is shown in the end, also after a crash between
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

	"chorus/internal/chat"
	"chorus/internal/connector/approvalcard"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room/mention"
)

// Item is what a watcher of a conversation sees: an event, or live text between two.
type Item struct {
	Event *chat.Event
	Live  chat.Live
}

// Display is how a conversation is shown.
type Display struct {
	Room       bool   // the conversation is a whole channel: other programs read what is posted there
	ToolOutput bool   // each call and its result are posted
	Thinking   bool   // what the model thought is posted
	Name       string // of the agent, in those posts
	Footer     string // off, short or full
	// NotifyPeople: those whom the agent mentions are notified; without it only programs are.
	NotifyPeople bool
	KeepDeleted  bool // the journal keeps the words of deleted messages
	// Price is what tokens cost, in billionths of a dollar; nil: not known.
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

// Store is where wanted messages are written, and how far conversations were published.
type Store interface {
	Reader(ctx context.Context, name string, thread chat.ThreadID) (int64, error)
	// BehindSince are the threads that a reader has not read to their end, among those that have changed since a
	// mark and some others, and the next mark. Mark 0: among all.
	BehindSince(ctx context.Context, reader, transport string, mark int64, others []chat.ThreadID) ([]chat.ThreadID, int64, error)
	// Writes are two numbers that stay the same while nobody writes.
	Writes(ctx context.Context) (own, others int64, err error)
	Plan(ctx context.Context, p journal.Plan) error
	SetDesired(ctx context.Context, desired ...journal.Desired) error
}

// Outbox brings to the platform what was written for it.
type Outbox interface {
	Wake(lanes ...journal.Lane)
	Preview(lane journal.Lane, key string, body json.RawMessage)
}

// Options are what a publisher is made of. Nothing may be missing but ShownIn.
type Options struct {
	Bot      string // its name, part of its lanes
	Platform platform.Platform
	Backend  Backend
	Outbox   Outbox
	// ShownIn is where a conversation that is held elsewhere is shown on this platform; nil: none is.
	ShownIn func(ctx context.Context, thread chat.ThreadID) (Shown, error)
	// Connected reports whether the bot knows who it is: before that nothing can be posted.
	Connected func() bool
	// Directory is who and what can be named in a guild.
	Directory func(guild string) mention.Directory
	// Notifies are those whom a post mentions and who shall notice.
	Notifies func(guild, text string, people bool) (users []string)
	Retry    platform.Retry
	Log      *slog.Logger

	Typing   time.Duration // between two notices that somebody writes
	Preview  time.Duration // between two edits of a message that is being written
	Idle     time.Duration // after which a conversation without news needs no watcher
	CallWait time.Duration // how long one call that is not answered delays others
}

// Publisher publishes the conversations that one bot serves.
type Publisher struct {
	Options
	transport string // the platform's name
	caps      platform.Caps
	cards     approvalcard.Writer
	typing    platform.Typing  // nil: the platform shows none
	threads   platform.Threads // nil: the platform has none
	work      sync.WaitGroup

	mu            sync.Mutex
	conversations map[chat.ThreadID]*conversation
	running       context.Context // ends with the bot; nil: it does not run
}

// New makes a publisher. Nothing is published yet.
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

// Wait waits until everything has ended that Start began; its context must end, and nobody may call Wake any more.
func (p *Publisher) Wait() { p.work.Wait() }

// Wake publishes a conversation, unless that is being done already. It ends with the bot.
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

// AskedBy reports whether somebody asked for the run of a conversation that is on.
func (p *Publisher) AskedBy(thread chat.ThreadID, user string) bool {
	p.mu.Lock()
	c := p.conversations[thread]
	p.mu.Unlock()
	return c != nil && c.askedBy(user)
}

// Reader is the name under which is stored how far conversations have been published. All
// bots of a platform share it: each conversation is published by one of them, and which one may change.
func (p *Publisher) Reader() string { return p.transport }

// lane is where the messages of a channel queue.
func (p *Publisher) lane(channel string) journal.Lane {
	return journal.Lane{Platform: p.transport, Bot: p.Bot, Channel: channel}
}

// sweepEvery is how long a conversation that moved unnoticed (in another process, at a
// restart) stays unpublished.
const sweepEvery = 2 * time.Second

// publishAll looks for conversations that have moved and are not published, until ctx ends.
// Where nothing was found and nothing was written since, there is nothing to look for.
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
		if !platform.Sleep(ctx, sweepEvery) {
			return
		}
	}
}

// maxBehind bounds how many are woken by one look.
const maxBehind = 1000

// sweep knows up to where the journal has been looked at. The first look is at all
// conversations, every other one at those that have changed since, or were behind then.
type sweep struct {
	publisher *Publisher
	transport string
	mark      int64
	behind    []chat.ThreadID
}

// look wakes what is behind; true: nothing of ours was.
func (s *sweep) look(ctx context.Context) bool {
	p := s.publisher
	list, mark, err := p.Backend.BehindSince(ctx, p.Reader(), s.transport, s.mark, s.behind)
	if err != nil {
		if ctx.Err() == nil {
			p.Log.Warn("could not look for what is to be published", "event", "sweep_failed", "error", err)
		}
		return false
	}
	// What another bot serves is that one's, as long as this program runs.
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
